from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="BankAccount",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=120)),
                ("printed_name", models.CharField(max_length=120)),
                ("currency", models.CharField(max_length=8)),
                ("account_number", models.CharField(max_length=10, unique=True)),
                ("bank_code", models.CharField(max_length=6)),
                ("status", models.CharField(default="ACTIVE", max_length=16)),
            ],
            options={
                "db_table": "merchant_bank_account",
            },
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("short_hash", models.CharField(max_length=8, unique=True)),
                ("name", models.CharField(max_length=120)),
                ("scope", models.CharField(max_length=1)),
                ("expires_at", models.BigIntegerField(null=True)),
                ("invalidated_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "merchant_api_key",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("scope__in", ["M", "G", "W", "N"])), name="scope_is_known"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Profile",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("kyc", models.BooleanField(default=True)),
                ("callback_url", models.CharField(blank=True, default="", max_length=2048)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="one_merchant")],
            },
        ),
    ]
