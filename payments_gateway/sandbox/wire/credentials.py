"""The one demo merchant of the simulation, and the credentials that it begins with.

These are not secrets: they open a simulation, are printed in its banner, and are the same everywhere. `API_KEY` is the
key that exists at the start; more are made by the operations for keys. Who may come in: `merchant/entrance.py`.
"""

API_KEY = "sandbox-key-of-the-simulation"
API_USER = "countersign-demo"
USER_VERSIONS = ("v2",)
BUSINESS_ID = "b5f1c2d94a7e4f0ba1c83d56"
BUSINESS_NAME = "Meridian Foods Limited"
