"""Measures of the database itself: what a row takes, and how partitions by month behave."""
