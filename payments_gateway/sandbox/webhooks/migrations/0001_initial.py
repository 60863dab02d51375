import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="DeliveryFault",
            fields=[
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("duplicate", "sent more than once"),
                            ("reorder", "held, then sent in reverse"),
                            ("delay", "sent late"),
                            ("forge", "forged"),
                        ],
                        max_length=16,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("left", models.PositiveIntegerField(default=0)),
                ("applied", models.PositiveIntegerField(default=0)),
                ("copies", models.PositiveIntegerField(default=0)),
                ("seconds", models.FloatField(default=0)),
                (
                    "forgery",
                    models.CharField(
                        choices=[
                            ("wrong_signature", "random bytes for a signature"),
                            ("stranger", "signed by a key that nobody knows"),
                            ("unsigned", "no signature"),
                            ("malformed", "a body that is cut in the middle"),
                            ("tampered_data", "data changed after signing"),
                            (
                                "tampered_event",
                                "event changed after signing: the signature does not cover it",
                            ),
                        ],
                        default="",
                        max_length=16,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("private_pem", models.TextField()),
                ("made_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("event", models.CharField(max_length=80)),
                ("data", models.TextField()),
                ("url", models.TextField()),
                ("announced_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("held", "held"),
                            ("delivered", "delivered"),
                            ("given up", "given up"),
                            ("not delivered", "not delivered"),
                        ],
                        default="waiting",
                        max_length=16,
                    ),
                ),
                ("reason", models.TextField(default="")),
                ("due_at", models.DateTimeField()),
                ("place", models.BigIntegerField(null=True)),
                ("copies", models.PositiveIntegerField(default=0)),
                ("failures", models.PositiveIntegerField(default=0)),
                (
                    "forgery",
                    models.CharField(
                        choices=[
                            ("wrong_signature", "random bytes for a signature"),
                            ("stranger", "signed by a key that nobody knows"),
                            ("unsigned", "no signature"),
                            ("malformed", "a body that is cut in the middle"),
                            ("tampered_data", "data changed after signing"),
                            (
                                "tampered_event",
                                "event changed after signing: the signature does not cover it",
                            ),
                        ],
                        default="",
                        max_length=16,
                    ),
                ),
                ("body", models.TextField(default="")),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["due_at"],
                        name="delivery_still_waiting",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("status", models.PositiveIntegerField(null=True)),
                ("reason", models.TextField(default="")),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="webhooks.delivery",
                    ),
                ),
            ],
        ),
    ]
