"""Webhooks of the simulation: an outbox beside the books, signing, deliveries with retries, and faults on demand."""
