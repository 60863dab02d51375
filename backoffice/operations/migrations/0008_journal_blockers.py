# Why a release is not sent: its journal cannot be written, read or found

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0007_journal"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="release",
            name="release_blocked_has_time",
        ),
        migrations.AlterField(
            model_name="release",
            name="blocker",
            field=models.CharField(
                choices=[
                    ("provider_unreadable", "The provider could not be read. {error}"),
                    ("list_changing", "The provider's list changed during every read."),
                    (
                        "database_slow",
                        "The database responded too slowly, so the values checked before sending were out of date.",
                    ),
                    ("journal_unwritable", "The journal cannot be written: {error}."),
                    ("journal_unreadable", "The journal {file} cannot be read: {error}."),
                    (
                        "journal_gone",
                        "The journal {file} was deleted or replaced while Countersign was running. Bring it back, or restart all processes to begin a new one.",
                    ),
                    ("internal_error", "Internal error in Countersign ({error}). See the log."),
                ],
                editable=False,
                max_length=32,
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("blocked_since__isnull", True), ("blocker__isnull", True)),
                    models.Q(
                        ("blocked_since__isnull", False),
                        (
                            "blocker__in",
                            [
                                "provider_unreadable",
                                "list_changing",
                                "database_slow",
                                "journal_unwritable",
                                "journal_unreadable",
                                "journal_gone",
                                "internal_error",
                            ],
                        ),
                        ("blocker__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="release_blocked_has_time",
            ),
        ),
    ]
