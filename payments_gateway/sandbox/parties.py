"""The demo merchant with its initial credentials, and the owners of the accounts in the books.

The credentials are not secrets: they are the same everywhere, printed at start-up, and open a sandbox only.
`API_KEY` is the initial key; `api/authentication.py` checks the credentials. All owners except the merchant
represent external parties.
"""

MERCHANT = "merchant"
FEES = "fees"
BANKS = "banks"
CHAIN = "chain"
USERS = "users"
EXCHANGE = "exchange"
OWNERS = (MERCHANT, FEES, BANKS, CHAIN, USERS, EXCHANGE)


API_KEY = "sandbox-key-of-the-simulation"
API_USER = "countersign-demo"
USER_VERSIONS = ("v2",)
BUSINESS_ID = "b5f1c2d94a7e4f0ba1c83d56"
BUSINESS_NAME = "Meridian Foods Limited"
