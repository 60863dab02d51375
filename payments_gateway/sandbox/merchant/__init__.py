"""The merchant's data at the simulated provider besides money: API keys, bank accounts, KYC, callback URL."""
