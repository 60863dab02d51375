"""The bank's name of an account's holder, resolved again before a payment to a registered recipient is sent."""

import json
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.models import CachedReadRow
from backoffice.operations import errors
from backoffice.operations.delivery import send
from backoffice.operations.delivery.release import ConfirmedHolder
from backoffice.operations.models.holds import HolderChange
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker
from backoffice.operations.states import Status
from backoffice.recipients.models import RecipientState, RecipientVersion
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.provider_list import NAMED
from tests.operations.steps import code_of, do, show, status_of, text_of
from tests.recipients import registered
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

APPROVED_NAME = "ADA CHIDINMA OBI"
OTHER_NAME = "MALLORY EZE"


@pytest.fixture
def ada(preparer: User, approver: User) -> RecipientVersion:
    return registered.agreed(registered.bank_account(), preparer, approver)


@pytest.fixture
def bank(provider: StubProvider) -> StubProvider:
    """The provider, which accepts a payment and gives the approved name."""
    provider.answer_post = lambda: NAMED
    names(provider, APPROVED_NAME)
    return provider


def names(provider: StubProvider, name: str) -> None:
    answer = {"success": True, "message": "ok", "data": {"accountname": name}}
    provider.answer_resolve = lambda: (200, json.dumps(answer))


def fails(provider: StubProvider, status: int) -> None:
    provider.answer_resolve = lambda: (status, '{"success": false, "message": "no"}')


def released(preparer: User, approver: User, **payload: str) -> Operation:
    return factories.release(factories.approved(preparer, approver, **payload), approver)


def test_the_approved_name_is_sent(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion
) -> None:
    operation = released(preparer, approver)
    assert send.send_operation(operation.pk)
    assert (len(bank.posts), len(bank.resolved)) == (1, 1)
    assert Attempt.objects.get().name_not_checked is None


@pytest.mark.parametrize(
    "name",
    [OTHER_NAME, "ADA OBI", f"{APPROVED_NAME} LTD", f"{APPROVED_NAME} ENTERPRISES", ""],
    ids=["different", "close", "company", "business name", "no account"],
)
def test_a_name_that_changed_since_the_approval_holds_the_payment(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion, name: str
) -> None:
    operation = released(preparer, approver)
    if name:
        names(bank, name)
    else:
        fails(bank, 404)
    assert not send.send_operation(operation.pk)
    assert (status_of(operation), bank.posts, Attempt.objects.count()) == (Status.APPROVED, [], 0)
    assert not Release.objects.exists()
    found = HolderChange.objects.get()
    assert (found.approved_name, found.name, found.confirmed_at) == (APPROVED_NAME, name, None)
    entry = Entry.objects.get(action=Action.OPERATION_HELD)
    assert entry.detail == {"approved_name": APPROVED_NAME, "name_at_bank": name}
    refused = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).latest("position")
    assert refused.detail["refusal"]["code"] == ("holder_changed" if name else "holder_not_found")


def held(bank: StubProvider, preparer: User, approver: User) -> Operation:
    operation = released(preparer, approver)
    names(bank, OTHER_NAME)
    send.send_operation(operation.pk)
    return operation


def test_it_is_released_again_only_with_the_name_that_was_seen(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion
) -> None:
    operation = held(bank, preparer, approver)
    with pytest.raises(errors.HolderChangedError, match=OTHER_NAME):
        factories.release(operation, approver)
    with pytest.raises(errors.HolderChangedError):
        factories.release(operation, approver, statement=ConfirmedHolder(("SOMEBODY",), "Called"))
    with pytest.raises(errors.HolderReasonMissingError):
        factories.release(operation, approver, statement=ConfirmedHolder((OTHER_NAME,), " "))
    factories.release(operation, approver, statement=ConfirmedHolder((OTHER_NAME,), "Called her"))
    assert Release.objects.get().holder_names == [OTHER_NAME]
    assert send.send_operation(operation.pk)
    assert len(bank.posts) == 1
    assert APPROVED_NAME in bank.posts[0]


def test_it_needs_a_second_factor_after_the_name_was_found(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion
) -> None:
    operation = held(bank, preparer, approver)
    HolderChange.objects.update(found_at=timezone.now() + timedelta(minutes=1))
    with pytest.raises(errors.SecondFactorStaleError):
        factories.release(operation, approver, statement=ConfirmedHolder((OTHER_NAME,), "Called her"))


