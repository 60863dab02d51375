"""A delivery is known by its data and signature, no longer by its body. What was kept stays known by its body.

Going back is possible as long as no body is kept twice.
"""

from django.db import migrations, models
from django.db.models import F


def keep(apps, _schema_editor):
    apps.get_model("webhooks", "Delivery").objects.update(identity=F("digest"))


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0001_deliveries_received")]

    operations = [
        migrations.AddField(
            model_name="delivery",
            name="identity",
            field=models.CharField(default="", max_length=64),
            preserve_default=False,
        ),
        migrations.RunPython(keep, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="delivery",
            name="identity",
            field=models.CharField(max_length=64, unique=True),
        ),
        migrations.AlterField(model_name="delivery", name="digest", field=models.CharField(max_length=64)),
    ]
