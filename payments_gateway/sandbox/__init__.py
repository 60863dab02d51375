"""The service itself, simulated behind a real HTTP port. It moves nothing.

A process of its own with its own settings and its own database file; start it with
`manage.py sandbox --port 8001` or `python -m payments_gateway.sandbox --port 8001`.

* `/v2/…` and `/v4/…` behave like the service of the specification.
* `/_sandbox/…` is what the real service would not have: a page and a control API (`control/views.py`).

How the books are kept, and what a failed withdrawal does to them, is told in `books/ledger.py`; what can be made to go
wrong on demand, in `faults/__init__.py`.
"""
