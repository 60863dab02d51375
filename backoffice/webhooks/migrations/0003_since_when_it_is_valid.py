"""Since when a delivery is valid is not when it first came: its key may have been known later.

Of those that are here only the latter is on record.
"""

from django.db import migrations, models
from django.db.models import F, Q


def tell(apps, _schema_editor):
    valid = apps.get_model("webhooks", "Delivery").objects.filter(verdict="valid")
    valid.update(valid_at=F("received_at"))


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0002_known_by_data_and_signature")]

    operations = [
        migrations.AddField(model_name="delivery", name="valid_at", field=models.DateTimeField(null=True)),
        migrations.RunPython(tell, migrations.RunPython.noop),
        migrations.RemoveIndex(model_name="delivery", name="delivery_valid_by_time"),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                fields=["valid_at"], condition=Q(valid_at__isnull=False), name="delivery_valid_by_time"
            ),
        ),
    ]