def test_a_third_name_holds_it_again(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion
) -> None:
    operation = held(bank, preparer, approver)
    factories.release(operation, approver, statement=ConfirmedHolder((OTHER_NAME,), "Called her"))
    CachedReadRow.objects.filter(key__startswith="holder:").delete()
    names(bank, "YET ANOTHER")
    assert not send.send_operation(operation.pk)
    assert (bank.posts, HolderChange.objects.count()) == ([], 2)


def test_a_confirmation_written_into_the_database_does_not_count(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion
) -> None:
    operation = released(preparer, approver)
    names(bank, OTHER_NAME)
    with lifted(connection):
        Release.objects.update(holder_names=[OTHER_NAME])
    assert not send.send_operation(operation.pk)
    assert bank.posts == []


def test_the_name_is_read_once_a_day_for_all_payments_to_an_account(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion
) -> None:
    first, second = released(preparer, approver), released(preparer, approver, amount="10.00")
    send.send_operation(first.pk)
    send.send_operation(second.pk)
    assert len(bank.resolved) == 1
    CachedReadRow.objects.filter(key__startswith="holder:").update(
        read_at=timezone.now() - timedelta(hours=25)
    )
    third = released(preparer, approver, amount="11.00")
    send.send_operation(third.pk)
    assert len(bank.resolved) == 2


def test_a_payment_to_somebody_outside_the_register_reads_no_name(
    bank: StubProvider, preparer: User, approver: User
) -> None:
    names(bank, OTHER_NAME)
    assert send.send_operation(released(preparer, approver).pk)
    assert bank.resolved == []


def test_it_is_sent_under_the_approved_name_while_the_bank_cannot_answer(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion, as_approver: Client
) -> None:
    fails(bank, 503)
    operation = released(preparer, approver)
    assert send.send_operation(operation.pk)
    attempt = Attempt.objects.get()
    assert attempt.name_not_checked == {"code": "provider_error", "status": "503"}
    entry = Entry.objects.get(action=Action.OPERATION_CLAIMED)
    assert entry.detail["name_not_checked"] == attempt.name_not_checked
    assert "Sent under the approved name" in text_of(show(as_approver, operation))


def test_a_bank_that_cannot_answer_delays_one_payment_of_many(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion
) -> None:
    fails(bank, 503)
    registered.agreed(registered.bank_account(number="9999999999", name="Another Holder"), preparer, approver)
    first = released(preparer, approver)
    second = released(preparer, approver, account_number="9999999999", account_name="ANOTHER HOLDER")
    send.send_operation(first.pk)
    reads = len(bank.resolved)
    assert reads > 0
    send.send_operation(second.pk)
    assert len(bank.resolved) == reads
    assert len(bank.posts) == 2
    cache.clear()


def test_a_setting_lets_it_wait_while_the_bank_cannot_answer(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion, settings: Settings
) -> None:
    settings.SEND_WITHOUT_NAME_CHECK = False
    fails(bank, 503)
    operation = released(preparer, approver)
    assert not send.send_operation(operation.pk)
    assert (bank.posts, Release.objects.get().blocker) == ([], Blocker.PROVIDER_UNREADABLE)
    names(bank, APPROVED_NAME)
    assert send.send_operation(operation.pk)
    assert len(bank.posts) == 1


def test_both_names_are_on_the_page_and_confirmed_there(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion, as_approver: Client
) -> None:
    operation = held(bank, preparer, approver)
    page = text_of(show(as_approver, operation))
    assert "Ready to send" not in page
    assert "The name at the bank now differs from the approved name." in page
    assert APPROVED_NAME in page
    assert OTHER_NAME in page
    assert "How you know that the account is right" in page
    seen = page.split('name="holders" value="')[1].split('"')[0]
    form = {"code": code_of(approver), "otp": "654321"}
    refused = do(as_approver, operation, "release", **form, holders=seen, confirmed_holder="")
    assert refused.status_code == 422
    outdated = do(as_approver, operation, "release", **form, holders="x", confirmed_holder="Called her")
    assert (outdated.status_code, Release.objects.count()) == (422, 0)
    form["code"] = code_of(approver)
    answer = do(as_approver, operation, "release", **form, holders=seen, confirmed_holder="Called her")
    assert answer.status_code == 302
    assert send.send_operation(operation.pk)
    assert "Called her" in text_of(show(as_approver, operation))


def test_a_recipient_retired_in_the_database_alone_does_not_avoid_the_check(
    bank: StubProvider, preparer: User, approver: User, ada: RecipientVersion
) -> None:
    operation = released(preparer, approver)
    names(bank, OTHER_NAME)
    with lifted(connection):
        RecipientVersion.objects.update(state=RecipientState.RETIRED)
    assert not send.send_operation(operation.pk)
    assert (bank.posts, Release.objects.exists()) == ([], False)
