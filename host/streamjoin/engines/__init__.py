"""Join engines behind one protocol; see base and catalog."""
