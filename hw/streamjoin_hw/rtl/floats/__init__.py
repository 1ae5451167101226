"""Float32 arithmetic that a band of floats needs, once a tuple."""
