"""The pass through the last day has a place of its own, beside that of a pass through the whole list."""

from django.db import migrations, models


def forget_a_pass_of_a_day(apps, _schema_editor):
    """One that is under way begins anew, in its own place."""
    of_a_day = {"pass_depth": "day"}
    apps.get_model("ledger", "Mirror").objects.filter(**of_a_day).update(pass_depth="")


class Migration(migrations.Migration):
    dependencies = [("ledger", "0006_find_transactions")]

    operations = [
        migrations.AddField("mirror", "day_begun_at", models.DateTimeField(null=True)),
        migrations.AddField("mirror", "day_page", models.BigIntegerField(default=1)),
        migrations.AddField("mirror", "day_total", models.BigIntegerField(default=0)),
        migrations.AddField("mirror", "lease_since", models.DateTimeField(null=True)),
        migrations.AlterField(
            "mirror",
            "pass_depth",
            models.CharField(
                blank=True,
                choices=[
                    ("whole", "the whole list"),
                    ("count", "the whole list, noting each record, to find those that left it"),
                ],
                max_length=5,
            ),
        ),
        migrations.RunPython(forget_a_pass_of_a_day, migrations.RunPython.noop),
    ]
