"""Files of the user's own, or of other people's data sets, as workloads."""
