"""At most one attempt in doubt for each debited balance, so that a new transaction can only be its own."""

import django.db.models.deletion
from django.db import migrations, models

_DEBIT_A_BALANCE = ("conversion", "transfer", "wallet_transfer", "withdrawal")


def name_balances(apps, _schema_editor):
    """Let the oldest attempt in doubt hold its balance, and releases wait for it.

    Further attempts are as they were: closed if nothing is unclear.
    """
    attempts = apps.get_model("operations", "Attempt").objects.filter(
        closed_at__isnull=True, operation__kind__in=_DEBIT_A_BALANCE
    )
    held = set()
    for attempt in attempts.select_related("operation").order_by("pk"):
        balance = attempt.operation.currency
        is_in_doubt = attempt.service_transaction_id is None
        if not (is_in_doubt and balance in held):
            attempt.balance = balance
            attempt.save(update_fields=["balance"])
        if is_in_doubt:
            held.add(balance)
    releases = apps.get_model("operations", "Release").objects.filter(operation__kind__in=_DEBIT_A_BALANCE)
    for release in releases.select_related("operation"):
        release.balance = release.operation.currency
        release.save(update_fields=["balance"])


class Migration(migrations.Migration):
    dependencies = [("operations", "0005_saved_accounts")]

    operations = [
        migrations.AddField("attempt", "balance", models.CharField(editable=False, max_length=12, null=True)),
        migrations.AddField(
            "attempt",
            "resolution",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="operations.operation",
            ),
        ),
        migrations.AddField("attempt", "watermark_shown", models.JSONField(null=True)),
        migrations.AddField("attempt", "watch_next_at", models.DateTimeField(db_index=True, null=True)),
        migrations.AddField("release", "balance", models.CharField(editable=False, max_length=12, null=True)),
        migrations.RunPython(name_balances, migrations.RunPython.noop, elidable=True),
        migrations.AddConstraint(
            "attempt",
            models.UniqueConstraint(
                condition=models.Q(("closed_at__isnull", True), ("service_transaction_id__isnull", True)),
                fields=("balance",),
                name="attempt_one_in_doubt_per_balance",
            ),
        ),
    ]
