"""Notifications begin with what happens from now on: the history of an installation notifies nobody."""

from django.db import migrations


def start_at_the_head(apps, _schema_editor):
    head = apps.get_model("audit", "ChainHead").objects.filter(pk=1).first()
    position = head.position if head else 0
    apps.get_model("notifications", "AuditCursor").objects.get_or_create(
        pk=1, defaults={"position": position}
    )


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_append_only"), ("notifications", "0001_initial")]

    operations = [migrations.RunPython(start_at_the_head, migrations.RunPython.noop)]
