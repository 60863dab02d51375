"""Who may see what the service delivered: whoever may see where it delivers, and the transactions that it tells of."""

VIEW = ("ledger.view_balance", "ledger.view_transaction")
