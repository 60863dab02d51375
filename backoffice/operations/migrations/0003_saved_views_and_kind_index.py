"""Saved filters become saved views; an index holds the operations of each kind in list order."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("operations", "0002_status_and_content_triggers"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="savedfilter", name="saved_filter_name_once_per_person"),
        migrations.RenameModel(old_name="SavedFilter", new_name="SavedView"),
        migrations.AlterField(
            model_name="savedview",
            name="person",
            field=models.ForeignKey(
                on_delete=models.deletion.PROTECT, related_name="saved_views", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(
                fields=("person", "name"), name="saved_view_name_once_per_person"
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(fields=["kind", "-prepared_at", "-id"], name="operation_by_kind"),
        ),
    ]
