"""`make bench`: measures what the documentation promises of size and speed, beside its limits and what people use
instead.
"""
