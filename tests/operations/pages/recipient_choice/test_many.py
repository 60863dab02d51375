"""More accounts than a list shows."""

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.operations.pages import recipient_choice
from backoffice.recipients.models import RecipientVersion
from tests import factories
from tests.operations.pages.recipient_choice.steps import (
    PAYMENT,
    TYPED,
    WITHDRAWAL,
    labels,
    refs,
    use,
    values_of,
)
from tests.operations.steps import text_of
from tests.recipients import registered

pytestmark = pytest.mark.django_db


def test_a_long_list_is_limited_and_searchable(as_preparer: Client, preparer: User, approver: User) -> None:
    registered.many(preparer, approver, 60)
    assert "Find a recipient" in text_of(as_preparer.get(WITHDRAWAL))
    assert len(labels(as_preparer)["Recipients"]) == recipient_choice.REGISTERED_SHOWN
    assert labels(as_preparer, **{"known-text": "lier 058"})["Recipients"] == [
        "Supplier 058 · HOLDER 058, Access Bank ••0058"
    ]
    assert labels(as_preparer, **{"known-text": "holder 059"})["Recipients"][0].startswith("Supplier 059")
    assert labels(as_preparer, **{"known-text": "nothing like it"}) == {}
    html = text_of(as_preparer.post(WITHDRAWAL, {**TYPED, "step": "find", "known-text": "058"}))
    assert 'value="058"' in html
    assert 'value="12,5 half typed"' in html


def test_an_account_beyond_the_shown_ones_can_be_selected(
    as_preparer: Client, preparer: User, approver: User
) -> None:
    registered.many(preparer, approver, 60)
    last = RecipientVersion.objects.get(alias="Supplier 059")
    assert f"registered-{last.recipient}" not in refs(as_preparer)
    assert values_of(use(as_preparer, f"registered-{last.recipient}"))["account_number"] == "0000000059"


def test_the_pages_stay_within_their_queries_and_bytes(
    as_preparer: Client,
    preparer: User,
    approver: User,
    rent: RecipientVersion,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    registered.many(preparer, approver, 60)
    for _ in range(12):
        factories.prepared_to_another_account(preparer)
    asked: list[tuple[Callable[[], Any], int]] = [
        (lambda: as_preparer.get(WITHDRAWAL), 6),
        (lambda: as_preparer.get(PAYMENT), 6),
        (
            lambda: use(as_preparer, f"registered-{rent.recipient}"),
            11,
        ),  # three of them keep the draft in the session
    ]
    for ask, most in asked:
        with django_assert_max_num_queries(most):
            answer = ask()
        assert len(gzip.compress(answer.content)) < 14 * 1024
