"""What the provider delivered, and the key of test deliveries."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("webhooks", "0001_initial"),
        ("webhooks", "0002_delivery_headers_responses_and_tests"),
    ]
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("identity", models.CharField(max_length=64, unique=True)),
                ("digest", models.CharField(max_length=64)),
                ("received_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("received_count", models.PositiveIntegerField(default=1)),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("valid", "Valid"),
                            ("invalid", "Invalid"),
                            ("unsigned", "Unsigned"),
                            ("malformed", "Malformed"),
                            ("unverified", "Not verified"),
                            ("test", "Test"),
                        ],
                        max_length=16,
                    ),
                ),
                ("error", models.CharField(blank=True, max_length=300)),
                ("key", models.CharField(blank=True, max_length=64)),
                ("event", models.CharField(blank=True, max_length=200)),
                ("transaction_id", models.CharField(blank=True, max_length=500)),
                ("reference", models.CharField(blank=True, max_length=200)),
                ("body", models.BinaryField()),
                ("valid_at", models.DateTimeField(null=True)),
                ("check_due_at", models.DateTimeField(null=True)),
                ("checked_at", models.DateTimeField(null=True)),
                ("response_ms", models.PositiveIntegerField(null=True)),
                ("response_status", models.PositiveSmallIntegerField(null=True)),
                ("event_at", models.DateTimeField(null=True)),
                ("headers", models.JSONField(db_default={}, default=dict)),
                ("started", models.JSONField(db_default=[], default=list)),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["-received_at", "-id"], name="delivery_newest_first"),
                    models.Index(
                        condition=models.Q(("valid_at__isnull", False)),
                        fields=["valid_at"],
                        name="delivery_valid_by_time",
                    ),
                    models.Index(
                        condition=models.Q(("verdict", "valid"), _negated=True),
                        fields=["id"],
                        name="delivery_not_valid",
                    ),
                    models.Index(
                        condition=models.Q(("check_due_at__isnull", False)),
                        fields=["id"],
                        name="delivery_check_due",
                    ),
                    models.Index(
                        condition=models.Q(("transaction_id", ""), _negated=True),
                        fields=["transaction_id", "event_at"],
                        name="delivery_transaction",
                    ),
                    models.Index(
                        condition=models.Q(("reference", ""), _negated=True),
                        fields=["reference", "event_at"],
                        name="delivery_reference",
                    ),
                    models.Index(
                        condition=models.Q(("verdict", "test")), fields=["id"], name="delivery_test"
                    ),
                    models.Index(fields=["digest"], name="delivery_digest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="DeliveryTestKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_pem", models.TextField()),
                ("made_at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="webhooks_one_test_key")
                ],
            },
        ),
    ]
