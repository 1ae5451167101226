"""Semi-stream joins: a stream with a relation that is read from its store in a cycle."""
