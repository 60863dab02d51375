"""Where the reconciliation's walks through what is open stand: an upgrade may find a hundred thousand of them."""

from django.db import migrations, models
from django.db.models import Q

PLACES = ("early_rows_to", "going_on_to", "may_turn_up_to")


class Migration(migrations.Migration):
    dependencies = [("operations", "0018_any_number_of_looks")]

    operations = [
        *(migrations.AddField("reconciliation", name, models.BigIntegerField(null=True)) for name in PLACES),
        migrations.AddField("reconciliation", "may_turn_up_as_of", models.DateTimeField(null=True)),
        migrations.AddIndex(
            "comparison",
            models.Index(
                fields=["id"],
                name="comparison_may_turn_up",
                condition=Q(verdict="too_early") | Q(verdict="missing_there", transaction__isnull=True),
            ),
        ),
    ]
