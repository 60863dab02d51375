"""The breaks of the balances, and how far they were checked."""

import django.db.models.deletion
from django.db import migrations, models

import backoffice.core.fields


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0010_sums_of_what_is_listed"),
    ]

    operations = [
        migrations.CreateModel(
            name="BookCheck",
            fields=[
                ("currency", models.TextField(primary_key=True, serialize=False)),
                ("reached", models.DateTimeField(null=True)),
                ("whole_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Break",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("currency", models.TextField()),
                ("at", models.DateTimeField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("gap", "Something is missing"),
                            ("vanished", "A record has left the list"),
                            ("changed", "A record was changed"),
                            ("fee", "A fee was not taken"),
                            ("unmoved", "A record moved nothing"),
                        ],
                        max_length=8,
                    ),
                ),
                ("expected", backoffice.core.fields.SumField()),
                ("found", backoffice.core.fields.ExactDecimalField()),
                ("difference", backoffice.core.fields.SumField()),
                ("direction", models.TextField()),
                ("noticed_at", models.DateTimeField()),
            ],
            options={
                "ordering": ("-at", "-id"),
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="break",
            name="after",
            field=models.OneToOneField(
                db_constraint=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="broken_chain",
                to="ledger.transaction",
            ),
        ),
        migrations.AddField(
            model_name="break",
            name="before",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="ledger.transaction",
            ),
        ),
        migrations.AddIndex(
            model_name="break",
            index=models.Index(fields=["currency", "at", "id"], name="break_by_currency"),
        ),
        migrations.AddIndex(
            model_name="break",
            index=models.Index(fields=["-at", "-id"], name="break_newest"),
        ),
    ]
