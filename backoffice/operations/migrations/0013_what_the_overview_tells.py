"""What ended and what was countersigned lately, found without reading the rest; and how long countersigning takes."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("operations", "0012_out_of_turn_for_a_while")]

    operations = [
        migrations.AddField(
            model_name="inspection",
            name="countersigned",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="inspection",
            name="countersigned_within",
            field=models.DurationField(null=True),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                fields=["closed_at", "status"], name="operation_ended", condition=Q(closed_at__isnull=False)
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                fields=["decided_at", "status", "prepared_at"],
                name="operation_decided",
                condition=Q(decided_at__isnull=False),
            ),
        ),
    ]
