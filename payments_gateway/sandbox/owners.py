"""Who holds an account in each currency. All but the merchant stand for the world outside."""

MERCHANT = "merchant"
FEES = "fees"
BANKS = "banks"
CHAIN = "chain"
USERS = "users"
EXCHANGE = "exchange"
OWNERS = (MERCHANT, FEES, BANKS, CHAIN, USERS, EXCHANGE)
