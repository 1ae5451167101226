"""One input watched from inside: waveforms for the engineer, an animated page for everybody.

The design runs in Amaranth's simulator, where every signal has its name; thousands of cycles a
second are enough for the few hundred tuples that a person can look at.
"""
