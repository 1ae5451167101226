"""What becomes hardware, and nothing else: one folder a design, shared parts here."""
