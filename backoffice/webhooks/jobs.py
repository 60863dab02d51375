"""The sweeper's job of webhooks: check what the stored deliveries are a reason to check."""

from backoffice.webhooks.processing import process_due_deliveries

JOBS = {"process_due_deliveries": process_due_deliveries}
