import uuid

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="CachedReadRow",
            fields=[
                ("key", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("encrypted_value", models.BinaryField(default=b"")),
                ("read_at", models.DateTimeField(null=True)),
                ("tried_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="LeaseRow",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("number", models.PositiveBigIntegerField(default=0)),
                ("acquired_at", models.DateTimeField()),
                ("held_until", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="GatewayKey",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=120)),
                ("short_hash", models.CharField(blank=True, max_length=64)),
                ("made_by", models.UUIDField(null=True)),
                (
                    "state",
                    models.CharField(choices=[("in_use", "In use"), ("former", "Former")], max_length=8),
                ),
                ("since", models.DateTimeField()),
                ("encrypted_key", models.BinaryField()),
                ("is_counted", models.BooleanField(default=False)),
                ("calls", models.PositiveBigIntegerField(default=0)),
                ("refused", models.PositiveBigIntegerField(default=0)),
                ("last_refused_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ("-since",),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "in_use")),
                        fields=("state",),
                        name="gateway_key_one_in_use",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["in_use", "former"])),
                        name="gateway_key_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AnsweredForm",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("encrypted_page", models.BinaryField()),
                ("status", models.PositiveSmallIntegerField()),
                ("created_at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]
