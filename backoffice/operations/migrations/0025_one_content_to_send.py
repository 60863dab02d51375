"""No equal operation beside one that is being sent, which may return to approved.

Old processes refuse an equal operation with an error page instead of a sentence, and continue a batch with an equal row
once the other is sent.
"""

from django.core.management import CommandError
from django.db import migrations, models

TO_SEND = ["approved", "pending", "sending"]


def check_no_pair(apps, schema_editor):
    """Raises CommandError for operations that the index would refuse, before anything of this migration remains."""
    operations = apps.get_model("operations", "Operation").objects.using(schema_editor.connection.alias)
    to_send = operations.filter(status__in=TO_SEND)
    pairs = (
        to_send.order_by("content_key").values("content_key").annotate(n=models.Count("pk")).filter(n__gt=1)
    )
    pair = pairs.first()
    if pair is None:
        return
    equal = to_send.filter(content_key=pair["content_key"]).order_by("reference")
    names = " and ".join(f"{one.reference} ({one.status})" for one in equal)
    raise CommandError(
        f"{names} have the same content, which this migration rules out while one of them is being sent. Nothing of it "
        "was done, and processes go on. Cancel the one that is not being sent, or wait until the other is sent. Then "
        "run manage.py migrate again."
    )


class Migration(migrations.Migration):
    dependencies = [("operations", "0024_bulk_release_refusal")]

    operations = [
        # First, since it locks the table: no such operation can be added between the check and the new index.
        migrations.RemoveConstraint("operation", "operation_content_pending_once"),
        migrations.RunPython(check_no_pair, migrations.RunPython.noop),
        migrations.AddConstraint(
            "operation",
            models.UniqueConstraint(
                fields=["content_key"],
                condition=models.Q(status__in=TO_SEND),
                name="operation_content_pending_once",
            ),
        ),
    ]
