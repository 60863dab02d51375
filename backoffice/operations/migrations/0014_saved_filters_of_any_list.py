"""Saved filters say which list they are of; those that are there are of the list of operations."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0013_what_the_overview_tells")]

    operations = [
        migrations.AddField(
            model_name="savedfilter",
            name="of",
            field=models.CharField(
                choices=[("list", "Operations"), ("transactions", "Transactions")],
                default="list",
                max_length=20,
            ),
        ),
    ]
