"""Questions asked of a design: area, clock, latency, rate, power, a walk through it."""
