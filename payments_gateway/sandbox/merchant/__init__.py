"""What the one merchant has at the service besides money: API keys, bank accounts, verification, a callback URL."""
