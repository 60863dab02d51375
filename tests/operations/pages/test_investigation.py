"""The page of unknown outcomes: what we sent beside what the provider shows."""

import gzip
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import ResponseCode, coded
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.provider_list import shows
from tests.operations.steps import do, put, show, text_of
from tests.operations.unknown_outcomes import in_review, proposed, record
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
DESK = "/reconciliation/unknown/"
SignIn = Callable[[Client, User], Client]


def evidence(client: Client, operation: Operation) -> str:
    return text_of(show(client, operation, "evidence/"))


def many_cases(preparer: User, approver: User, how_many: int) -> None:
    """So many that wait for people, each as it is after its attempt; one of them holds the balance."""
    for number in range(how_many):
        operation = factories.approved(
            preparer, approver, account_number=f"{number:010}", duplicate_reason=""
        )
        Attempt.objects.create(
            operation=operation,
            number=1,
            released_by=approver,
            digest=operation.digest,
            started_at=timezone.now() - timedelta(hours=30, minutes=-number),
            deadline_at=timezone.now(),
            responses=[
                coded(
                    ResponseCode.UNREADABLE,
                    error="The service answered 502, which proves nothing.",
                    excerpt="bad gateway",
                )
            ],
            watermark_balance="5000000",
            watermark_transaction_id="OLD",
            watermark_provider_time=timezone.now() - timedelta(hours=30),
        )
        put(operation, Status.SENDING, Status.UNKNOWN, Status.REVIEW)


def test_the_page_shows_request_watermark_and_checks(unknown: Operation, as_preparer: Client) -> None:
    confirmation.confirm_operation(unknown.pk)
    html = text_of(as_preparer.get(DESK))
    assert unknown.sentence in html
    assert "released by Amara Okafor, prepared by Tunde Bello" in html
    assert re.search(r"Balance before sending</dt>\s*<dd>.{0,60}5,000,000\.00", html)
    assert re.search(r"Newest transaction before sending</dt>\s*<dd><code>OLD</code>", html)
    assert "Not in the provider&#x27;s list yet" in html
    assert re.search(r"1 check · next <time", html)


def test_the_page_shows_the_blocked_amount_and_its_queue(
    settings: Settings, unknown: Operation, as_preparer: Client, preparer: User, approver: User
) -> None:
    assert "Blocks other payments of NGN 250,000.00 until" in text_of(as_preparer.get(DESK))
    assert "No approved operation is waiting." in text_of(as_preparer.get(DESK))
    factories.approved(preparer, approver, account_number="0000000001")
    factories.approved(preparer, approver, amount=Decimal(7))
    factories.approved(preparer, approver, currency="USD")
    html = text_of(as_preparer.get(DESK))
    assert "1 approved operation is waiting." in html
    assert html.index("Blocks other payments of NGN") < html.index("<dt>Sent</dt>")
    settings.STRICT_BALANCE_ORDER = True
    html = text_of(as_preparer.get(DESK))
    assert "Blocks other NGN payments until it is resolved. 2 approved operations are waiting." in html
    Attempt.objects.update(provider_transaction_id="T-7")
    assert "Blocks other" not in text_of(as_preparer.get(DESK))


def test_a_transaction_not_listed_can_be_entered(
    provider: StubProvider, unknown: Operation, as_preparer: Client
) -> None:
    shows(provider, record("T-7"))
    assert "Resolve as executed: this transaction…" in evidence(as_preparer, unknown)
    assert "Resolve as executed: enter a transaction…" in text_of(as_preparer.get(DESK))


def test_kinds_without_a_status_read_are_explained(
    as_preparer: Client, preparer: User, approver: User
) -> None:
    operation = factories.approve(
        factories.prepared_of_kind("payment", SAMPLES["payment"], preparer), approver
    )
    factories.attempt(operation, released_by=approver)
    put(operation, Status.SENDING, Status.UNKNOWN, Status.REVIEW)
    html = evidence(as_preparer, operation)
    assert "API does not show this outcome." in html
    assert "Reported by the provider:" not in html
    assert "does not show this change as done" not in html


def test_a_transaction_is_compared_field_by_field(
    provider: StubProvider, unknown: Operation, as_preparer: Client
) -> None:
    shows(provider, record("T-7", amount=250050))
    html = evidence(as_preparer, unknown)
    found = dict(
        re.findall(r'<th scope="row">([\w ]+)</th>.*?class="badge[^"]*">\s*([A-Za-z ]+)', html, re.S)
    )
    assert found == {
        "Type": "Matches",
        "Currency": "Matches",
        "Amount": "Differs",
        "Recipient": "Not provided",
        "Balance before": "Matches",
        "Time": "Matches",
    }
    assert ">250,000.00</td>" in html
    assert ">250,050.00</td>" in html
    assert f"?operation={unknown.pk}&amp;choice=executed&amp;transaction_id=T-7" in html


def test_near_matches_are_sorted_and_distant_ones_omitted(
    provider: StubProvider, unknown: Operation, as_preparer: Client
) -> None:
    far = record("T-1", type="deposit", amount=7, prevBalance=1)
    shows(provider, far, record("T-2", amount=9), record("T-3"))
    assert re.findall(r'data-copy="(T-\d)"', evidence(as_preparer, unknown)) == ["T-3", "T-2"]


