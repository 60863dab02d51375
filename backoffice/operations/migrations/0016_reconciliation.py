"""Verdicts of the reconciliation, their sums, and incidents about movements that are no operation's."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import backoffice.core.fields


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0006_find_transactions"),
        ("operations", "0015_named_or_taken"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Comparison",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("matched", "Matched"),
                            ("different", "Different"),
                            ("missing_there", "Missing there"),
                            ("unknown_to_us", "Unknown to us"),
                            ("too_early", "Too early to tell"),
                        ],
                        max_length=16,
                    ),
                ),
                ("occurred_at", models.DateTimeField()),
                ("day", models.DateField()),
                ("currency", models.TextField()),
                ("amount", backoffice.core.fields.MagnitudeField()),
                ("fee", backoffice.core.fields.ExactDecimalField(null=True)),
                ("difference", models.TextField(blank=True)),
                ("needs_telling", models.BooleanField(default=False)),
            ],
            options={
                "ordering": ("-occurred_at", "-id"),
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Reconciliation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("begins_at", models.DateTimeField(null=True)),
                ("at", models.DateTimeField(null=True)),
                ("mirror_as_of", models.DateTimeField(null=True)),
                ("rows_to", models.BigIntegerField(default=0)),
                ("changes_to", models.BigIntegerField(default=0)),
                ("entries_to", models.BigIntegerField(default=0)),
                ("walk_begun_at", models.DateTimeField(null=True)),
                ("walk_attempts_to", models.BigIntegerField(null=True)),
                ("walk_rows_to", models.BigIntegerField(null=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="VerdictTotal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("currency", models.TextField()),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("matched", "Matched"),
                            ("different", "Different"),
                            ("missing_there", "Missing there"),
                            ("unknown_to_us", "Unknown to us"),
                            ("too_early", "Too early to tell"),
                        ],
                        max_length=16,
                    ),
                ),
                ("count", models.BigIntegerField()),
                ("amount", backoffice.core.fields.SumField()),
                ("fee", backoffice.core.fields.SumField()),
            ],
            options={
                "ordering": ("-day", "currency", "verdict"),
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="incident",
            name="transaction",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="incident",
                to="ledger.transaction",
            ),
        ),
        migrations.AlterField(
            model_name="incident",
            name="operation",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="incidents",
                to="operations.operation",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("operation__isnull", True), ("transaction__isnull", False)),
                    models.Q(("operation__isnull", False), ("transaction__isnull", True)),
                    _connector="OR",
                ),
                name="incident_is_about_one_thing",
            ),
        ),
        migrations.AddField(
            model_name="comparison",
            name="attempt",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="comparison",
                to="operations.attempt",
            ),
        ),
        migrations.AddField(
            model_name="comparison",
            name="transaction",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="comparison",
                to="ledger.transaction",
            ),
        ),
        migrations.AddConstraint(
            model_name="reconciliation",
            constraint=models.CheckConstraint(condition=models.Q(("pk", 1)), name="reconciliation_one_row"),
        ),
        migrations.AddConstraint(
            model_name="verdicttotal",
            constraint=models.UniqueConstraint(
                fields=("day", "currency", "verdict"), name="verdict_total_once"
            ),
        ),
        migrations.AddIndex(
            model_name="comparison",
            index=models.Index(fields=["-occurred_at", "-id"], name="comparison_newest"),
        ),
        migrations.AddIndex(
            model_name="comparison",
            index=models.Index(fields=["verdict", "-occurred_at", "-id"], name="comparison_by_verdict"),
        ),
        migrations.AddIndex(
            model_name="comparison",
            index=models.Index(
                condition=models.Q(("needs_telling", True)), fields=["id"], name="comparison_needs_telling"
            ),
        ),
        migrations.AddConstraint(
            model_name="comparison",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("attempt__isnull", False), ("transaction__isnull", False), _connector="OR"
                ),
                name="comparison_is_of_something",
            ),
        ),
        migrations.AddConstraint(
            model_name="comparison",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("verdict__in", ["matched", "different", "missing_there", "unknown_to_us", "too_early"])
                ),
                name="comparison_verdict_known",
            ),
        ),
    ]
