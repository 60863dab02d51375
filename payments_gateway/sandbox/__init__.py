"""The sandbox: a simulated provider behind a real HTTP port, for demos, development and tests.

It moves no money. It is a process of its own, with its own settings and database file; start it with
`manage.py sandbox --port 8001` or `python -m payments_gateway.sandbox --port 8001`.

* `/v2/…` and `/v4/…` behave as specified (`api/`, on the books of `books/`).
* `/_sandbox/…` is the sandbox console and the control API (`control/views.py`), which the real provider
  lacks.

`books/ledger.py` describes the bookkeeping, `faults/definitions.py` the faults that can be provoked.
"""
