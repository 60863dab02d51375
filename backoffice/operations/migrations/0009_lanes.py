"""An attempt whose transaction is not known holds its amount only, and its balance while its request is under way.

Attempts of earlier releases get the amount of their operation, by which their transaction is matched. SQLite rebuilds
the table of attempts, so the triggers on it and those that name it are dropped before and created again, see 0002.
"""

from importlib import import_module

from django.db import migrations, models
from django.db.models import OuterRef, Q, Subquery

import backoffice.core.fields

_statuses = import_module("backoffice.operations.migrations.0002_status_and_content_triggers")
_begins = import_module("backoffice.operations.migrations.0006_leaving_now")
_UNMATCHED = Q(("closed_at__isnull", True), ("provider_transaction_id__isnull", True))


def create_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        _statuses.create_triggers(apps, schema_editor)
        _begins.create_trigger(apps, schema_editor)


def drop_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        _begins.drop_trigger(apps, schema_editor)
        _statuses.drop_triggers(apps, schema_editor)


def fill(apps, schema_editor):
    attempts = apps.get_model("operations", "Attempt").objects.exclude(balance=None)
    operations = apps.get_model("operations", "Operation").objects.filter(pk=OuterRef("operation"))
    attempts.update(amount=Subquery(operations.values("amount")))
    attempts.filter(_UNMATCHED, operation__status="sending").update(is_under_way=True)
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # else it creates no index after this


class Migration(migrations.Migration):
    dependencies = [("operations", "0008_pauses_and_reasons")]

    operations = [
        migrations.RunPython(drop_triggers, create_triggers),
        migrations.RemoveConstraint(model_name="attempt", name="attempt_one_unmatched_per_balance"),
        migrations.AddField(
            model_name="attempt",
            name="amount",
            field=backoffice.core.fields.ExactDecimalField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="attempt",
            name="is_under_way",
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                condition=Q(_UNMATCHED, ("is_under_way", True)),
                fields=("balance",),
                name="attempt_one_under_way_per_balance",
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                condition=_UNMATCHED,
                fields=("balance", "amount"),
                name="attempt_one_unmatched_per_amount",
            ),
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
