"""What an answer had named before it was told apart from what was taken for ours: the audit log knows."""

from django.db import migrations
from django.db.models import F


def tell(apps, _schema_editor):
    attempts = apps.get_model("operations", "Attempt").objects
    entries = apps.get_model("audit", "Entry").objects.filter(target_type="operations.operation")
    for attempt in attempts.filter(closed_at=None, named_at=None).exclude(service_transaction_id=None):
        of_this = entries.filter(target_id=str(attempt.operation_id)).values_list("detail", flat=True)
        if any(detail.get("named_transaction_id") == attempt.service_transaction_id for detail in of_this):
            attempts.filter(pk=attempt.pk).update(named_at=F("started_at"))


class Migration(migrations.Migration):
    dependencies = [("operations", "0016_reconciliation"), ("audit", "0002_append_only")]

    operations = [migrations.RunPython(tell, migrations.RunPython.noop)]
