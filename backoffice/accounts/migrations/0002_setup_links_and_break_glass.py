import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="SetupLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(editable=False)),
                ("expires_at", models.DateTimeField(editable=False)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="setup_link",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="BreakGlassChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "change",
                    models.CharField(
                        choices=[
                            ("created", "The account of {person} was created"),
                            ("roles_changed", "The roles of {person} were changed"),
                            ("reactivated", "The account of {person} was reactivated"),
                            ("deactivated", "The account of {person} was deactivated"),
                            ("password_reset", "The password of {person} was reset"),
                            ("second_factor_reset", "Password and second factor of {person} were reset"),
                        ],
                        max_length=32,
                    ),
                ),
                ("roles", models.JSONField(default=list)),
                ("reason", models.CharField(max_length=500)),
                ("os_user", models.CharField(max_length=255)),
                ("host", models.CharField(max_length=255)),
                ("at", models.DateTimeField()),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("note", models.CharField(blank=True, max_length=500)),
                (
                    "acknowledged_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="break_glass_changes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-at", "-pk"),
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["user", "at"], name="break_glass_restriction"),
                    models.Index(
                        condition=models.Q(("acknowledged_at__isnull", True)),
                        fields=["-at", "-id"],
                        name="break_glass_open",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "change__in",
                                [
                                    "created",
                                    "roles_changed",
                                    "reactivated",
                                    "deactivated",
                                    "password_reset",
                                    "second_factor_reset",
                                ],
                            )
                        ),
                        name="break_glass_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("reason", ""), _negated=True),
                            models.Q(("os_user", ""), _negated=True),
                            models.Q(("host", ""), _negated=True),
                        ),
                        name="break_glass_with_origin",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("acknowledged_at__isnull", True),
                                ("acknowledged_by__isnull", True),
                                ("note", ""),
                            ),
                            models.Q(
                                ("acknowledged_at__isnull", False),
                                ("acknowledged_by__isnull", False),
                                models.Q(("note", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="break_glass_acknowledged_by_a_person_with_a_note",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("acknowledged_by__isnull", True),
                            models.Q(("acknowledged_by", models.F("user")), _negated=True),
                            _connector="OR",
                        ),
                        name="break_glass_acknowledged_by_another_person",
                    ),
                ],
            },
        ),
    ]
