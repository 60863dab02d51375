"""The request, the read before it, and the read that proves it."""

import json
from typing import Any

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.delivery import send
from backoffice.operations.errors import NotInBulkError
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.policy import check_may_approve_in_bulk
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.kinds.callback_urls.steps import AFTER, BEFORE, sample
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def sent(preparer: User, approver: User, **changes: Any) -> Operation:
    pending = factories.prepared_of_kind("callback_url", sample(**changes), preparer)
    operation = factories.release(factories.approve(pending, approver), approver)
    send.send_operation(operation.pk)
    return Operation.objects.get(pk=operation.pk)


def test_the_request_is_exactly_the_approved_content(
    administrator: User, approver: User, provider: StubProvider
) -> None:
    sent(administrator, approver)
    assert provider.changes == ["PUT /v2/callbackurl"]
    assert json.loads(provider.posts[0]) == {"callbackUrl": AFTER}


@pytest.mark.parametrize(
    ("status", "body", "ends"),
    [
        (200, '{"success": true, "message": "Callback URL updated"}', Status.PROCESSING),
        (400, '{"message": "callbackUrl must be an http or https URL"}', Status.FAILED),
        (403, '{"message": "no scope"}', Status.FAILED),
        (500, '{"message": "internal error"}', Status.UNKNOWN),
    ],
)
def test_every_response_leads_to_a_status(
    administrator: User, approver: User, provider: StubProvider, status: int, body: str, ends: Status
) -> None:
    provider.answer_post = lambda: (status, body)
    assert sent(administrator, approver).status == ends


@pytest.mark.parametrize(
    "reported",
    ['"https://hooks.example.com/other"', f'"{AFTER}"', "null", "42"],
    ids=["other", "new", "none", "odd"],
)
def test_nothing_is_sent_if_the_old_address_changed_after_approval(
    administrator: User, approver: User, as_administrator: Client, provider: StubProvider, reported: str
) -> None:
    provider.callback = reported
    operation = sent(administrator, approver)
    assert (operation.status, provider.changes) == (Status.APPROVED, [])
    attempt = Attempt.objects.get(operation=operation)
    assert attempt.outcome == Outcome.NOT_SENT
    assert [one["code"] for one in attempt.responses] == ["error" if reported == "42" else "outdated"]
    expected = "Nothing was changed" if reported == "42" else "The new URL was not set"
    assert expected in as_administrator.get(f"/operations/{operation.pk}/").content.decode()


def test_an_equivalent_old_address_counts_as_unchanged(
    administrator: User, approver: User, provider: StubProvider
) -> None:
    provider.callback = f'"{BEFORE.replace("https://", "HTTPS://").replace(".com", ".COM:443")}"'
    sent(administrator, approver)
    assert provider.changes == ["PUT /v2/callbackurl"]


def test_a_callback_url_change_is_approved_on_its_own_page_only(administrator: User) -> None:
    with pytest.raises(NotInBulkError):
        check_may_approve_in_bulk(
            factories.prepared_of_kind("callback_url", sample(), administrator), alike=()
        )


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    ("reported", "proven"),
    [
        (f'"{AFTER}"', True),
        (f'"{AFTER}/"', False),
        (f'"{BEFORE}"', False),
        ("null", False),
        ("42", False),
        (f'"{AFTER.replace("https://", "HTTPS://")}"', True),
        (f'"{AFTER.replace(".com", ".COM:443")}"', True),
        (f'"{AFTER.replace(".com", ".com:8443")}"', False),
    ],
)
def test_only_reading_back_the_same_address_confirms_it(
    administrator: User, approver: User, provider: StubProvider, status: int, reported: str, proven: bool
) -> None:
    provider.answer_post = lambda: (status, '{"success": true, "message": "ok"}')
    operation = sent(administrator, approver)
    provider.callback = reported
    assert (confirmation.confirm_operation(operation.pk).status == Status.SUCCEEDED) is proven


def test_two_people_set_it_against_the_provider(
    administrator: User, approver: User, sandbox: SandboxProcess
) -> None:
    operation = sent(administrator, approver, previous="")
    assert operation.status == Status.PROCESSING
    assert confirmation.confirm_operation(operation.pk).status == Status.SUCCEEDED
