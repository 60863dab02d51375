"""A row of a batch that retries another names the row that it prepares again, and keeps it."""

from django.db import migrations, models

from backoffice.core.database import triggers

KEEPS_RETRIED = triggers.Trigger(
    "batch_row_keeps_retried",
    "UPDATE",
    "operations_batchrow",
    "NEW.retried_number {is_distinct_from} OLD.retried_number",
    "it retries the same row",
)


def name_retried_rows(apps, schema_editor):
    """Of the batches that retried failed rows before: each row retries a failed one that pays the same, the corrected
    ones those that are left, in order.
    """
    batches, rows = apps.get_model("operations", "Batch"), apps.get_model("operations", "BatchRow")
    for batch in batches.objects.filter(retry_of__isnull=False):
        failed = list(
            rows.objects.filter(batch=batch.retry_of_id, operation__status="failed").order_by("number")
        )
        corrected, changed = [], []
        for row in rows.objects.filter(batch=batch.pk).order_by("number"):
            same = next((one for one in failed if payment(one) == payment(row)), None)
            if same is None:
                corrected.append(row)
                continue
            failed.remove(same)
            row.retried_number = same.number
            changed.append(row)
        for row, one in zip(corrected, failed, strict=False):
            row.retried_number = one.number
            changed.append(row)
        rows.objects.bulk_update(changed, ["retried_number"], batch_size=500)


def payment(row):
    return row.recipient_key, row.currency, row.amount


def create_trigger(apps, schema_editor):
    triggers.create(schema_editor, [KEEPS_RETRIED])


def drop_trigger(apps, schema_editor):
    triggers.drop(schema_editor, [KEEPS_RETRIED])


class Migration(migrations.Migration):
    dependencies = [("operations", "0022_checkpoint_overdue")]

    operations = [
        migrations.AddField("batchrow", "retried_number", models.PositiveIntegerField(null=True)),
        migrations.AddField("payoutfilerow", "retried_number", models.PositiveIntegerField(null=True)),
        migrations.RunPython(name_retried_rows, migrations.RunPython.noop),
        migrations.RunPython(create_trigger, drop_trigger),
    ]
