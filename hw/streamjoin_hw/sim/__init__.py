"""Software reference, stimuli, and Verilated models driven in bulk."""
