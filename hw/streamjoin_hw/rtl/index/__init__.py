"""SplitJoin by an ordered index in block RAM: a band join that takes a tuple a clock."""
