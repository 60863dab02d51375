"""Seals of passwords, authenticators and one-time links.

Those stored so far are sealed once, in the migration that adds the columns: an empty seal is never accepted, and
later nothing seals a row that was written from outside. Old processes go on beside it; what they store is not sealed.
"""

from typing import Any

from django.db import migrations, models

from backoffice.audit.canonical import canonical_time
from backoffice.core.encryption import seal_of


def seal_stored(apps: Any, _schema_editor: Any) -> None:
    """The content is written out, because it must not change with the models."""
    for user in apps.get_model("accounts", "User").objects.order_by("pk"):
        _store(user, {"password_of": user.pk, "password": user.password})
    for device in apps.get_model("accounts", "AuthenticatorDevice").objects.order_by("pk"):
        _store(device, {"authenticator": str(device.pk), "user": device.user_id})
    for link in apps.get_model("accounts", "SetupLink").objects.order_by("pk"):
        content = {
            "setup_link_of": link.user_id,
            "digest": link.digest,
            "code_digest": link.code_digest,
            "operation": link.operation and str(link.operation),
            "link_for": link.link_for_id,
            "code_for": link.code_for_id,
            "expires_at": canonical_time(link.expires_at),
        }
        _store(link, content)


def _store(row: Any, content: dict[str, object]) -> None:
    type(row).objects.filter(pk=row.pk).update(seal=seal_of(content))


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0007_changes_of_rights_stay"),
    ]

    operations = [
        migrations.AddField(
            model_name="user", name="seal", field=models.TextField(editable=False, null=True)
        ),
        migrations.AddField(
            model_name="authenticatordevice", name="seal", field=models.TextField(editable=False, null=True)
        ),
        migrations.AddField(
            model_name="setuplink", name="seal", field=models.TextField(editable=False, null=True)
        ),
        migrations.RunPython(seal_stored, migrations.RunPython.noop),
    ]
