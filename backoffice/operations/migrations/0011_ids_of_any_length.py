"""The service does not say how long its ids are: one that is longer than was thought must not keep anything from leaving.

SQLite holds no column to a length, so nothing changes there: the change would build the table anew, and a trigger of
another table reads it (0007). Going back is possible as long as no longer id is stored.
"""

from django.db import migrations, models


class WidenColumn(migrations.AlterField):
    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    dependencies = [("operations", "0010_what_keeps_a_release_waiting")]

    operations = [
        WidenColumn("attempt", "watermark_transaction_id", models.TextField(blank=True)),
        WidenColumn(
            "attempt",
            "service_transaction_id",
            models.CharField(max_length=500, null=True, unique=True),
        ),
    ]
