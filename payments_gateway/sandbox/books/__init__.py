"""The bookkeeping of the simulated provider: movements, settlement, payments, rates, and the seeded history."""
