"""The sums by day leave out what the service lists no more."""

from datetime import UTC
from decimal import Context

from django.db import migrations

EXACT = Context(prec=100)


def take_out(apps, _schema_editor):
    _move(apps, sign=-1)


def put_in(apps, _schema_editor):
    _move(apps, sign=1)


def _move(apps, *, sign):
    totals = apps.get_model("ledger", "DayTotal").objects
    missing = apps.get_model("ledger", "Transaction").objects.filter(missing_since__isnull=False)
    for row in missing.order_by("pk").iterator():
        total = totals.get(day=row.occurred_at.astimezone(UTC).date(), facet_id=row.facet_id)
        total.count += sign
        total.amount = EXACT.fma(row.amount, sign, total.amount)
        total.fee = EXACT.fma(row.fee or 0, sign, total.fee)
        total.save()


class Migration(migrations.Migration):
    dependencies = [("ledger", "0009_a_day_beside_the_list")]

    operations = [migrations.RunPython(take_out, put_in)]
