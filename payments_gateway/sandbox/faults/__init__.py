"""Faults on demand: failures of a network, a proxy or the provider, provoked on purpose.

`definitions.py` describes every kind of fault, `registry.py` decides which requests a fault hits,
`middleware.py` applies it, and `responses.py` builds the faulty responses.
"""
