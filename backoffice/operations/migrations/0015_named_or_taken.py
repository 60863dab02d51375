"""Whether the service named an attempt's transaction, or it was taken for ours by what the list shows."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0014_saved_filters_of_any_list")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="named_at",
            field=models.DateTimeField(null=True),
        ),
    ]
