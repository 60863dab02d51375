"""Store why a bulk release ended early. Older processes leave the column null."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0023_retried_rows")]

    operations = [migrations.AddField("bulkrelease", "refusal", models.JSONField(null=True))]
