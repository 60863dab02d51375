"""`make bench`: what the README promises of size and speed, beside its limits and what people use instead."""
