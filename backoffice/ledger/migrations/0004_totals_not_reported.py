"""A total or a number of transactions that the provider does not report is null."""

from django.db import migrations, models

import backoffice.core.fields

FIELDS = {
    "total_received": backoffice.core.fields.ExactDecimalField,
    "total_sent": backoffice.core.fields.ExactDecimalField,
    "transaction_count": models.BigIntegerField,
}


class Migration(migrations.Migration):
    dependencies = [("ledger", "0003_search_by_names")]

    operations = [
        migrations.AlterField(model, name, field(null=True))
        for model in ("balance", "balancesnapshot")
        for name, field in FIELDS.items()
    ]
