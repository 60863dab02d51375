import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ChainHead",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveBigIntegerField(default=0)),
                (
                    "hash",
                    models.CharField(
                        default="0000000000000000000000000000000000000000000000000000000000000000",
                        max_length=64,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="audit_one_chain_head")
                ],
            },
        ),
        migrations.CreateModel(
            name="CheckpointDestination",
            fields=[
                ("address", models.CharField(max_length=500, primary_key=True, serialize=False)),
                ("since", models.DateTimeField()),
                ("position", models.PositiveBigIntegerField(default=0)),
                (
                    "hash",
                    models.CharField(
                        default="0000000000000000000000000000000000000000000000000000000000000000",
                        max_length=64,
                    ),
                ),
                ("delivered_at", models.DateTimeField(null=True)),
                ("compared_at", models.DateTimeField(null=True)),
                ("problem", models.JSONField(default=dict)),
                ("failed_at", models.DateTimeField(null=True)),
                ("fault", models.JSONField(default=dict)),
            ],
            options={"ordering": ["address"], "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="LastVerification",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("verified", models.PositiveBigIntegerField()),
                ("newest_hash", models.CharField(max_length=64)),
                ("fault", models.JSONField(default=dict)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="audit_one_last_verification")
                ],
            },
        ),
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("position", models.PositiveBigIntegerField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("actor_label", models.TextField()),
                ("address", models.TextField(blank=True)),
                ("request_id", models.TextField(blank=True)),
                ("action", models.CharField(max_length=64)),
                ("target_type", models.TextField(blank=True)),
                ("target_id", models.TextField(blank=True)),
                ("target_label", models.TextField(blank=True)),
                ("detail", models.JSONField(default=dict)),
                ("version", models.CharField(default="v1", max_length=8)),
                ("previous_hash", models.CharField(max_length=64)),
                ("hash", models.CharField(max_length=64)),
                (
                    "actor",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "entries",
                "ordering": ["-position"],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["at"], name="audit_entry_at"),
                    models.Index(fields=["actor", "-position"], name="audit_entry_actor"),
                    models.Index(fields=["action", "-position"], name="audit_entry_action"),
                    models.Index(fields=["target_type", "target_id", "-position"], name="audit_entry_target"),
                ],
            },
        ),
    ]
