"""SplitJoin by a hash index in block RAM: an input tuple in every cycle."""
