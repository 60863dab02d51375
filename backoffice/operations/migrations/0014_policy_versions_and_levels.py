"""The version of the approval policy and the levels under which an operation was prepared.

Both are null in operations of earlier releases, so that no table is rebuilt on SQLite. The trigger that keeps the content
covers them, and the one that knows the edges between states knows the policy, which is applied here and never sent.
"""

from importlib import import_module

from django.db import migrations, models

_triggers = import_module("backoffice.operations.migrations.0002_status_and_content_triggers")
_codes = import_module("backoffice.operations.migrations.0010_managed_one_time_codes")
_KEEPS_CONTENT = next(one for one in _triggers.TRIGGERS if one.name == "operation_keeps_content")
_ALSO = "".join(
    f" OR NEW.{column} {{is_distinct_from}} OLD.{column}" for column in ("policy_version", "levels")
)
_governance = import_module("backoffice.operations.migrations.0013_governance_approvals")
KINDS_NOW = (*_governance.KINDS_NOW, "approval_policy")


def cover(apps, schema_editor):
    keeps = _KEEPS_CONTENT._replace(refused_when=_KEEPS_CONTENT.refused_when + _ALSO)
    _codes.replace_trigger(schema_editor, keeps)
    _codes.replace_trigger(schema_editor, _codes.known_edges(KINDS_NOW))


def uncover(apps, schema_editor):
    _codes.replace_trigger(schema_editor, _KEEPS_CONTENT)
    _codes.replace_trigger(schema_editor, _codes.known_edges(_governance.KINDS_NOW))


class Migration(migrations.Migration):
    dependencies = [("operations", "0013_governance_approvals")]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="policy_version",
            field=models.PositiveIntegerField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="operation",
            name="levels",
            field=models.JSONField(editable=False, null=True),
        ),
        migrations.RunPython(cover, uncover),
    ]
