"""``streamjoin hw`` without a process of its own."""

import argparse

from streamjoin_hw.cli import VERB


def run(*words: str) -> int:
    """Run the verb with these words."""
    parser = argparse.ArgumentParser(prog="streamjoin hw")
    VERB.configure(parser)
    return VERB.run(parser.parse_args(words))
