"""SplitJoin's cores for bands with comparators that both halves share.

A stored tuple of either side is a point, an arriving one of either side an interval: whichever is
stored, the comparison is the same. So a core has half the comparators that two halves need.
"""
