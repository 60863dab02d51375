"""When a job of the sweeper last failed. With a default in the database: the previous release inserts rows without it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0016_delegations"),
    ]

    operations = [
        migrations.AddField(
            model_name="heartbeat",
            name="error",
            field=models.CharField(blank=True, db_default="", max_length=120),
        ),
        migrations.AddField(
            model_name="heartbeat",
            name="failed_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name="heartbeat",
            name="at",
            field=models.DateTimeField(null=True),
        ),
    ]
