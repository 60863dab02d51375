"""A release that failed for a reason of our own steps out of the order for a while, so that it holds nobody up."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0011_ids_of_any_length")]

    operations = [
        migrations.AddField(
            model_name="release",
            name="out_of_turn_until",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
