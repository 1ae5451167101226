"""Formal proofs of the design's parts: what is claimed, the faults each proof must find, tools.

A proof wraps a component in a :class:`~streamjoin_hw.formal.harness.Harness` whose inputs are
free, assumes nothing but the streams' rules on those inputs, and claims what must hold in every
cycle. Yosys turns it into a transition system, smtbmc and z3 search it.
"""
