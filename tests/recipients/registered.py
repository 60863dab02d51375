"""Recipients in the register, made without pages."""

import uuid
from typing import Any

from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.kinds.recipient import RecipientChange, RecipientDetails, RecipientPayload
from backoffice.recipients.keys import address_key, bank_account_key, user_key
from backoffice.recipients.models import RecipientState, RecipientType, RecipientVersion
from backoffice.recipients.register import version_in_effect
from tests import factories

ADDRESS = "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE"


def bank_account(
    number: str = "0123456789", name: str = "ADA CHIDINMA OBI", **members: Any
) -> RecipientPayload:
    """Adding the account that `factories.payload` pays."""
    code = members.pop("bank_code", "044")
    account = {"bank_code": code, "bank": "Access Bank", "account": number}
    return _added(RecipientType.BANK, bank_account_key(code, number), name, account, members)


def address(account: str = ADDRESS, name: str = "Ada Obi", **members: Any) -> RecipientPayload:
    of_network = {"account": account, "network": members.pop("network", "TRC20")}
    return _added(RecipientType.ADDRESS, address_key(account), name, of_network, members)


def user(username: str = "ngozi.eze", name: str = "Ngozi Eze", **members: Any) -> RecipientPayload:
    return _added(RecipientType.USER, user_key(username), name, {"account": username}, members)


def _added(
    kind: RecipientType, key: str, name: str, account: dict[str, str], members: dict[str, Any]
) -> RecipientPayload:
    details = {field: members.pop(field) for field in ("alias", "notes", "currency") if field in members}
    content: dict[str, Any] = {
        "change": RecipientChange.ADD,
        "type": kind,
        "key": key,
        **account,
        "details": RecipientDetails(name=name, **details),
        "reason": "The contract names it",
    }
    return RecipientPayload(**content, **members)


def changed(
    version: RecipientVersion, change: RecipientChange = RecipientChange.CHANGE, **details: Any
) -> RecipientPayload:
    """Another name, alias, notes or currency; or the end of the recipient."""
    before = RecipientDetails(
        name=version.name, alias=version.alias, notes=version.notes, currency=version.currency
    )
    account = {name: getattr(version, name) for name in ("key", "account", "network", "bank_code", "bank")}
    return RecipientPayload(
        change=change,
        type=RecipientType(version.type),
        replaces=version.number,
        before=before if version.number else None,
        details=before.model_copy(update=details),
        reason="The contract names it",
        **account,
    )


def agreed(payload: RecipientPayload, preparer: User, approver: User) -> RecipientVersion:
    """The version that two people agree on."""
    factories.approve(factories.prepared_of_kind("recipient", payload, preparer), approver)
    version = version_in_effect(payload.key)
    assert version is not None
    return version


def suggested(
    person: User, alias: str = "Rent", number: str = "0123456789", **members: Any
) -> RecipientVersion:
    """A bank account that one person saved before there was a register."""
    values: dict[str, Any] = {
        "number": 0,
        "state": RecipientState.SUGGESTED,
        "type": RecipientType.BANK,
        "key": bank_account_key(members.get("bank_code", "044"), number),
        "name": "ADA CHIDINMA OBI",
        "alias": alias,
        "bank_code": "044",
        "bank": "Access Bank",
        "account": number,
        "proposed_by": person,
        "since": timezone.now(),
        "details_since": timezone.now(),
    }
    version = RecipientVersion(**{**values, **members})
    version.save(force_insert=True)
    return version


def many(preparer: User, approver: User, how_many: int) -> None:
    """So many approved bank accounts, as if two people had agreed on each."""
    now = timezone.now()
    versions = [
        RecipientVersion(
            number=1,
            state=RecipientState.APPROVED,
            type=RecipientType.BANK,
            key=f"bank:044:{number:010}",
            name=f"HOLDER {number:03}",
            alias=f"Supplier {number:03}",
            bank_code="044",
            bank="Access Bank",
            account=f"{number:010}",
            operation=uuid.uuid4(),
            proposed_by=preparer,
            approved_by=approver,
            since=now,
            details_since=now,
            sort_key=f"supplier {number:03}",
            search_text=f"holder {number:03}\nsupplier {number:03}\n{number:010}",
        )
        for number in range(how_many)
    ]
    for version in versions:
        version.make_seal()
    RecipientVersion.objects.bulk_create(versions, batch_size=5_000)
