"""Measures of what is written row by row: deliveries of webhooks, entries of the audit log."""
