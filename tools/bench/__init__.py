"""`make bench`: measure the size and speed targets of docs/benchmarks.md, beside their limits and
alternatives.
"""
