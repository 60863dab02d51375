"""The last known balances. The service is the authority; these say what it said, and when."""

from django.db import models

from backoffice.core.fields import ExactDecimalField


class Balance(models.Model):
    """One currency of the merchant, as the service last told it."""

    currency = models.CharField(max_length=12, primary_key=True)
    amount = ExactDecimalField()
    total_received = ExactDecimalField()
    total_sent = ExactDecimalField()
    transaction_count = models.BigIntegerField()
    as_of = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)
        permissions = [("view_transaction", "Can view transactions")]
        ordering = ("currency",)

    def __str__(self) -> str:
        return self.currency
