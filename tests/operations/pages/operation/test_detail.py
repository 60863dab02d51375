"""The page of one operation: what it shows to whom, and how it keeps up."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.operations import errors
from backoffice.operations.lifecycle import transitions
from backoffice.operations.lifecycle.transitions import OperationAction
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import ResponseCode, coded
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations.steps import do, put, show, text_of, unreadable

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]


def test_the_page_shows_summary_facts_and_verification_code(
    as_approver: Client, operation: Operation
) -> None:
    html = text_of(show(as_approver, operation))
    assert f"<h1>{operation.sentence}</h1>" in html
    assert "0123456789 · Access Bank (044)" in html
    assert f'<span class="digest">{operation.verification_code}</span>' in html
    assert operation.rule_sentence in html


@pytest.mark.parametrize(
    ("person", "statuses", "title", "buttons"),
    [
        ("approver", [], "Approve or reject", ["Approve", "Approve and send", "Reject"]),
        ("preparer", [], "Waiting for another person", ["Cancel operation"]),
        ("auditor", [], "Waiting for approval", []),
        ("approver", ["approved"], "Ready to send", ["Send"]),
        ("preparer", ["approved"], "Approved, not sent", ["Cancel operation"]),
        ("auditor", ["approved"], "Approved, not sent", []),
        ("approver", ["approved", "sending"], "Sending", []),
        ("approver", ["approved", "sending", "processing"], "Processing at the provider", ["Check status"]),
        ("preparer", ["approved", "sending", "unknown"], "Outcome unknown", ["Check status"]),
        ("auditor", ["approved", "sending", "unknown"], "Outcome unknown", []),
        ("approver", ["approved", "sending", "unknown", "review"], "Outcome must be resolved", []),
    ],
)
def test_controls_depend_on_user_and_status(  # noqa: PLR0917
    sign_in: SignIn,
    approver: User,
    auditor: User,
    operation: Operation,
    request: pytest.FixtureRequest,
    person: str,
    statuses: list[str],
    title: str,
    buttons: list[str],
) -> None:
    put(operation, *statuses)
    html = text_of(show(sign_in(Client(), request.getfixturevalue(person)), operation))
    main = html[html.index("<main") :]
    every = ["Approve", "Approve and send", "Reject", "Send", "Cancel operation", "Check status"]
    assert f'<h2 id="decision-title">{title}</h2>' in main
    assert [name for name in every if f">{name}</button>" in main] == [
        name for name in every if name in buttons
    ]


@pytest.mark.parametrize("second_approval_above", ["0.01", "10000000"])
def test_an_approver_with_second_thoughts_reads_who_can_cancel(
    as_approver: Client, as_preparer: Client, preparer: User, settings: Settings, second_approval_above: str
) -> None:
    """An approval cannot be taken back, whether more are needed or the operation is ready to send."""
    settings.SECOND_APPROVAL_ABOVE = {"NGN": Decimal(second_approval_above)}
    operation = factories.prepared(preparer)
    sentence = f"If it must not go ahead, {preparer} can cancel it."
    assert sentence not in text_of(show(as_approver, operation))
    do(as_approver, operation, "approve")
    assert sentence in text_of(show(as_approver, operation))
    assert sentence not in text_of(show(as_preparer, operation))


def test_polling_an_unchanged_page_returns_no_content(as_approver: Client, operation: Operation) -> None:
    answer = show(as_approver, operation)
    seen = answer.context["seen"]
    assert f"/operations/{operation.pk}/live/?seen={seen}" in text_of(answer)
    assert show(as_approver, operation, "live/", seen=seen).status_code == 204


def test_an_open_page_shows_what_changed(
    as_approver: Client, as_preparer: Client, operation: Operation
) -> None:
    seen = show(as_preparer, operation).context["seen"]
    do(as_approver, operation, "approve")
    answer = show(as_preparer, operation, "live/", seen=seen)
    assert answer.status_code == 200
    assert text_of(answer).lstrip().startswith('<div id="operation" data-poll')
    assert "Status: Approved." in text_of(answer)


def test_polling_does_not_extend_the_session(as_preparer: Client, operation: Operation) -> None:
    session: Any = as_preparer.session
    row = type(session).get_model_class().objects.filter(pk=session.row_key)
    long_ago = timezone.now() - timedelta(minutes=10)
    row.update(last_seen_at=long_ago)
    show(as_preparer, operation, "live/", seen="")
    assert row.get().last_seen_at == long_ago
    show(as_preparer, operation)
    assert row.get().last_seen_at > long_ago


def test_the_page_of_a_closed_operation_does_not_poll(as_preparer: Client, operation: Operation) -> None:
    do(as_preparer, operation, "cancel")
    html = text_of(show(as_preparer, operation))
    assert "data-poll" not in html
    assert "hx-trigger" not in html


@pytest.mark.parametrize("part", ["", "live/"])
def test_the_page_needs_a_role(sign_in: SignIn, outsider: User, operation: Operation, part: str) -> None:
    assert show(sign_in(Client(), outsider), operation, part).status_code == 403


@pytest.mark.parametrize("person", ["preparer", "approver", "auditor"])
def test_the_page_takes_at_most_eight_queries(
    sign_in: SignIn,
    approver: User,
    auditor: User,
    operation: Operation,
    request: pytest.FixtureRequest,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    person: str,
) -> None:
    approvals.approve_operation(
        operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now()
    )
    client = sign_in(Client(), request.getfixturevalue(person))
    with django_assert_max_num_queries(8):
        show(client, operation)


@pytest.mark.parametrize("changes", [{}, {"kind": "lottery"}], ids=["payload", "kind"])
def test_unreadable_content_is_reported_and_cannot_be_decided(
    as_approver: Client, preparer: User, changes: dict[str, str]
) -> None:
    operation = unreadable(preparer, **changes)
    transitions.record_refusal(
        operation.pk, OperationAction.APPROVE, preparer, errors.ContentUnreadableError()
    )
    html = text_of(show(as_approver, operation))
    assert "This version of Countersign cannot read the content" in html
    assert '<h2 id="decision-title">Cannot be approved or sent</h2>' in html
    assert ">Approve<" not in html
    assert ">Reject<" not in html
    assert "was refused an action on this operation" in html


def test_unreadable_content_still_shows_the_attempts(as_preparer: Client, preparer: User) -> None:
    operation = put(unreadable(preparer, kind="lottery"), "approved", "sending", "unknown")
    factories.attempt(operation, responses=[coded(ResponseCode.ERROR, error="No answer came back")])
    html = text_of(show(as_preparer, operation))
    assert "No answer came back" in html
    assert "Outcome unknown" in html


def test_unreadable_content_cannot_be_copied(as_preparer: Client, preparer: User) -> None:
    operation = unreadable(preparer)
    approvals.cancel_operation(operation.pk, actor=preparer)
    assert "Prepare again" not in text_of(show(as_preparer, operation))
    assert as_preparer.get(f"/operations/prepare/withdrawal/?copy={operation.pk}").status_code == 404
