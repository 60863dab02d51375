"""Reports: scheduled ones, and the jobs that export them."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import backoffice.accounts.models
import backoffice.reports.models


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("reports", "0001_initial"),
        ("reports", "0002_last_7_days"),
    ]
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("report", models.CharField(max_length=40)),
                ("filters", models.JSONField(default=backoffice.reports.models._no_filters)),
                ("columns", models.JSONField(default=list)),
                (
                    "format",
                    models.CharField(
                        choices=[("csv", "CSV"), ("xlsx", "Excel (XLSX)")], default="csv", max_length=4
                    ),
                ),
                ("has_byte_order_mark", models.BooleanField(default=False)),
                (
                    "period",
                    models.CharField(
                        choices=[
                            ("all", "All records"),
                            ("yesterday", "Yesterday"),
                            ("last_week", "Last week (Monday to Sunday)"),
                            ("last_7_days", "Last 7 days until yesterday"),
                            ("last_month", "Last month"),
                            ("month_to_date", "This month until yesterday"),
                        ],
                        default="all",
                        max_length=16,
                    ),
                ),
                (
                    "frequency",
                    models.CharField(
                        choices=[
                            ("daily", "Every day"),
                            ("weekly", "Every week"),
                            ("monthly", "Every month"),
                        ],
                        max_length=8,
                    ),
                ),
                ("day", models.PositiveSmallIntegerField(default=1)),
                ("hour", models.PositiveSmallIntegerField()),
                (
                    "time_zone",
                    models.CharField(
                        max_length=64, validators=[backoffice.accounts.models.validate_time_zone]
                    ),
                ),
                ("language", models.CharField(default="en", max_length=5)),
                ("is_paused", models.BooleanField(default=False)),
                ("next_at", models.DateTimeField(db_index=True)),
                ("last_at", models.DateTimeField(null=True)),
                ("last_obstacles", models.JSONField(default=list)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("recipients", models.ManyToManyField(related_name="+", to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "ordering": ("name", "pk"),
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("hour__lt", 24)), name="schedule_hour_below_24"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ExportJob",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("report", models.CharField(max_length=40)),
                ("filters", models.JSONField(default=backoffice.reports.models._no_filters)),
                ("columns", models.JSONField(default=list)),
                (
                    "format",
                    models.CharField(
                        choices=[("csv", "CSV"), ("xlsx", "Excel (XLSX)")], default="csv", max_length=4
                    ),
                ),
                ("has_byte_order_mark", models.BooleanField(default=False)),
                ("time_zone", models.CharField(max_length=64)),
                ("language", models.CharField(default="en", max_length=5)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("expired", "Expired"),
                            ("removed", "Deleted"),
                        ],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("rows", models.PositiveBigIntegerField(default=0)),
                ("estimate", models.PositiveBigIntegerField(null=True)),
                ("failure", models.JSONField(default=dict)),
                ("name", models.CharField(blank=True, max_length=120)),
                ("stored_as", models.CharField(blank=True, max_length=80)),
                ("size", models.PositiveBigIntegerField(null=True)),
                ("sha256", models.CharField(blank=True, max_length=64)),
                ("covers_until", models.DateTimeField(null=True)),
                ("as_of", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("runner", models.CharField(blank=True, max_length=40)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("due_at", models.DateTimeField(null=True)),
                ("mail_due_at", models.DateTimeField(null=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="exports",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="exports",
                        to="reports.schedule",
                    ),
                ),
            ],
            options={
                "ordering": ("-created_at", "-id"),
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["person", "-created_at", "-id"], name="export_by_person"),
                    models.Index(
                        condition=models.Q(("state__in", ["running", "waiting"])),
                        fields=["created_at"],
                        name="export_active",
                    ),
                    models.Index(
                        condition=models.Q(("state", "done")), fields=["expires_at"], name="export_done"
                    ),
                    models.Index(
                        condition=models.Q(("mail_due_at__isnull", False)),
                        fields=["mail_due_at"],
                        name="export_mail_due",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("schedule", "due_at", "person"), name="export_once_per_due_time"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                ["waiting", "running", "done", "failed", "cancelled", "expired", "removed"],
                            )
                        ),
                        name="export_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "done"), _negated=True),
                            models.Q(
                                ("size__isnull", False),
                                models.Q(("sha256", ""), _negated=True),
                                models.Q(("stored_as", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="export_done_has_a_file",
                    ),
                ],
            },
        ),
    ]
