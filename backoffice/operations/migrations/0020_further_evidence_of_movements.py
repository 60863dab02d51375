"""A movement that nobody prepared is told of again when it is another than was told: by a further incident.

Going back is possible as long as there is none.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0019_walks_through_what_is_open")]

    operations = [
        migrations.AlterField(
            model_name="incident",
            name="transaction",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="incidents",
                to="ledger.transaction",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.UniqueConstraint(
                condition=models.Q(("further_to__isnull", True)),
                fields=("transaction",),
                name="incident_first_once_per_movement",
            ),
        ),
    ]
