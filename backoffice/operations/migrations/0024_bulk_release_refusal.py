"""A bulk release that ended early says why. Null beside it is what older processes write."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0023_retried_rows")]

    operations = [migrations.AddField("bulkrelease", "refusal", models.JSONField(null=True))]
