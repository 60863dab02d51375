"""When the last reading of the whole list began: what it proves is of that time. Of the one before nobody knows."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0013_what_cannot_be_placed")]

    operations = [migrations.AddField("mirror", "whole_begun_at", models.DateTimeField(null=True))]
