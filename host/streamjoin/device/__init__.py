"""Where a hardware design runs: a Verilated model or a board."""
