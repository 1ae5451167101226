"""All kinds of join, decided behind any array of cores that gives the pairs of the inner join."""
