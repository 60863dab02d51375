"""An operation is stored in one language and shown in the reader's."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import translation

from backoffice.accounts.models import User
from backoffice.core.web.formatting import labelled, quoted
from backoffice.operations.kinds.registry import sentence_of
from backoffice.operations.models.operations import Operation
from backoffice.operations.templatetags.operations import recipient_detail, recipient_name
from tests import factories

SignIn = Callable[[Client, User], Client]


@pytest.fixture
def prepared_in_french(preparer: User) -> Operation:
    with translation.override("fr"):
        return factories.prepared(preparer)


def test_the_stored_sentence_does_not_depend_on_the_preparers_language(
    prepared_in_french: Operation, preparer: User
) -> None:
    in_english = factories.prepared(preparer, account_number="0000000042")
    assert (
        prepared_in_french.sentence.partition(" ")[0] == in_english.sentence.partition(" ")[0] == "Withdraw"
    )
    assert prepared_in_french.rule == {"code": "one_approver"}


def test_a_reader_gets_the_sentence_and_the_recipient_in_their_own_language(
    prepared_in_french: Operation,
) -> None:
    with translation.override("en"):
        assert sentence_of(prepared_in_french) == prepared_in_french.sentence
    with translation.override("fr"):
        assert prepared_in_french.recipient in sentence_of(prepared_in_french)
        assert recipient_name(prepared_in_french) == prepared_in_french.recipient


def test_an_unreadable_content_is_shown_as_stored(prepared_in_french: Operation) -> None:
    prepared_in_french.payload = {}
    with translation.override("fr"):
        assert sentence_of(prepared_in_french) == prepared_in_french.sentence
        assert recipient_detail(prepared_in_french) == prepared_in_french.recipient_detail


def test_a_quotation_and_a_label_follow_the_typography_of_the_readers_language() -> None:
    assert (quoted("failed"), labelled("Currency", "NGN")) == ("“failed”", "Currency: NGN")
    with translation.override("fr"):
        assert quoted("failed") == "«\N{NO-BREAK SPACE}failed\N{NO-BREAK SPACE}»"
        assert labelled("Devise", "NGN") == "Devise\N{NO-BREAK SPACE}: NGN"
