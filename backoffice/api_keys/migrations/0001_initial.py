import uuid

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
            name="KnownKey",
            fields=[
                ("short_hash", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("position", models.PositiveIntegerField()),
                ("name", models.CharField(blank=True, max_length=200)),
                ("expires_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("as_of", models.DateTimeField()),
                ("scope", models.CharField(blank=True, max_length=200)),
                ("is_lost", models.BooleanField(default=False)),
            ],
            options={
                "ordering": ("position",),
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Rotation",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("started_at", models.DateTimeField()),
                ("is_open", models.BooleanField(default=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("is_finished", models.BooleanField(default=False)),
                ("tested_operation", models.UUIDField(null=True)),
                ("tested_at", models.DateTimeField(null=True)),
                (
                    "test_result",
                    models.CharField(
                        blank=True,
                        choices=[
                            (
                                "passed",
                                "GET /balance with the new key succeeded: {count} balances read ({currencies}).",
                            ),
                            ("failed", "GET /balance with the new key failed: {error}"),
                        ],
                        max_length=6,
                    ),
                ),
                ("test_parameters", models.JSONField(default=dict)),
                ("watched_until", models.DateTimeField(null=True)),
                (
                    "started_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-started_at",),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_open", True)),
                        fields=("is_open",),
                        name="rotation_one_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", True), ("is_open", True)),
                            models.Q(("ended_at__isnull", False), ("is_open", False)),
                            _connector="OR",
                        ),
                        name="rotation_ended_has_time",
                    ),
                ],
            },
        ),
    ]
