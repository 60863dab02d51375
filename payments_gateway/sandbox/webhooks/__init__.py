"""Webhooks of the simulated provider: outbox, signing, delivery with retries, and delivery faults."""
