"""Whether a release can be upgraded from the one before it while that one runs."""
