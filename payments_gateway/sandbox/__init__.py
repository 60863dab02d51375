"""The sandbox: a simulated provider behind a real HTTP port, for demos, development and tests.

It moves no money. It is a process of its own, with its own settings and database file; start it with
`manage.py sandbox --port 8001` or `python -m payments_gateway.sandbox --port 8001`.

* `/v2/…` and `/v4/…` behave as specified (`api/`, on the books of `books/`).
* `/_sandbox/…` is the sandbox console and the control API (`control/views.py`), which the real provider
  lacks.

`books/ledger.py` describes the bookkeeping, `faults/definitions.py` the faults that can be provoked.

The credentials below are those of the demo merchant at the start. They are not secrets: they are the same everywhere,
printed at start-up, and open a sandbox only. All owners of accounts except the merchant represent external parties.
"""

API_KEY = "sandbox-key-of-the-simulation"
API_USER = "countersign-demo"
USER_VERSIONS = ("v2",)
BUSINESS_ID = "b5f1c2d94a7e4f0ba1c83d56"
BUSINESS_NAME = "Meridian Foods Limited"

MERCHANT = "merchant"
FEES = "fees"
BANKS = "banks"
CHAIN = "chain"
USERS = "users"
EXCHANGE = "exchange"
OWNERS = (MERCHANT, FEES, BANKS, CHAIN, USERS, EXCHANGE)
