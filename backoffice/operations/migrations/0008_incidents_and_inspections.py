"""Incidents that contradict what is on record, the last inspection of what must always hold, and the sweeper's rounds."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0007_pause_and_what_is_applied_here"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("job", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Inspection",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("begun_at", models.DateTimeField()),
                ("at", models.DateTimeField(null=True)),
                ("took", models.FloatField(default=0)),
                ("violations", models.JSONField(default=dict)),
                ("log_position", models.PositiveBigIntegerField(default=0)),
                ("log_hash", models.CharField(blank=True, max_length=64)),
                ("looked_to", models.UUIDField(null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="inspection_one_row")
                ],
            },
        ),
        migrations.CreateModel(
            name="Incident",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("what", models.CharField(max_length=200)),
                ("evidence", models.JSONField()),
                ("at", models.DateTimeField()),
                ("seen_at", models.DateTimeField(null=True)),
                ("note", models.CharField(blank=True, max_length=500)),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="incidents",
                        to="operations.operation",
                    ),
                ),
                (
                    "seen_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-at", "-pk"),
                "permissions": [
                    ("acknowledge_incident", "Can take note of incidents, saying what was found")
                ],
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["-at", "-id"], name="incident_newest"),
                    models.Index(
                        condition=models.Q(("seen_at__isnull", True)),
                        fields=["-at", "-id"],
                        name="incident_open",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("operation", "what"), name="incident_once_per_operation"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("note", ""), ("seen_at__isnull", True), ("seen_by__isnull", True)),
                            models.Q(
                                ("seen_at__isnull", False),
                                ("seen_by__isnull", False),
                                models.Q(("note", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="incident_seen_by_a_person_with_a_note",
                    ),
                ],
            },
        ),
    ]
