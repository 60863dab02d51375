"""Which accounts a form recommends: those that were paid or prepared lately."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.pages import recipient_choice
from backoffice.operations.states import NOT_EXECUTED, Status
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.pages.recipient_choice.steps import PAYMENT, WITHDRAWAL, aged, labels, use
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db


def test_nothing_is_offered_without_recent_accounts(as_preparer: Client) -> None:
    assert "Use recipient" not in text_of(as_preparer.get(WITHDRAWAL))


@pytest.mark.parametrize("address", [WITHDRAWAL, PAYMENT])
def test_recent_accounts_show_recipient_and_time_of_payment(
    as_preparer: Client, preparer: User, address: str
) -> None:
    aged(
        factories.prepared(preparer, account_number="1111112222", account_name="KOLA EZE"),
        3,
        Status.SUCCEEDED,
    )
    aged(factories.prepared(preparer), 2)
    paid, waits = timezone.localtime() - timedelta(days=3), timezone.localtime() - timedelta(days=2)
    assert labels(as_preparer, address)["Recent"] == [
        f"ADA CHIDINMA OBI, Access Bank ••6789 · last prepared {waits:%-d %b %Y}",
        f"KOLA EZE, Access Bank ••2222 · last paid {paid:%-d %b %Y}",
    ]


def test_an_account_is_listed_once_as_in_its_newest_operation(as_preparer: Client, preparer: User) -> None:
    aged(factories.prepared(preparer, account_name="BEFORE"), 9, Status.SUCCEEDED)
    aged(factories.prepared(preparer, account_name="NOW"), 1)
    (label,) = labels(as_preparer)["Recent"]
    assert label.startswith("NOW, ")
    assert "last paid" in label


def test_a_created_payment_does_not_make_its_account_recent(as_preparer: Client, preparer: User) -> None:
    aged(factories.prepared_of_kind("payment", SAMPLES["payment"], preparer), 1, Status.SUCCEEDED)
    assert "last prepared" in labels(as_preparer)["Recent"][0]


@pytest.mark.parametrize("status", sorted(NOT_EXECUTED))
def test_unexecuted_operations_do_not_make_an_account_recent(
    as_preparer: Client, preparer: User, status: Status
) -> None:
    operation = aged(factories.prepared(preparer), 1, status)
    assert labels(as_preparer) == {}
    assert use(as_preparer, f"operation-{operation.pk}").status_code == 422
    assert "Add to recipients" not in text_of(as_preparer.get(operation.get_absolute_url()))


def test_old_operations_do_not_make_an_account_recent(as_preparer: Client, preparer: User) -> None:
    aged(factories.prepared(preparer), recipient_choice.RECENT.days + 1)
    assert labels(as_preparer) == {}


def test_operations_without_a_bank_account_are_not_recent(as_preparer: Client, preparer: User) -> None:
    operation = factories.prepared_of_kind("transfer", SAMPLES["transfer"], preparer)
    assert labels(as_preparer) == {}
    assert use(as_preparer, f"operation-{operation.pk}").status_code == 422
