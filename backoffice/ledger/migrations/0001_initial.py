import django.db.models.deletion
from django.db import migrations, models

import backoffice.core.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Balance",
            fields=[
                ("currency", models.CharField(max_length=12, primary_key=True, serialize=False)),
                ("amount", backoffice.core.fields.ExactDecimalField()),
                ("total_received", backoffice.core.fields.ExactDecimalField()),
                ("total_sent", backoffice.core.fields.ExactDecimalField()),
                ("transaction_count", models.BigIntegerField()),
                ("as_of", models.DateTimeField()),
            ],
            options={
                "ordering": ("currency",),
                "permissions": [("view_transaction", "Can view transactions")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="ContinuityCheck",
            fields=[
                ("currency", models.TextField(primary_key=True, serialize=False)),
                ("checked_until", models.DateTimeField(null=True)),
                ("completed_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Sighting",
            fields=[
                ("transaction_id", models.BigIntegerField(primary_key=True, serialize=False)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="BalanceSnapshot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("currency", models.CharField(max_length=12)),
                ("slot", models.DateTimeField()),
                ("amount", backoffice.core.fields.ExactDecimalField()),
                ("total_received", backoffice.core.fields.ExactDecimalField()),
                ("total_sent", backoffice.core.fields.ExactDecimalField()),
                ("transaction_count", models.BigIntegerField()),
                ("as_of", models.DateTimeField()),
            ],
            options={
                "ordering": ("-as_of", "-id"),
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["slot"], name="balance_snapshot_by_slot"),
                    models.Index(fields=["-as_of", "-id"], name="balance_snapshot_newest"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("currency", "slot"), name="balance_snapshot_once_per_slot"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Facet",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("currency", models.TextField()),
                ("type", models.TextField()),
                ("status", models.TextField()),
                ("direction", models.TextField()),
            ],
            options={
                "ordering": ("currency", "type", "status", "direction"),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("currency", "type", "status", "direction"), name="facet_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Mirror",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rows", models.BigIntegerField(default=0)),
                ("provider_count", models.BigIntegerField(null=True)),
                ("as_of", models.DateTimeField(null=True)),
                ("provider_time", models.DateTimeField(null=True)),
                ("loaded_at", models.DateTimeField(null=True)),
                ("error", models.JSONField(default=dict)),
                ("error_at", models.DateTimeField(null=True)),
                ("round_begun_at", models.DateTimeField(null=True)),
                ("sync_requested_at", models.DateTimeField(null=True)),
                (
                    "pass_depth",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("whole", "the whole list"),
                            ("count", "the whole list, noting each record, to find those that left it"),
                        ],
                        max_length=5,
                    ),
                ),
                ("pass_begun_at", models.DateTimeField(null=True)),
                ("pass_page", models.BigIntegerField(default=1)),
                ("pass_pages", models.BigIntegerField(default=0)),
                ("pass_total", models.BigIntegerField(default=0)),
                ("pass_read", models.BigIntegerField(default=0)),
                ("pass_tries", models.PositiveSmallIntegerField(default=0)),
                ("full_pass_ended_at", models.DateTimeField(null=True)),
                ("full_pass_begun_at", models.DateTimeField(null=True)),
                ("day_begun_at", models.DateTimeField(null=True)),
                ("day_page", models.BigIntegerField(default=1)),
                ("day_total", models.BigIntegerField(default=0)),
                ("day_pass_begun_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.CheckConstraint(condition=models.Q(("pk", 1)), name="mirror_one_row")],
            },
        ),
        migrations.CreateModel(
            name="Transaction",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("transaction_id", models.TextField()),
                ("currency", models.TextField()),
                ("type", models.TextField()),
                ("status", models.TextField()),
                ("direction", models.TextField()),
                ("occurred_at", models.DateTimeField()),
                ("created_at", models.DateTimeField(null=True)),
                ("updated_at", models.DateTimeField(null=True)),
                ("date", models.TextField()),
                ("amount", backoffice.core.fields.UnsignedDecimalField()),
                ("fee", backoffice.core.fields.ExactDecimalField(null=True)),
                ("previous_balance", backoffice.core.fields.ExactDecimalField(null=True)),
                ("sender_previous_balance", backoffice.core.fields.ExactDecimalField(null=True)),
                ("from_amount", backoffice.core.fields.ExactDecimalField(null=True)),
                ("from_currency", models.TextField()),
                ("sender", models.TextField()),
                ("username", models.TextField()),
                ("counterparty", models.TextField()),
                ("is_from_registered_user", models.BooleanField(null=True)),
                ("business_id", models.TextField()),
                ("version", models.TextField()),
                ("digest", models.BinaryField()),
                ("first_seen_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField(null=True)),
                ("missing_since", models.DateTimeField(null=True)),
                (
                    "facet",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.facet",
                    ),
                ),
            ],
            options={
                "ordering": ("-occurred_at", "-id"),
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="BalanceBreak",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("currency", models.TextField()),
                ("at", models.DateTimeField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("gap", "Missing transaction"),
                            ("vanished", "Transaction no longer listed"),
                            ("changed", "Transaction changed"),
                            ("fee", "Fee not deducted"),
                            ("unmoved", "Balance not changed"),
                        ],
                        max_length=8,
                    ),
                ),
                ("expected", backoffice.core.fields.DecimalSumField()),
                ("found", backoffice.core.fields.ExactDecimalField()),
                ("difference", backoffice.core.fields.DecimalSumField()),
                ("direction", models.TextField()),
                ("detected_at", models.DateTimeField()),
                (
                    "after",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="broken_chain",
                        to="ledger.transaction",
                    ),
                ),
                (
                    "before",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="ledger.transaction",
                    ),
                ),
            ],
            options={
                "ordering": ("-at", "-id"),
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="TransactionChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seen_at", models.DateTimeField()),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
                (
                    "transaction",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="ledger.transaction",
                    ),
                ),
            ],
            options={
                "ordering": ("-seen_at", "-id"),
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="DayTotal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("count", models.BigIntegerField()),
                ("amount", backoffice.core.fields.DecimalSumField()),
                ("fee", backoffice.core.fields.DecimalSumField()),
                (
                    "facet",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.facet",
                    ),
                ),
            ],
            options={
                "ordering": ("-day", "facet"),
                "default_permissions": (),
                "indexes": [models.Index(fields=["facet", "day"], name="day_total_by_facet")],
                "constraints": [models.UniqueConstraint(fields=("day", "facet"), name="day_total_once")],
            },
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["-occurred_at", "-id"], name="transaction_newest"),
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["facet", "occurred_at", "id", "amount"], name="transaction_by_facet"),
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["facet", "amount", "id", "occurred_at"], name="transaction_by_amount"),
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["currency", "occurred_at", "id"], name="transaction_by_currency"),
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(
                condition=models.Q(
                    ("previous_balance__isnull", True),
                    ("created_at__isnull", True),
                    ("direction", ""),
                    _connector="OR",
                ),
                fields=["currency", "occurred_at"],
                name="transaction_unplaceable",
            ),
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(
                condition=models.Q(("missing_since__isnull", False)),
                fields=["missing_since"],
                name="transaction_missing",
            ),
        ),
        migrations.AddConstraint(
            model_name="transaction",
            constraint=models.UniqueConstraint(fields=("transaction_id",), name="transaction_once"),
        ),
        migrations.AddIndex(
            model_name="balancebreak",
            index=models.Index(fields=["currency", "at", "id"], name="break_by_currency"),
        ),
        migrations.AddIndex(
            model_name="balancebreak",
            index=models.Index(fields=["-at", "-id"], name="break_newest"),
        ),
        migrations.AddIndex(
            model_name="transactionchange",
            index=models.Index(fields=["-seen_at", "-id"], name="transaction_change_newest"),
        ),
    ]
