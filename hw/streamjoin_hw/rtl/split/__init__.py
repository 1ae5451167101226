"""SplitJoin: independent cores between a distribution tree and collection trees.

Najafi, Sadoghi and Jacobsen, "SplitJoin: A Scalable, Low-latency Stream Join Architecture with
Adjustable Ordering Precision" (USENIX ATC 2016), sections 4 and 5.
"""
