"""The page of one operation: what it shows to whom, how it keeps up, and what is decided on it."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import services
from backoffice.operations.models import Operation, Release
from backoffice.operations.states import Status
from tests import factories

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]


def show(client: Client, operation: Operation, part: str = "", **query: str) -> Any:
    return client.get(f"/operations/{operation.pk}/{part}", query)


def do(client: Client, operation: Operation, action: str, **values: str) -> Any:
    return client.post(f"/operations/{operation.pk}/{action}/", {"digest": operation.digest, **values})


def text_of(answer: Any) -> str:
    return str(answer.content.decode())


def status_of(operation: Operation) -> str:
    return Operation.objects.get(pk=operation.pk).status


def put(operation: Operation, *statuses: str) -> Operation:
    """Move the row along the table of states, past the services."""
    for status in statuses:
        Operation.objects.filter(pk=operation.pk).update(status=status)
    return Operation.objects.get(pk=operation.pk)


def let_second_factor_age(client: Client) -> None:
    session: Any = client.session
    session["second_factor_at"] = (timezone.now() - timedelta(minutes=6)).isoformat()
    session.save()


def code_of(user: User) -> str:
    return f"{AuthenticatorDevice.objects.get(user=user).totp().token():06d}"


@pytest.fixture
def operation(maker: User) -> Operation:
    return factories.prepared(maker)


@pytest.fixture
def as_checker(sign_in: SignIn, checker: User) -> Client:
    return sign_in(Client(), checker)


@pytest.fixture
def as_maker(sign_in: SignIn, maker: User) -> Client:
    return sign_in(Client(), maker)


def test_it_shows_the_sentence_the_facts_and_the_code_to_compare(
    as_checker: Client, operation: Operation
) -> None:
    html = text_of(show(as_checker, operation))
    assert f"<h1>{operation.sentence}</h1>" in html
    assert "0123456789 · Access Bank (044)" in html
    assert f'<p class="digest">{operation.code}</p>' in html
    assert operation.rule in html


@pytest.mark.parametrize(
    ("person", "statuses", "title", "buttons"),
    [
        ("checker", [], "Your decision", ["Approve", "Approve and send", "Reject"]),
        ("maker", [], "Waiting for another person", ["Cancel the operation"]),
        ("auditor", [], "Waiting for a second person", []),
        ("checker", ["approved"], "Ready to be sent", ["Send now"]),
        ("maker", ["approved"], "Countersigned, not sent", ["Cancel the operation"]),
        ("auditor", ["approved"], "Countersigned, not sent", []),
        ("checker", ["approved", "sending"], "Being sent", []),
        ("checker", ["approved", "sending", "processing"], "The service works on it", ["Check now"]),
        ("maker", ["approved", "sending", "unknown"], "The outcome is not known", ["Check now"]),
        ("auditor", ["approved", "sending", "unknown"], "The outcome is not known", []),
        ("checker", ["approved", "sending", "unknown", "review"], "People must look at it", []),
    ],
)
def test_each_person_gets_the_controls_of_the_moment(  # noqa: PLR0917
    sign_in: SignIn,
    checker: User,
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
    every = ["Approve", "Approve and send", "Reject", "Send now", "Cancel the operation", "Check now"]
    assert f'<h2 id="decision-title">{title}</h2>' in main
    assert [name for name in every if f">{name}</button>" in main] == [
        name for name in every if name in buttons
    ]


def test_an_open_page_asks_again_and_is_left_alone_while_nothing_changed(
    as_checker: Client, operation: Operation
) -> None:
    answer = show(as_checker, operation)
    seen = answer.context["seen"]
    assert f"/operations/{operation.pk}/live/?seen={seen}" in text_of(answer)
    assert show(as_checker, operation, "live/", seen=seen).status_code == 204


def test_an_open_page_is_told_what_changed(
    as_checker: Client, as_maker: Client, operation: Operation
) -> None:
    seen = show(as_maker, operation).context["seen"]
    do(as_checker, operation, "approve")
    answer = show(as_maker, operation, "live/", seen=seen)
    assert answer.status_code == 200
    assert text_of(answer).lstrip().startswith('<div id="operation" data-poll')
    assert "It is now: Approved." in text_of(answer)


def test_a_look_by_the_page_itself_keeps_no_session_alive(as_maker: Client, operation: Operation) -> None:
    session: Any = as_maker.session
    row = type(session).get_model_class().objects.filter(pk=session.session_key)
    long_ago = timezone.now() - timedelta(minutes=10)
    row.update(last_seen_at=long_ago)
    show(as_maker, operation, "live/", seen="")
    assert row.get().last_seen_at == long_ago
    show(as_maker, operation)
    assert row.get().last_seen_at > long_ago


def test_a_closed_operation_is_not_asked_after(as_maker: Client, operation: Operation) -> None:
    do(as_maker, operation, "cancel")
    html = text_of(show(as_maker, operation))
    assert "data-poll" not in html
    assert "hx-trigger" not in html


def test_approving_countersigns_and_sends_nothing(as_checker: Client, operation: Operation) -> None:
    answer = do(as_checker, operation, "approve", comment="Invoice seen")
    assert answer["Location"] == f"/operations/{operation.pk}/"
    assert status_of(operation) == Status.APPROVED
    assert not Release.objects.exists()
    assert "<q>Invoice seen</q>" in text_of(show(as_checker, operation))


def test_approving_and_sending_hands_the_token_over(as_checker: Client, operation: Operation) -> None:
    do(as_checker, operation, "approve-and-send", token="123456")
    assert Release.objects.get().operation == operation
    assert "About to be sent" in text_of(show(as_checker, operation))


def test_sending_without_a_token_does_nothing_and_keeps_the_comment(
    as_checker: Client, operation: Operation
) -> None:
    answer = do(as_checker, operation, "approve-and-send", token="", comment="Invoice seen")
    assert answer.status_code == 422
    assert "one-time token" in text_of(answer)
    assert 'value="Invoice seen"' in text_of(answer)
    assert status_of(operation) == Status.PENDING


def test_an_approved_operation_is_sent_with_a_token(as_checker: Client, operation: Operation) -> None:
    do(as_checker, operation, "approve")
    refused = do(as_checker, operation, "release", token=" ")
    assert refused.status_code == 422
    assert "Enter the service&#x27;s one-time token. Nothing was sent." in text_of(refused)
    assert do(as_checker, operation, "release", token="123456").status_code == 302
    assert Release.objects.get().operation == operation


def test_a_token_never_comes_back_with_a_page(as_checker: Client, operation: Operation) -> None:
    refused = as_checker.post(
        f"/operations/{operation.pk}/approve-and-send/",
        {"digest": "other", "token": "918273", "comment": "x"},
    )
    assert refused.status_code == 422
    assert "918273" not in text_of(refused)


def test_two_signatures_are_not_sent_by_the_first(as_checker: Client, maker: User) -> None:
    operation = factories.prepared(maker, amount=Decimal("10000001"))
    assert "Approve and send" not in text_of(show(as_checker, operation))
    do(as_checker, operation, "approve")
    html = text_of(show(as_checker, operation))
    assert "You have countersigned" in html
    assert "Amara Okafor; 1 of 2 still needed" in html
    assert status_of(operation) == Status.PENDING


def test_rejecting_closes_with_a_reason_that_the_maker_reads(
    as_checker: Client, as_maker: Client, operation: Operation
) -> None:
    do(as_checker, operation, "reject", reason="The invoice says 25,000.")
    html = text_of(show(as_maker, operation))
    assert status_of(operation) == Status.REJECTED
    assert '<p class="note bad">The invoice says 25,000.</p>' in html
    assert f"/operations/prepare/withdrawal/?copy={operation.pk}" in html


def test_rejecting_needs_a_reason(as_checker: Client, operation: Operation) -> None:
    answer = do(as_checker, operation, "reject", reason="  ")
    assert answer.status_code == 422
    assert '<details class="fold danger" open>' in text_of(answer)
    assert "Say why" in text_of(answer)
    assert status_of(operation) == Status.PENDING


def test_an_old_second_factor_asks_for_a_code_and_keeps_what_was_typed(
    as_checker: Client, checker: User, operation: Operation
) -> None:
    let_second_factor_age(as_checker)
    answer = do(as_checker, operation, "approve", comment="Invoice seen")
    assert answer.status_code == 422
    assert 'name="code"' in text_of(answer)
    assert 'value="Invoice seen"' in text_of(answer)
    assert status_of(operation) == Status.PENDING
    do(as_checker, operation, "approve", code=code_of(checker))
    assert status_of(operation) == Status.APPROVED


def test_a_wrong_code_signs_nothing_and_is_recorded(
    as_checker: Client, checker: User, operation: Operation
) -> None:
    let_second_factor_age(as_checker)
    wrong = f"{(int(code_of(checker)) + 500_000) % 1_000_000:06d}"
    answer = do(as_checker, operation, "approve", code=wrong)
    assert answer.status_code == 422
    assert "wrong or was used before" in text_of(answer)
    assert wrong not in text_of(answer)
    assert status_of(operation) == Status.PENDING
    assert Entry.objects.filter(action=Action.SECOND_FACTOR_REFUSED, actor=checker).exists()


def test_a_code_is_not_used_up_while_something_else_is_missing(
    as_checker: Client, checker: User, operation: Operation
) -> None:
    let_second_factor_age(as_checker)
    code = code_of(checker)
    assert do(as_checker, operation, "reject", reason="", code=code).status_code == 422
    assert do(as_checker, operation, "reject", reason="Wrong invoice", code=code).status_code == 302


def test_a_decision_on_content_that_is_not_the_one_shown_does_nothing(
    as_checker: Client, operation: Operation
) -> None:
    answer = as_checker.post(f"/operations/{operation.pk}/approve/", {"digest": "0" * 64})
    assert answer.status_code == 422
    assert "not the one you saw" in text_of(answer)
    assert f'name="digest" value="{operation.digest}"' in text_of(answer)
    assert status_of(operation) == Status.PENDING


@pytest.mark.parametrize(
    ("action", "values"),
    [
        ("approve", {}),
        ("approve-and-send", {"token": "123456"}),
        ("reject", {"reason": "Too late"}),
        ("release", {"token": "123456"}),
    ],
)
def test_a_decision_on_a_stale_page_says_how_things_stand(
    as_checker: Client, as_maker: Client, operation: Operation, action: str, values: dict[str, str]
) -> None:
    do(as_maker, operation, "cancel")
    answer = do(as_checker, operation, action, **values)
    assert answer.status_code == 422
    assert "The operation is cancelled by now, so nothing was changed." in text_of(answer)
    assert Entry.objects.filter(action=Action.OPERATION_REFUSED).exists()


def test_cancelling_too_late_says_so(as_maker: Client, as_checker: Client, operation: Operation) -> None:
    do(as_checker, operation, "reject", reason="Wrong invoice")
    answer = as_maker.post(f"/operations/{operation.pk}/cancel/", follow=True)
    assert "The operation is rejected by now" in text_of(answer)


def test_nobody_approves_what_they_prepared_even_by_a_forged_form(
    sign_in: SignIn, maker: User, checker: User
) -> None:
    checker.groups.add(*maker.groups.all())
    operation = factories.prepared(checker)
    client = sign_in(Client(), checker)
    assert ">Approve<" not in text_of(show(client, operation))
    answer = do(client, operation, "approve")
    assert answer.status_code == 422
    assert "You prepared this operation" in text_of(answer)
    assert status_of(operation) == Status.PENDING


@pytest.mark.parametrize("action", ["approve", "approve-and-send", "reject", "release"])
def test_who_may_not_decide_is_turned_away(as_maker: Client, operation: Operation, action: str) -> None:
    assert do(as_maker, operation, action, reason="x", token="1").status_code == 403
    assert status_of(operation) == Status.PENDING


@pytest.mark.parametrize("part", ["", "live/"])
def test_who_may_see_nothing_sees_no_operation(
    sign_in: SignIn, outsider: User, operation: Operation, part: str
) -> None:
    assert show(sign_in(Client(), outsider), operation, part).status_code == 403


def test_an_auditor_cannot_have_the_list_of_the_service_read(
    sign_in: SignIn, auditor: User, operation: Operation
) -> None:
    put(operation, "approved", "sending", "unknown")
    assert do(sign_in(Client(), auditor), operation, "check").status_code == 403


def test_what_came_back_is_shown_without_the_word_failed(
    as_checker: Client, checker: User, operation: Operation
) -> None:
    services.approve_operation(
        operation.pk, actor=checker, digest=operation.digest, second_factor_at=timezone.now()
    )
    operation.attempts.create(
        number=1,
        released_by=checker,
        digest=operation.digest,
        started_at=timezone.now(),
        deadline_at=timezone.now(),
        outcome="token_refused",
        answer="token is not valid",
        answer_status=400,
        closed_at=timezone.now(),
    )
    html = text_of(show(as_checker, operation))
    assert "It was tried and not executed: the service refused the token (token is not valid)." in html
    assert "Send now" in html


@pytest.mark.parametrize("person", ["maker", "checker", "auditor"])
def test_the_page_needs_six_queries_at_most(
    sign_in: SignIn,
    checker: User,
    auditor: User,
    operation: Operation,
    request: pytest.FixtureRequest,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    person: str,
) -> None:
    services.approve_operation(
        operation.pk, actor=checker, digest=operation.digest, second_factor_at=timezone.now()
    )
    client = sign_in(Client(), request.getfixturevalue(person))
    with django_assert_max_num_queries(6):
        show(client, operation)
