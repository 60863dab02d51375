"""What the lists need to stay quick, what the search finds beneficiaries by, and filters saved under a name.

A column that may be null is added without rebuilding its table, so the triggers of 0002 and 0003 stay on SQLite, too.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def name_accounts(apps, _schema_editor):
    """Give operations prepared before the column was kept what stands at the end of their beneficiary's key."""
    operations = apps.get_model("operations", "Operation").objects.order_by()
    keys = operations.filter(beneficiary_key__isnull=False).values_list("beneficiary_key", flat=True)
    for key in list(keys.distinct()):
        operations.filter(beneficiary_key=key).update(beneficiary_account=key.rpartition(":")[2].lower())


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0003_kinds_of_every_sort"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("is_shared", models.BooleanField(default=False)),
                ("filters", models.JSONField()),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="saved_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("name", "pk"),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("person", "name"), name="saved_filter_name_once_per_person"
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="operation",
            name="beneficiary_account",
            field=models.CharField(editable=False, max_length=200, null=True),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                fields=["beneficiary_account", "-prepared_at", "-id"], name="operation_by_account"
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                fields=["-prepared_at", "-id"],
                name="operation_open",
                condition=models.Q(("closed_at__isnull", True)),
            ),
        ),
        migrations.RunPython(name_accounts, migrations.RunPython.noop),
    ]
