"""Delegations are applied here. An approval can be a stand-in's: for whom, and by which delegation.

Both columns are null in all others, so that no table is rebuilt on SQLite. A trigger, instead of a constraint that would
rebuild it, refuses what no delegation allows: for oneself, for the preparer, and without the other column.
"""

from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

from backoffice.core.database import triggers

_squashed = import_module("backoffice.operations.migrations.0001_squashed_0015_recipients")
KINDS_NOW = (*_squashed.KINDS, "delegation")

_NOT_FOR_ANOTHER = (
    "(NEW.on_behalf_of_id IS NULL) <> (NEW.delegation_id IS NULL) OR NEW.on_behalf_of_id = NEW.approver_id "
    "OR NEW.on_behalf_of_id = NEW.preparer_id OR EXISTS (SELECT 1 FROM operations_approval AS other "
    "WHERE other.operation_id = NEW.operation_id "
    "AND (other.approver_id = NEW.on_behalf_of_id OR other.on_behalf_of_id = NEW.approver_id))"
)
_OTHERWISE = " OR ".join(
    f"NEW.{column} {{is_distinct_from}} OLD.{column}" for column in ("on_behalf_of_id", "delegation_id")
)
TRIGGERS = (
    # A person counts once, as approver or as the one on leave, and the preparer never does.
    triggers.Trigger(
        "approval_for_another",
        "INSERT",
        "operations_approval",
        _NOT_FOR_ANOTHER,
        "a person counts once, and never the preparer",
    ),
    # An approval keeps for whom it was given.
    triggers.Trigger(
        "approval_keeps_delegation",
        "UPDATE",
        "operations_approval",
        _OTHERWISE,
        "an approval does not change",
    ),
)


def create(apps, schema_editor):
    triggers.replace(schema_editor, _squashed.known_edges(KINDS_NOW))
    triggers.create(schema_editor, TRIGGERS)


def drop(apps, schema_editor):
    triggers.replace(schema_editor, _squashed.known_edges(_squashed.KINDS))
    triggers.drop(schema_editor, TRIGGERS)


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0001_squashed_0015_recipients"),
        ("policies", "0002_delegations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="on_behalf_of",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="approvals_by_stand_ins",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="approval",
            name="delegation",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="approvals",
                to="policies.delegation",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.UniqueConstraint(
                condition=Q(on_behalf_of__isnull=False),
                fields=("operation", "on_behalf_of"),
                name="approval_once_for_a_person",
            ),
        ),
        migrations.RunPython(create, drop),
    ]
