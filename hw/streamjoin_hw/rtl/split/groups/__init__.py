"""SplitJoin's relaxed outer order: a star after a group of arrivals instead of after each.

Najafi, Sadoghi and Jacobsen (USENIX ATC 2016), section 5. Arrivals of both sides are counted
together where they enter; the last one of a group is marked on its way. A half gives a star for a
group that has probes of its own, and the combiner one where both have given theirs.
"""
