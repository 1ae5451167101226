"""Stream joins on multicore CPUs and FPGAs that give the same exact answer."""
