"""People: accounts, sessions, second factors, groups, and the changes of rights.

The members of a group come after it, because the model of a membership needs both. Fields are in the order that the columns
have in 0.1.0 on PostgreSQL: the expected rules of the database hold the numbers of columns.
"""

import uuid

import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import backoffice.accounts.models


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("accounts", "0001_initial"),
        ("accounts", "0002_setup_links_and_break_glass"),
        ("accounts", "0003_staff_groups"),
        ("accounts", "0004_rights_grants_and_start_codes"),
        ("accounts", "0005_one_person_alone"),
    ]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                ("email", models.EmailField(max_length=254, unique=True, verbose_name="email address")),
                ("full_name", models.CharField(max_length=120)),
                ("is_active", models.BooleanField(default=True)),
                (
                    "time_zone",
                    models.CharField(
                        default="Africa/Lagos",
                        max_length=64,
                        validators=[backoffice.accounts.models.validate_time_zone],
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        choices=[("auto", "Same as browser"), ("en", "English"), ("fr", "Français")],
                        default="auto",
                        max_length=5,
                    ),
                ),
                (
                    "theme",
                    models.CharField(
                        choices=[("auto", "Same as device"), ("light", "Light"), ("dark", "Dark")],
                        default="auto",
                        max_length=5,
                    ),
                ),
                ("recovery_codes_stored_at", models.DateTimeField(editable=False, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "ordering": ["full_name", "pk"],
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("email", django.db.models.functions.text.Lower("email"))),
                        name="user_email_in_lower_case",
                    )
                ],
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
                            (
                                "invited_alone",
                                "The account of {person}, an administrator, was created by the first administrator alone",
                            ),
                        ],
                        max_length=32,
                    ),
                ),
                ("roles", models.JSONField(default=list)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("os_user", models.CharField(blank=True, max_length=255)),
                ("host", models.CharField(blank=True, max_length=255)),
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
                (
                    "invited_by",
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
                            (
                                "change__in",
                                [
                                    "created",
                                    "roles_changed",
                                    "reactivated",
                                    "deactivated",
                                    "password_reset",
                                    "second_factor_reset",
                                    "invited_alone",
                                ],
                            )
                        ),
                        name="break_glass_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                models.Q(("change", "invited_alone"), _negated=True),
                                ("invited_by__isnull", True),
                                models.Q(("reason", ""), _negated=True),
                                models.Q(("os_user", ""), _negated=True),
                                models.Q(("host", ""), _negated=True),
                            ),
                            models.Q(
                                ("change", "invited_alone"),
                                ("host", ""),
                                ("invited_by__isnull", False),
                                ("os_user", ""),
                                ("reason", ""),
                            ),
                            _connector="OR",
                        ),
                        name="break_glass_with_origin",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("acknowledged_by__isnull", True),
                            models.Q(
                                models.Q(("acknowledged_by", models.F("user")), _negated=True),
                                models.Q(
                                    ("invited_by__isnull", True),
                                    models.Q(("acknowledged_by", models.F("invited_by")), _negated=True),
                                    _connector="OR",
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="break_glass_acknowledged_by_another_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RightsGrant",
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
                            (
                                "invited_alone",
                                "The account of {person}, an administrator, was created by the first administrator alone",
                            ),
                        ],
                        max_length=32,
                    ),
                ),
                ("roles", models.JSONField(default=list)),
                ("groups", models.JSONField(default=list)),
                ("at", models.DateTimeField()),
                ("operation", models.UUIDField(null=True)),
                (
                    "approved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "prepared_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="grants",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-at", "-pk"),
                "default_permissions": (),
                "indexes": [models.Index(fields=["user", "at"], name="rights_grant_restriction")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("approved_by__isnull", True),
                                ("change", "created"),
                                ("operation__isnull", True),
                            ),
                            models.Q(("approved_by__isnull", False), ("operation__isnull", False)),
                            _connector="OR",
                        ),
                        name="rights_grant_by_two_people",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("prepared_by", models.F("user")), _negated=True),
                            models.Q(
                                ("approved_by__isnull", True),
                                models.Q(
                                    models.Q(("approved_by", models.F("user")), _negated=True),
                                    models.Q(("approved_by", models.F("prepared_by")), _negated=True),
                                ),
                                _connector="OR",
                            ),
                        ),
                        name="rights_grant_by_other_people",
                    ),
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
                                    "invited_alone",
                                ],
                            )
                        ),
                        name="rights_grant_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AccessReview",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("operation", models.UUIDField(unique=True)),
                ("signed_at", models.DateTimeField()),
                ("digest", models.CharField(max_length=64)),
                ("rows", models.JSONField()),
                (
                    "approved_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "prepared_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-signed_at", "-pk"),
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("prepared_by", models.F("approved_by")), _negated=True),
                        name="access_review_by_two_people",
                    )
                ],
            },
        ),
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
                ("code_digest", models.CharField(blank=True, editable=False, max_length=64)),
                (
                    "code_for",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("code_shown_at", models.DateTimeField(editable=False, null=True)),
                (
                    "link_for",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("link_shown_at", models.DateTimeField(editable=False, null=True)),
                ("operation", models.UUIDField(editable=False, null=True, unique=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("code_digest", ""), ("operation__isnull", True)),
                            models.Q(
                                ("code_for__isnull", False),
                                ("link_for__isnull", False),
                                ("operation__isnull", False),
                                models.Q(("code_digest", ""), _negated=True),
                                models.Q(("link_for", models.F("code_for")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="setup_link_of_two_people",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StaffGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("created_at", models.DateTimeField(editable=False)),
                ("retired_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "ordering": ("name", "pk"),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        condition=models.Q(("retired_at__isnull", True)),
                        name="staff_group_name_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True), name="staff_group_has_a_name"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GroupMembership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("since", models.DateTimeField(editable=False)),
                ("operation", models.UUIDField(editable=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to="accounts.staffgroup",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("group", "user"), name="group_membership_once")
                ],
            },
        ),
        migrations.AddField(
            model_name="staffgroup",
            name="members",
            field=models.ManyToManyField(
                related_name="staff_groups", through="accounts.GroupMembership", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.CreateModel(
            name="AuthenticatorDevice",
            fields=[
                ("confirmed", models.BooleanField(default=True, help_text="Is this device ready for use?")),
                (
                    "throttling_failure_timestamp",
                    models.DateTimeField(
                        blank=True,
                        default=None,
                        help_text="A timestamp of the last failed verification attempt. Null if last attempt succeeded.",
                        null=True,
                    ),
                ),
                (
                    "throttling_failure_count",
                    models.PositiveIntegerField(default=0, help_text="Number of successive failed attempts."),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        auto_now_add=True,
                        help_text="The date and time when this device was initially created in the system.",
                        null=True,
                    ),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(
                        blank=True, help_text="The most recent date and time this device was used.", null=True
                    ),
                ),
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(default="Authenticator", max_length=64)),
                ("encrypted_seed", models.BinaryField()),
                ("last_t", models.BigIntegerField(default=-1, editable=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="authenticators",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("user", "confirmed"), name="authenticator_once_per_state")
                ],
            },
        ),
        migrations.CreateModel(
            name="RecoveryCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("used_at", models.DateTimeField(editable=False, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="recovery_codes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="StaffSession",
            fields=[
                (
                    "session_key",
                    models.CharField(
                        max_length=40, primary_key=True, serialize=False, verbose_name="session key"
                    ),
                ),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                ("created_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("address", models.CharField(blank=True, max_length=64)),
                ("user_agent", models.CharField(blank=True, max_length=255)),
                (
                    "device",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to="accounts.authenticatordevice",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]
