"""A schedule may cover the last seven days."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="schedule",
            name="period",
            field=models.CharField(
                choices=[
                    ("all", "All records"),
                    ("yesterday", "Yesterday"),
                    ("last_week", "Last week (Monday to Sunday)"),
                    ("last_7_days", "Last 7 days until yesterday"),
                    ("last_month", "Last month"),
                    ("month_to_date", "This month until yesterday"),
                ],
                default="all",
                max_length=16,
            ),
        ),
    ]
