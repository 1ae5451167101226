"""The flat window index: columns as codes, blocks, threads, live sessions, and the engine."""