def test_a_transaction_of_another_operation_cannot_be_selected(
    provider: StubProvider, unknown: Operation, as_preparer: Client, preparer: User, approver: User
) -> None:
    many_cases(preparer, approver, 1)
    other = Operation.objects.exclude(pk=unknown.pk).get()
    Attempt.objects.filter(operation=other).update(
        provider_transaction_id="T-7", closed_at=timezone.now(), outcome=Outcome.SUCCEEDED
    )
    shows(provider, record("T-7"))
    html = evidence(as_preparer, unknown)
    assert f'belongs to <a href="/operations/{other.pk}/">{other.reference}</a>' in html
    assert "Resolve as executed: this transaction" not in html


def test_an_unreachable_provider_shows_the_last_evidence_with_its_age(
    provider: StubProvider, unknown: Operation, as_preparer: Client, settings: Settings
) -> None:
    shows(provider, record("T-7"))
    evidence(as_preparer, unknown)
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    html = evidence(as_preparer, unknown)
    assert "Not refreshed: " in html
    assert "T-7" in html
    assert "T-7" in text_of(as_preparer.get(DESK))


def test_not_executed_is_offered_after_the_execution_deadline(
    unknown: Operation, as_preparer: Client
) -> None:
    assert "Resolve as not executed…" not in text_of(as_preparer.get(DESK))
    assert ", it can be resolved as not executed." in text_of(as_preparer.get(DESK))
    in_review(unknown)
    assert f"?operation={unknown.pk}&amp;choice=not_executed" in text_of(as_preparer.get(DESK))


def test_a_pending_resolution_is_shown_and_no_second_one_offered(
    unknown: Operation, as_preparer: Client, approver: User
) -> None:
    resolution = proposed(in_review(unknown), approver, "not_executed")
    html = text_of(as_preparer.get(DESK))
    link = f'<a href="/operations/{resolution.pk}/">{resolution.sentence}</a>'
    assert f"{link} · prepared by Amara Okafor, waiting for approval" in html
    assert "Resolve as not executed…" not in html


def test_checking_the_status_closes_a_confirmed_operation(
    provider: StubProvider, unknown: Operation, as_preparer: Client
) -> None:
    Attempt.objects.update(started_at=timezone.now() - timedelta(minutes=10))
    shows(provider, record("T-7"))
    answer = do(as_preparer, unknown, "check", next="investigation")
    assert answer["Location"] == DESK
    unknown.refresh_from_db()
    assert unknown.status == Status.SUCCEEDED
    assert "No unknown outcomes" in text_of(as_preparer.get(DESK))


def test_a_long_processing_operation_is_listed_as_unknown_outcome(
    provider: StubProvider, as_preparer: Client, preparer: User, approver: User
) -> None:
    provider.answer_post = lambda: (200, '{"data": {"transactionId": "T-1"}}')
    operation = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(operation.pk)
    assert "No unknown outcomes" in text_of(as_preparer.get(DESK))
    Attempt.objects.update(started_at=timezone.now() - timedelta(minutes=61))
    html = text_of(as_preparer.get(DESK))
    assert operation.reference in html
    assert "Resolve as executed" not in html


def test_a_closed_case_redirects_to_its_operation(unknown: Operation, as_preparer: Client) -> None:
    closed = factories.prepared_to_another_account(unknown.preparer)
    assert show(as_preparer, closed, "case/")["Location"] == f"/operations/{closed.pk}/"
    assert show(as_preparer, closed, "evidence/").status_code == 204


def test_a_link_opens_a_case_without_javascript(
    provider: StubProvider, unknown: Operation, as_preparer: Client
) -> None:
    shows(provider, record("T-7"))
    assert "case/?read=1" in text_of(as_preparer.get(DESK))
    assert "T-7" in text_of(show(as_preparer, unknown, "case/", read="1"))


def test_readers_see_the_evidence_without_controls(
    unknown: Operation, sign_in: SignIn, auditor: User
) -> None:
    html = text_of(sign_in(Client(), auditor).get(f"/operations/{in_review(unknown).pk}/case/"))
    assert unknown.sentence in html
    assert "Resolve as not executed…" not in html


def test_it_is_linked_from_the_overview_reconciliation_and_the_operation(
    unknown: Operation, as_preparer: Client
) -> None:
    assert text_of(as_preparer.get("/")).count(f'href="{DESK}"') == 1
    assert f'href="{DESK}"' in text_of(as_preparer.get("/reconciliation/"))
    assert f'href="/operations/{unknown.pk}/case/"' in text_of(show(as_preparer, unknown))


@pytest.mark.parametrize("person", ["preparer", "approver"])
def test_the_page_takes_at_most_eight_queries_and_fourteen_kilobytes(
    provider: StubProvider,
    preparer: User,
    approver: User,
    person: str,
    request: pytest.FixtureRequest,
    sign_in: SignIn,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    many_cases(preparer, approver, 12)
    client = sign_in(Client(), request.getfixturevalue(person))
    shows(provider, *(record(f"T-{number}") for number in range(9)))
    for operation in Operation.objects.all():
        evidence(client, operation)
    with django_assert_max_num_queries(8):
        answer = client.get(DESK)
    assert text_of(answer).count("<h2 id=") == 5
    assert len(gzip.compress(answer.content)) < 14_000


def test_cases_are_paginated_oldest_first(
    provider: StubProvider, preparer: User, approver: User, as_preparer: Client
) -> None:
    many_cases(preparer, approver, 7)
    expected = [attempt.operation.reference for attempt in Attempt.objects.order_by("started_at")]
    first = as_preparer.get(DESK)
    cursor = first.context["page"].next_cursor
    second = as_preparer.get(DESK, {"cursor": cursor})
    shown = [case.operation.reference for page in (first, second) for case in page.context["cases"]]
    assert shown == expected
