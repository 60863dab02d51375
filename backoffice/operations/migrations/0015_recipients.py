"""Recipients are applied here. Saved bank accounts, each saved by one person, become suggestions of the register.

Back again, bank accounts of the register become saved ones, as far as they were saved before or their names are free.
"""

import uuid
from importlib import import_module

from django.conf import settings
from django.db import migrations

from backoffice.core.web.formatting import sort_key

_codes = import_module("backoffice.operations.migrations.0010_managed_one_time_codes")
_policies = import_module("backoffice.operations.migrations.0014_policy_versions_and_levels")
KINDS_NOW = (*_policies.KINDS_NOW, "recipient")


def know_kind(apps, schema_editor):
    _codes.replace_trigger(schema_editor, _codes.known_edges(KINDS_NOW))


def forget_kind(apps, schema_editor):
    _codes.replace_trigger(schema_editor, _codes.known_edges(_policies.KINDS_NOW))


def carry_over(apps, schema_editor):
    version = apps.get_model("recipients", "RecipientVersion")
    known = dict.fromkeys(version.objects.values_list("key", flat=True))  # if it was carried over before
    for saved in apps.get_model("operations", "SavedAccount").objects.order_by("pk").iterator():
        if saved.recipient_key in known:
            continue
        _, bank_code, number = saved.recipient_key.split(":", 2)
        version.objects.create(
            recipient=uuid.uuid4(),
            number=0,
            state="suggested",
            type="bank",
            key=saved.recipient_key,
            name=saved.account_name,
            alias=saved.name,
            bank_code=bank_code,
            bank=saved.bank,
            account=number,
            proposed_by=saved.saved_by,
            since=saved.saved_at,
            details_since=saved.saved_at,
            sort_key=sort_key(saved.name)[:200],
            search_text="\n".join((saved.account_name, saved.name, number)).casefold(),
        )


def carry_back(apps, schema_editor):
    saved = apps.get_model("operations", "SavedAccount")
    newest = apps.get_model("recipients", "RecipientVersion").objects.filter(is_newest=True, type="bank")
    for version in newest.exclude(state="retired").order_by("pk").iterator():
        name = (version.alias or version.name)[:60]
        if not saved.objects.filter(name__iexact=name).exists():
            saved.objects.create(
                name=name,
                recipient_key=version.key,
                bank=version.bank,
                account_name=version.name,
                saved_by=version.proposed_by,
                saved_at=version.since,
            )


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0014_policy_versions_and_levels"),
        ("recipients", "0001_register"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(know_kind, forget_kind),
        migrations.RunPython(carry_over, carry_back),
        migrations.DeleteModel("SavedAccount"),
    ]
