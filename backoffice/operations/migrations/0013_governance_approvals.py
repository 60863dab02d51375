"""The permission to approve changes of people; changes of staff and access reviews are applied here.

The trigger of the table of states names the kinds that are applied here: it is replaced by one that names these too.
"""

from importlib import import_module

from django.db import migrations

_codes = import_module("backoffice.operations.migrations.0010_managed_one_time_codes")

KINDS_BEFORE = (*_codes.KINDS_NOW, "batch")
KINDS_NOW = (*KINDS_BEFORE, "staff_change", "access_review")


def name_kinds_now(apps, schema_editor):
    _codes.replace_trigger(schema_editor, _codes.known_edges(KINDS_NOW))


def name_kinds_before(apps, schema_editor):
    _codes.replace_trigger(schema_editor, _codes.known_edges(KINDS_BEFORE))


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0012_bulk_releases"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="operation",
            options={
                "default_permissions": ("view",),
                "ordering": ("-prepared_at", "-id"),
                "permissions": [
                    ("prepare_operation", "Can prepare operations that move money"),
                    ("propose_change", "Can prepare changes of keys, accounts and addresses at the provider"),
                    ("approve_operation", "Can approve or reject operations that others prepared"),
                    ("approve_governance_change", "Can approve changes of people that others prepared"),
                    ("release_operation", "Can send approved operations"),
                    ("resolve_operation", "Can prepare resolutions of unknown outcomes"),
                    ("pause_payments", "Can pause payments, and prepare to resume them"),
                ],
            },
        ),
        migrations.RunPython(name_kinds_now, name_kinds_before),
    ]
