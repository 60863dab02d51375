"""The totals that rules ask about, compared with plain sums over random operations."""

import os
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations.descriptions import History, StoredSubject, describe_with
from backoffice.operations.kinds.base import Debit
from backoffice.operations.kinds.registry import KINDS, read_content
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import NOT_EXECUTED, Status
from backoffice.policies.document import TotalOf, Window
from tests import factories
from tests.policies.versions import document

pytestmark = pytest.mark.django_db

SEED = int(os.environ.get("POLICY_SEED", "17"))
LENGTHS = {Window.DAY: timedelta(hours=24), Window.WEEK: timedelta(days=7)}
GROUPS: dict[TotalOf, Callable[[Operation], object]] = {
    TotalOf.PREPARER: lambda one: one.preparer_id,
    TotalOf.RECIPIENT: lambda one: one.recipient_key,
    TotalOf.CURRENCY: lambda one: None,
}


def random_operations(random: Random, first: Operation, preparers: list[User]) -> list[Operation]:
    """Within nine days, at few distinct moments, so that windows begin and end exactly at some."""
    members = {field.attname: getattr(first, field.attname) for field in Operation._meta.concrete_fields}
    begin = clock.now() - timedelta(days=9)
    found, ended = [], {}
    for number in range(80):
        at = begin + timedelta(hours=6 * random.randrange(36))
        changes: dict[str, Any] = {
            "id": uuid.uuid4(),
            "reference": f"X-{number:06}",
            "content_key": uuid.uuid4().hex,
            "recipient_key": f"bank:044:{random.randrange(3):010}",
            "currency": random.choice(("NGN", "USD")),
            "amount": Decimal(random.randrange(1, 10**6)) / 100,
            "preparer_id": random.choice(preparers).pk,
            "prepared_at": at,
        }
        found.append(Operation(**members | changes))
        if random.random() < 0.4:
            status = random.choice((Status.CANCELLED, Status.REJECTED))
            closed_at = at + timedelta(hours=6 * random.randrange(1, 20))
            ended[changes["id"]] = {"status": status, "closed_at": closed_at}
    Operation.objects.bulk_create(found)
    for pk, changes in ended.items():
        Operation.objects.filter(pk=pk).update(**changes)
    return list(Operation.objects.filter(pk__in=[one.pk for one in found]))


def as_stored(one: Operation) -> StoredSubject:
    """From its columns, as a replay reads it."""
    own = Debit(one.currency, one.amount or Decimal(0))
    members = (one.pk, KINDS[one.kind], read_content(one)[1], one.preparer_id, "", one.prepared_at, own)
    return StoredSubject(*members, is_stored=True, key=one.recipient_key or "", stored=one.payload)


def counts(one: Operation, at: datetime, length: timedelta) -> bool:
    has_ended = one.status in NOT_EXECUTED and one.closed_at is not None and one.closed_at <= at
    return at - length < one.prepared_at <= at and not has_ended


def test_totals_are_the_sums_of_what_may_still_be_executed(preparer: User) -> None:
    random = Random(SEED)  # noqa: S311 - the same every time, no secret
    first = factories.prepared(preparer)
    preparers = [preparer, factories.person("Bisi Ade")]
    stored = [first, *random_operations(random, first, preparers)]
    total = {"window": "week", "above": 1}
    rules = [
        {
            "when": {"currencies": {"codes": ["NGN"]}, "total": {**total, "of": of.value}},
            "levels": [{"needed": 2}],
        }
        for of in TotalOf
    ]
    asked = [as_stored(one) for one in stored]
    history = History(document(*rules), asked)
    for one, subject in zip(stored, asked, strict=True):
        [described] = describe_with(subject, history)
        [alone] = describe_with(subject, History(document(*rules), [subject]))
        expected = {
            (window, of): sum(
                other.amount or Decimal(0)
                for other in stored
                if other.currency == one.currency
                and group(other) == group(one)
                and counts(other, one.prepared_at, length)
            )
            for window, length in LENGTHS.items()
            for of, group in GROUPS.items()
        }
        assert described.totals == alone.totals == expected, one.reference
