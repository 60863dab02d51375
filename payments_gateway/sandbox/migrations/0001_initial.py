import datetime

import django.db.models.deletion
import django.db.models.expressions
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Transaction",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("transaction_id", models.CharField(max_length=32, unique=True)),
                ("currency", models.CharField(max_length=8)),
                ("type", models.CharField(max_length=16)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("processing", "processing"),
                            ("fullfiled", "fullfiled"),
                            ("failed", "failed"),
                        ],
                        max_length=16,
                    ),
                ),
                ("amount", models.BigIntegerField()),
                ("fee", models.BigIntegerField()),
                ("previous_balance", models.BigIntegerField()),
                ("incoming", models.BooleanField()),
                ("sender", models.CharField(max_length=120)),
                ("username", models.CharField(max_length=120)),
                ("from_currency", models.CharField(max_length=8)),
                ("from_amount", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["currency", "type", "amount"], name="transaction_amounts"),
                    models.Index(fields=["type"], name="transaction_by_type"),
                    models.Index(fields=["created_at"], name="transaction_by_time"),
                    models.Index(
                        condition=models.Q(("status", "processing")),
                        fields=["status"],
                        name="transaction_still_processing",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("amount__gt", 0), ("fee__gte", 0)), name="amounts_are_unsigned"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Account",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("owner", models.CharField(max_length=16)),
                ("currency", models.CharField(max_length=8)),
                ("balance", models.BigIntegerField(default=0)),
                ("received", models.BigIntegerField(default=0)),
                ("sent", models.BigIntegerField(default=0)),
                ("transactions", models.BigIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "currency"), name="one_account_per_owner_and_currency"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "balance",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("received"), "-", models.F("sent")
                                ),
                            )
                        ),
                        name="balance_is_the_difference",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("owner", "merchant"), _negated=True),
                            ("balance__gte", 0),
                            _connector="OR",
                        ),
                        name="merchant_not_below_zero",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Payment",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("payment_id", models.CharField(max_length=32, unique=True)),
                ("reference", models.CharField(max_length=120, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("unconfirmed", "unconfirmed"),
                            ("processing", "processing"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("underpaid", "underpaid"),
                            ("expired", "expired"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("incoming_currency", models.CharField(max_length=8)),
                ("incoming_amount", models.BigIntegerField()),
                ("outgoing_currency", models.CharField(max_length=8)),
                ("outgoing_amount", models.BigIntegerField()),
                ("confirmed_amount", models.BigIntegerField(default=0)),
                ("unconfirmed_amount", models.BigIntegerField(default=0)),
                ("rate", models.CharField(max_length=40)),
                ("address", models.CharField(max_length=80)),
                ("customer_email", models.CharField(max_length=254)),
                ("payment_type", models.CharField(max_length=16)),
                ("service_username", models.CharField(max_length=120)),
                ("country", models.CharField(max_length=120)),
                ("account_number", models.CharField(max_length=10)),
                ("account_name", models.CharField(max_length=120)),
                ("bank", models.CharField(max_length=120)),
                ("bank_code", models.CharField(max_length=6)),
                ("will_fail", models.BooleanField(default=False)),
                ("expires_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)),
                        fields=["due_at"],
                        name="payment_still_open",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("incoming_amount__gt", 0), ("outgoing_amount__gt", 0)),
                        name="payment_of_something",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "transaction",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="sandbox.transaction",
                    ),
                ),
                (
                    "payment",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="sandbox.payment",
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="sandbox.account",
                    ),
                ),
                ("amount", models.BigIntegerField()),
            ],
            options={
                "verbose_name_plural": "entries",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("payment__isnull", True), ("transaction__isnull", False)),
                            models.Q(("payment__isnull", False), ("transaction__isnull", True)),
                            _connector="OR",
                        ),
                        name="entry_of_a_transaction_or_a_payment",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Arrival",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("amount", models.BigIntegerField()),
                ("arrived_at", models.DateTimeField()),
                (
                    "payment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="arrivals",
                        to="sandbox.payment",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Simulation",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("seed", models.BigIntegerField()),
                ("seeded_until", models.DateTimeField()),
                ("last_seeded_id", models.BigIntegerField()),
                ("totp_secret", models.CharField(max_length=64)),
                ("last_totp_step", models.BigIntegerField(default=0)),
                ("one_time_code", models.CharField(max_length=6)),
                ("settle_after", models.FloatField(null=True)),
                ("token_required", models.BooleanField(default=True)),
                ("token_reuse", models.BooleanField(default=False)),
                ("fail_next", models.PositiveIntegerField(default=0)),
                ("clock_ahead", models.DurationField(default=datetime.timedelta)),
                ("customer_pays_after", models.FloatField(null=True)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="one_simulation")],
            },
        ),
        migrations.CreateModel(
            name="Transfer",
            fields=[
                ("will_fail", models.BooleanField(default=False)),
                (
                    "transaction",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="transfer",
                        serialize=False,
                        to="sandbox.transaction",
                    ),
                ),
                ("receiver", models.CharField(max_length=120)),
                ("memo", models.CharField(max_length=28)),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="WalletTransfer",
            fields=[
                ("will_fail", models.BooleanField(default=False)),
                (
                    "transaction",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="wallet_transfer",
                        serialize=False,
                        to="sandbox.transaction",
                    ),
                ),
                ("network", models.CharField(max_length=16)),
                ("address", models.CharField(max_length=128)),
                ("wallet_type", models.CharField(max_length=120)),
                ("memo", models.CharField(max_length=120)),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Withdrawal",
            fields=[
                ("will_fail", models.BooleanField(default=False)),
                (
                    "transaction",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="withdrawal",
                        serialize=False,
                        to="sandbox.transaction",
                    ),
                ),
                ("account_number", models.CharField(max_length=10)),
                ("account_name", models.CharField(max_length=120)),
                ("bank", models.CharField(max_length=80)),
                ("bank_code", models.CharField(max_length=6)),
            ],
            options={
                "abstract": False,
            },
        ),
    ]
