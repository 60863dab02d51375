"""Bank accounts that the team keeps under a name. A table of its own: no other one is touched."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Lower


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0004_search_and_saved_filters"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedAccount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("beneficiary_key", models.CharField(max_length=200, unique=True)),
                ("bank", models.CharField(max_length=200)),
                ("account_name", models.CharField(max_length=200)),
                ("saved_at", models.DateTimeField()),
                (
                    "saved_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": (Lower("name"), "pk"),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(Lower("name"), name="saved_account_name_once"),
                ],
            },
        ),
    ]
