"""Notifications, and the position in the audit log from which they begin: they tell of what happens from then on."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def start_at_the_head(apps, _schema_editor):
    head = apps.get_model("audit", "ChainHead").objects.filter(pk=1).first()
    position = head.position if head else 0
    apps.get_model("notifications", "AuditCursor").objects.get_or_create(
        pk=1, defaults={"position": position}
    )


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("notifications", "0001_initial"),
        ("notifications", "0002_read_the_log_from_here"),
    ]
    dependencies = [
        ("audit", "0001_squashed_0002_append_only"),
        ("accounts", "0001_squashed_0005_one_person_alone"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditCursor",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveBigIntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="notification_one_cursor")
                ],
            },
        ),
        migrations.CreateModel(
            name="Occurrence",
            fields=[
                ("key", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("event", models.CharField(max_length=200)),
                (
                    "notice",
                    models.CharField(
                        choices=[
                            ("waits", "Waits for your decision"),
                            ("expires_soon", "Expires soon and waits for your decision"),
                            ("escalated", "Has waited long for a decision"),
                            ("approved", "Approved"),
                            ("rejected", "Rejected"),
                            ("cancelled", "Cancelled"),
                            ("own_expires_soon", "Expires soon"),
                            ("expired", "Expired, not sent"),
                            ("succeeded", "Sent, and confirmed by the provider"),
                            ("applied", "Applied"),
                            ("failed", "Failed"),
                            ("returned", "Not executed: returned to approved"),
                            ("resolved", "Unknown outcome resolved by two people"),
                            ("outcome_unknown", "Outcome unknown"),
                            ("review", "Needs manual review"),
                            ("contradicted", "A response from the provider contradicts the record"),
                            ("attempt_lost", "A sent request is missing from the database"),
                            ("incident", "Incident"),
                            (
                                "discrepancy",
                                "Unexplained discrepancy between the provider's summary and its transactions",
                            ),
                            ("webhooks_silent", "Expected webhooks of the provider did not arrive"),
                            ("paused", "Payments paused"),
                            ("resumed", "Payments resumed"),
                            ("key_expires_30", "An API key expires in 30 days or less"),
                            ("key_expires_7", "An API key expires in 7 days or less"),
                            ("key_expires_1", "An API key expires in 1 day or less"),
                            ("export_ready", "Your export is ready to download"),
                            ("export_failed", "Your export failed"),
                            ("batch_finished", "Your batch is finished: check the result of each operation"),
                            ("password_changed", "The password of your account was changed"),
                            ("password_reset", "The password of your account was reset"),
                            ("setup_link_created", "A one-time link to set up your account was created"),
                            ("setup_link_used", "The one-time link to set up your account was used"),
                            (
                                "locked_out",
                                "Your account was locked for a while after too many wrong passwords",
                            ),
                            ("authenticator_enrolled", "An authenticator was set up for your account"),
                            ("second_factor_reset", "The second factor of your account was reset"),
                            ("recovery_code_used", "A recovery code of your account was used"),
                            ("recovery_codes_issued", "New recovery codes were generated for your account"),
                            ("session_ended", "A session of your account was ended"),
                            ("account_created", "An account was created for you"),
                            ("roles_changed", "The roles of your account were changed"),
                            ("deactivated", "Your account was deactivated"),
                            ("reactivated", "Your account was reactivated"),
                            ("break_glass", "One person changed your account on the server (break-glass)"),
                            (
                                "break_glass_acknowledged",
                                "The break-glass change of your account was acknowledged",
                            ),
                            ("channel_saved", "A chat channel was set for the notifications of your account"),
                            ("channel_deleted", "The chat channel of your account was deleted"),
                            ("team_account_created", "An account was created for a person"),
                            ("team_password_reset", "The password of a person's account was reset"),
                            ("team_second_factor_reset", "The second factor of a person was reset"),
                            ("team_roles_changed", "The roles of a person were changed"),
                            ("groups_changed", "The groups of your account were changed"),
                            ("team_groups_changed", "The groups of a person were changed"),
                            ("team_group_changed", "A group was created, renamed or retired"),
                            ("team_start_code_refused", "A wrong start code was entered for an account"),
                            ("policy_in_effect", "A new version of the approval policies is in effect"),
                            ("team_deactivated", "The account of a person was deactivated"),
                            ("team_reactivated", "The account of a person was reactivated"),
                            ("team_break_glass", "One person changed an account on the server (break-glass)"),
                            ("test", "Test message"),
                        ],
                        max_length=32,
                    ),
                ),
                (
                    "group",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting for you"),
                            ("decisions", "Decisions and expiry of your operations"),
                            ("outcomes", "Results of your operations"),
                            ("problems", "Unknown outcomes, incidents and discrepancies"),
                            ("payments", "Payments paused or resumed"),
                            ("keys", "API keys that expire"),
                            ("files", "Exports and batches"),
                            ("security", "Security and rights of your account"),
                        ],
                        max_length=16,
                    ),
                ),
                ("shared", models.CharField(blank=True, max_length=64)),
                (
                    "channel",
                    models.CharField(
                        choices=[("email", "Email"), ("chat", "Chat or push"), ("webhook", "Webhook")],
                        max_length=8,
                    ),
                ),
                ("at", models.DateTimeField()),
                ("operation", models.UUIDField(null=True)),
                ("path", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(null=True)),
                ("claim", models.CharField(blank=True, max_length=32)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("problem", models.JSONField(default=dict)),
                ("delivered_at", models.DateTimeField(null=True)),
                ("dropped_at", models.DateTimeField(null=True)),
                ("given_up_at", models.DateTimeField(null=True)),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)),
                        fields=["channel", "due_at"],
                        name="message_due",
                    ),
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)), fields=["claim"], name="message_claim"
                    ),
                    models.Index(
                        condition=models.Q(
                            ("delivered_at__isnull", True), ("dropped_at__isnull", True), ("tries__gt", 0)
                        ),
                        fields=["-id"],
                        name="message_undelivered",
                    ),
                    models.Index(fields=["created_at"], name="message_created"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("person__isnull", False)),
                        fields=("event", "person", "channel"),
                        name="message_once_per_person",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("person__isnull", True)),
                        fields=("event", "shared", "channel"),
                        name="message_once_per_shared_channel",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("person__isnull", False), ("shared", "")),
                            models.Q(("person__isnull", True), models.Q(("shared", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="message_to_a_person_or_shared",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("delivered_at__isnull", True),
                                ("dropped_at__isnull", True),
                                ("due_at__isnull", False),
                                ("given_up_at__isnull", True),
                            ),
                            ("due_at__isnull", True),
                            _connector="OR",
                        ),
                        name="message_due_until_it_ended",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Preference",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "group",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting for you"),
                            ("decisions", "Decisions and expiry of your operations"),
                            ("outcomes", "Results of your operations"),
                            ("problems", "Unknown outcomes, incidents and discrepancies"),
                            ("payments", "Payments paused or resumed"),
                            ("keys", "API keys that expire"),
                            ("files", "Exports and batches"),
                        ],
                        max_length=16,
                    ),
                ),
                ("by_email", models.BooleanField(default=True)),
                ("by_chat", models.BooleanField(default=True)),
                (
                    "digest",
                    models.CharField(
                        choices=[
                            ("at_once", "At once"),
                            ("hourly", "Every hour"),
                            ("daily", "Every day at 08:00"),
                        ],
                        default="at_once",
                        max_length=8,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notification_preferences",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("person", "group"), name="preference_once_per_group"),
                    models.CheckConstraint(
                        condition=models.Q(("group", "security"), _negated=True),
                        name="security_is_always_told",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ChatChannel",
            fields=[
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="chat_channel",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("service", models.CharField(max_length=64)),
                ("encrypted_url", models.BinaryField()),
                ("saved_at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.RunPython(start_at_the_head, migrations.RunPython.noop),
    ]
