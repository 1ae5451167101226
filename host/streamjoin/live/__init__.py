"""Live joins: push batches of both streams, pull the pairs that they complete."""
