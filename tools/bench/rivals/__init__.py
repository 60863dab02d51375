"""Alternatives to our own code, each used as its documentation recommends: measured beside ours, never
shipped.
"""
