"""Why a release that was tried has not left yet, for the people who wait for it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0009_further_evidence")]

    operations = [
        migrations.AddField(
            model_name="release",
            name="obstacle",
            field=models.CharField(editable=False, max_length=300, null=True),
        ),
        migrations.AddField(
            model_name="release",
            name="obstacle_since",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
