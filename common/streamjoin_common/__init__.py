"""What every package of streamjoin speaks: standard library only."""
