"""What people state about a stopped payment is sealed, and a release names the attempt that it orders.

All columns are null in the rows of the previous release, which inserts rows without them.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0018_recipient_imports"),
    ]

    operations = [
        migrations.AddField(
            model_name="holderchange",
            name="seal",
            field=models.TextField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="lookalike",
            name="seal",
            field=models.TextField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="release",
            name="attempt_number",
            field=models.PositiveSmallIntegerField(editable=False, null=True),
        ),
    ]
