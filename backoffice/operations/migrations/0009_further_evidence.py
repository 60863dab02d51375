"""Further evidence of what an incident tells is a further incident that names the one before.

Going back is possible as long as there is none.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0008_incidents_and_inspections")]

    operations = [
        migrations.AddField(
            model_name="incident",
            name="further_to",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="followed_by",
                to="operations.incident",
            ),
        ),
        migrations.RemoveConstraint(model_name="incident", name="incident_once_per_operation"),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.UniqueConstraint(
                condition=models.Q(("further_to__isnull", True)),
                fields=("operation", "what"),
                name="incident_first_once_per_operation",
            ),
        ),
    ]
