"""Looks in what the service told lately, without asking it: a transaction by its id, the merchant's own accounts."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from django.db.models import Q
from django.utils import timezone
from pydantic import TypeAdapter, ValidationError

from backoffice.ledger.models import Reading
from backoffice.ledger.selectors import OWN_ACCOUNTS, TRANSACTIONS
from backoffice.ledger.told import KEPT
from payments_gateway import Account, TransactionRecord, TransactionSummary

Value = TypeVar("Value")
_SUMMARY = TypeAdapter(TransactionSummary)


@dataclass(frozen=True)
class ToldTransaction:
    """A transaction, the filters of the page on which the service told it, as in an address, and when."""

    record: TransactionRecord
    filters: str
    at: datetime


@dataclass(frozen=True)
class OwnAccount:
    """One account of the merchant at a bank."""

    name: str
    currency: str
    number: str


@dataclass(frozen=True)
class ToldLately:
    """What the service told within a day that fits a text."""

    transaction: ToldTransaction | None = None
    accounts: list[OwnAccount] = field(default_factory=list)


def told_lately(text: str, account_number: str) -> ToldLately:
    """The transaction of exactly this id; own accounts with the text in their name, or of this number. One query."""
    written = f'"transaction_id":{json.dumps(text, ensure_ascii=False)}'
    shows_it = Q(question__startswith=TRANSACTIONS, value__contains=written)
    kept = Reading.objects.filter(
        shows_it | Q(question=OWN_ACCOUNTS.text), at__gt=timezone.now() - KEPT
    ).order_by("-at")
    accounts = [reading for reading in kept if reading.question == OWN_ACCOUNTS.text]
    pages = [reading for reading in kept if reading.question != OWN_ACCOUNTS.text]
    return ToldLately(
        transaction=_shown(pages[0], text) if pages else None,
        accounts=[one for reading in accounts for one in _named(reading, text.lower(), account_number)],
    )


def _shown(page: Reading, transaction_id: str) -> ToldTransaction | None:
    summary = _read(_SUMMARY, page)
    for record in summary.page.records if summary else ():
        if record.transaction_id == transaction_id:
            return ToldTransaction(record, page.question.removeprefix(TRANSACTIONS), page.at)
    return None


def _named(reading: Reading, text: str, number: str) -> list[OwnAccount]:
    accounts: list[Account] = _read(OWN_ACCOUNTS.type, reading) or []
    return [
        OwnAccount(account.account_name, asset.currency, asset.address)
        for account in accounts
        for asset in account.assets
        if asset.address.lower() == number or text in account.account_name.lower()
    ]


def _read(kind: TypeAdapter[Value], reading: Reading) -> Value | None:
    """None if this release cannot read what another one kept."""
    try:
        return kind.validate_json(reading.value)
    except ValidationError:
        return None
