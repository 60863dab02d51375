"""A look comes with every webhook, once a second for a day if need be: more than a small number can count.

SQLite counts as far as it is asked to, so nothing changes there (0011).
"""

from django.db import migrations, models


class WidenColumn(migrations.AlterField):
    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    dependencies = [("operations", "0017_named_before")]

    operations = [WidenColumn("attempt", "checks", models.PositiveIntegerField(default=0))]
