"""What a join returns: row numbers, joined rows looked up by them, and how they are shown."""
