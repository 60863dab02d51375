"""The canonical form v1 is a promise: these bytes and this hash must never change."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from django.utils.functional import lazystr
from pydantic import SecretStr

from backoffice.audit.actions import Action
from backoffice.audit.canonical import GENESIS, NotRecordableError, canonical_json, plain
from backoffice.audit.models import Entry

GOLDEN_FORM = (
    b'{"action":"operation.countersigned","actor":"7","actor_label":"Ada Ob\\u00ed","address":"10.0.0.9",'
    b'"at":"2026-03-01T09:30:00.000250+00:00","detail":{"amount":"250000.00","people":["7",12,true,null]},'
    b'"position":1,"previous_hash":"' + GENESIS.encode() + b'","request_id":"3f2a","target_id":"b0",'
    b'"target_label":"CS-1 \\"Rent\\"","target_type":"operations.operation","version":"v1"}'
)
GOLDEN_HASH = "16963721095cc4e7e1f59d79ff382af7b45fe6701d293b8d149f13a36585326c"


def golden_entry() -> Entry:
    lagos = timezone(timedelta(hours=1))
    return Entry(
        position=1,
        at=datetime(2026, 3, 1, 10, 30, 0, 250, tzinfo=lagos),
        actor_id=7,
        actor_label="Ada Obí",
        address="10.0.0.9",
        request_id="3f2a",
        action="operation.countersigned",
        target_type="operations.operation",
        target_id="b0",
        target_label='CS-1 "Rent"',
        detail={"people": ["7", 12, True, None], "amount": "250000.00"},
        previous_hash=GENESIS,
    )


def test_the_canonical_form_is_stable() -> None:
    assert canonical_json(golden_entry().members()) == GOLDEN_FORM


def test_the_hash_is_stable() -> None:
    assert golden_entry().digest() == GOLDEN_HASH


def test_the_hash_covers_every_other_column() -> None:
    columns = {field.name for field in Entry._meta.concrete_fields}

    assert set(golden_entry().members()) == columns - {"hash"}


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        (None, None),
        (True, True),
        (12345678901234567890, 12345678901234567890),
        ("Ada Obí", "Ada Obí"),
        (lazystr("later"), "later"),
        (Action.OPERATION_PREPARED, "operation.prepared"),
        (Decimal("250000.00"), "250000.00"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.000001"), "0.000001"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (date(2026, 3, 1), "2026-03-01"),
        (datetime(2026, 3, 1, 9, 30, tzinfo=UTC), "2026-03-01T09:30:00.000000+00:00"),
        ({"when": date(2026, 3, 1), 1: ("a", [None])}, {"when": "2026-03-01", "1": ["a", [None]]}),
        ("a\x00b", "a�b"),
        ("half \ud83d of a pair", "half � of a pair"),
        ("whole 😀 pair", "whole 😀 pair"),
    ],
)
def test_details_round_trip_unchanged_on_both_databases(value: object, recorded: object) -> None:
    assert plain(value) == recorded


@pytest.mark.parametrize("value", [0.1, SecretStr("token"), object(), b"bytes", {"deep": [1.5]}])
def test_details_without_a_stable_form_are_refused(value: object) -> None:
    with pytest.raises(NotRecordableError):
        plain(value)
