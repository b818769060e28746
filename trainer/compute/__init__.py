"""One replica's forward and backward passes: precision, random numbers, recomputation."""
