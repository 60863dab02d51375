"""A file that its person removed is not one whose time was over."""

from django.db import migrations, models
from django.utils import timezone

BEFORE = [
    ("waiting", "Waiting"),
    ("running", "Running"),
    ("done", "Done"),
    ("failed", "Failed"),
    ("cancelled", "Cancelled"),
    ("expired", "Expired"),
]
AFTER = [*BEFORE, ("removed", "Removed")]


def tell_removed_ones(apps, _schema_editor):
    """Of those that went before their time; of the others nobody knows any more."""
    went = {"state": "expired", "expires_at__gt": timezone.now()}
    apps.get_model("reports", "ExportJob").objects.filter(**went).update(state="removed")


def tell_none(apps, _schema_editor):
    apps.get_model("reports", "ExportJob").objects.filter(state="removed").update(state="expired")


def known(states):
    condition = models.Q(("state__in", [value for value, _ in states]))
    return models.CheckConstraint(condition=condition, name="export_state_known")


class Migration(migrations.Migration):
    dependencies = [("reports", "0002_as_of")]

    operations = [
        migrations.RemoveConstraint("exportjob", "export_state_known"),
        migrations.AlterField(
            "exportjob", "state", models.CharField(choices=AFTER, default="waiting", max_length=9)
        ),
        migrations.RunPython(tell_removed_ones, tell_none),
        migrations.AddConstraint("exportjob", known(AFTER)),
    ]
