"""Two people name the transaction that paid an approved operation without a request from here: an attempt without a
release, and the only edge from approved to succeeded of what is otherwise sent.
"""

from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from backoffice.core.database import triggers

_squashed = import_module("backoffice.operations.migrations.0001_squashed_0015_recipients")
_imports = import_module("backoffice.operations.migrations.0018_recipient_imports")

# It has an attempt that an approved resolution made, and it is not released.
_PAID_ELSEWHERE = (
    "OLD.status = 'approved' AND NEW.status = 'succeeded' AND EXISTS ("
    "SELECT 1 FROM operations_attempt AS paid "
    "JOIN operations_operation AS resolution ON resolution.id = paid.resolution_id "
    "WHERE paid.operation_id = NEW.id AND paid.released_by_id IS NULL AND resolution.kind = 'resolution' "
    "AND resolution.status IN ('approved', 'succeeded')) "
    "AND NOT EXISTS (SELECT 1 FROM operations_release WHERE operation_id = NEW.id)"
)


def edges(former, allowed):
    """The trigger of the edges between states, which allows this one as well."""
    refused = former.refused_when.replace(
        f"({_squashed._NOT_IN_THE_TABLE})", f"({_squashed._NOT_IN_THE_TABLE}) AND NOT ({allowed})", 1
    )
    return former._replace(refused_when=refused)


_FORMER = _squashed.known_edges(_imports.KINDS_NOW)
EDGES = edges(_FORMER, _PAID_ELSEWHERE)
NAMING_ATTEMPTS = (_FORMER, _squashed.BEGINS_ONCE)


def drop_former(apps, schema_editor):
    triggers.drop(schema_editor, NAMING_ATTEMPTS)


def create_former(apps, schema_editor):
    triggers.create(schema_editor, NAMING_ATTEMPTS)


def create(apps, schema_editor):
    triggers.create(schema_editor, (EDGES, _squashed.BEGINS_ONCE))


def drop(apps, schema_editor):
    triggers.drop(schema_editor, (EDGES, _squashed.BEGINS_ONCE))


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0020_journal_lost"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(drop_former, create_former),
        migrations.AlterField(
            model_name="attempt",
            name="released_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("released_by__isnull", False),
                    models.Q(
                        ("begun_at__isnull", True),
                        ("outcome", "succeeded"),
                        ("provider_transaction_id__isnull", False),
                        ("resolution__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="attempt_released_or_resolved",
            ),
        ),
        migrations.RunPython(create, drop),
    ]
