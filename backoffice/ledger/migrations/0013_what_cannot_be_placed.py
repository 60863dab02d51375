"""An index of the records that cannot be placed in the chain of balances."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0012_names_in_every_order"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(
                condition=models.Q(
                    ("previous_balance__isnull", True),
                    ("created_at__isnull", True),
                    ("direction", ""),
                    _connector="OR",
                ),
                fields=["currency", "occurred_at"],
                name="transaction_untold",
            ),
        ),
    ]
