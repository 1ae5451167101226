"""Semi-stream joins: a stream with a relation that is read from its store again and again."""
