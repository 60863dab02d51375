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
from backoffice.operations.models.reason_codes import AnswerCode, coded
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.provider_list import shows
from tests.operations.steps import do, put, show, text_of
from tests.operations.unknown_outcomes import in_review, proposed, record
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
DESK = "/operations/unknown/"
SignIn = Callable[[Client, User], Client]


def evidence(client: Client, operation: Operation) -> str:
    return text_of(show(client, operation, "evidence/"))


def many_cases(preparer: User, approver: User, how_many: int) -> None:
    """So many that wait for people, each as it is after its attempt; one of them holds the balance."""
    for number in range(how_many):
        operation = factories.approved(preparer, approver, account_number=f"{number:010}", repeat_reason="")
        Attempt.objects.create(
            operation=operation,
            number=1,
            released_by=approver,
            digest=operation.digest,
            started_at=timezone.now() - timedelta(hours=30, minutes=-number),
            deadline_at=timezone.now(),
            answers=[
                coded(
                    AnswerCode.UNREADABLE,
                    error="The service answered 502, which proves nothing.",
                    excerpt="bad gateway",
                )
            ],
            watermark_balance="5000000",
            watermark_transaction_id="OLD",
            watermark_provider_time=timezone.now() - timedelta(hours=30),
        )
        put(operation, Status.SENDING, Status.UNKNOWN, Status.REVIEW)


def test_it_shows_what_was_sent_what_was_seen_before_and_the_looks(
    unknown: Operation, as_preparer: Client
) -> None:
    confirmation.confirm_operation(unknown.pk)
    html = text_of(as_preparer.get(DESK))
    assert unknown.sentence in html
    assert "released by Amara Okafor, prepared by Tunde Bello" in html
    assert re.search(r"Balance .{0,60}5,000,000\.00.*newest transaction <code>OLD</code>", html)
    assert "Not in the service&#x27;s list yet" in html
    assert re.search(r"1 look; next <time", html)


def test_it_says_which_balance_it_holds_and_how_many_wait_behind_it(
    unknown: Operation, as_preparer: Client, preparer: User, approver: User
) -> None:
    assert "It holds the NGN balance" in text_of(as_preparer.get(DESK))
    assert "Nothing waits behind it." in text_of(as_preparer.get(DESK))
    factories.approved(preparer, approver, amount=Decimal(7))
    factories.approved(preparer, approver, amount=Decimal(7), currency="USD")
    html = text_of(as_preparer.get(DESK))
    assert "1 countersigned operation waits behind it." in html
    assert html.index("It holds the NGN balance") < html.index("<dt>Sent</dt>")
    Attempt.objects.update(provider_transaction_id="T-7")
    assert "It holds the" not in text_of(as_preparer.get(DESK))


def test_one_that_is_not_shown_can_always_be_named(
    service: StubProvider, unknown: Operation, as_preparer: Client
) -> None:
    shows(service, record("T-7"))
    assert "It happened, as this one…" in evidence(as_preparer, unknown)
    assert "It happened, as a transaction not shown here…" in text_of(as_preparer.get(DESK))


def test_where_no_read_can_help_the_page_says_so(as_preparer: Client, preparer: User, approver: User) -> None:
    operation = factories.approve(
        factories.prepared_of_kind("payment", SAMPLES["payment"], preparer), approver
    )
    factories.attempt(operation, released_by=approver)
    put(operation, Status.SENDING, Status.UNKNOWN, Status.REVIEW)
    html = evidence(as_preparer, operation)
    assert "No read of the service shows what became of it." in html
    assert "Reported by the provider" not in html
    assert "does not show that it is done" not in html


def test_a_transaction_is_shown_beside_it_field_by_field(
    service: StubProvider, unknown: Operation, as_preparer: Client
) -> None:
    shows(service, record("T-7", amount=250050))
    html = evidence(as_preparer, unknown)
    found = dict(re.findall(r'<th scope="row">([\w ]+)</th>.*?class="badge[^"]*">\s*([a-z ]+)', html, re.S))
    assert found == {
        "Type": "fits",
        "Currency": "fits",
        "Amount": "differs",
        "Beneficiary": "not told",
        "Balance before it": "fits",
        "Time": "fits",
    }
    assert ">250,000.00</td>" in html
    assert ">250,050.00</td>" in html
    assert f"?operation={unknown.pk}&amp;verdict=happened&amp;transaction_id=T-7" in html


def test_the_nearest_transactions_come_first_and_far_ones_not_at_all(
    service: StubProvider, unknown: Operation, as_preparer: Client
) -> None:
    far = record("T-1", type="deposit", amount=7, prevBalance=1)
    shows(service, far, record("T-2", amount=9), record("T-3"))
    assert re.findall(r'data-copy="(T-\d)"', evidence(as_preparer, unknown)) == ["T-3", "T-2"]


def test_one_that_belongs_to_another_operation_says_so_and_cannot_be_chosen(
    service: StubProvider, unknown: Operation, as_preparer: Client, preparer: User, approver: User
) -> None:
    many_cases(preparer, approver, 1)
    other = Operation.objects.exclude(pk=unknown.pk).get()
    Attempt.objects.filter(operation=other).update(
        provider_transaction_id="T-7", closed_at=timezone.now(), outcome=Outcome.SUCCEEDED
    )
    shows(service, record("T-7"))
    html = evidence(as_preparer, unknown)
    assert f'belongs to <a href="/operations/{other.pk}/">{other.reference}</a>' in html
    assert "It happened, as this one" not in html


def test_while_the_provider_is_away_the_last_evidence_is_shown_with_its_age(
    service: StubProvider, unknown: Operation, as_preparer: Client, settings: Settings
) -> None:
    shows(service, record("T-7"))
    evidence(as_preparer, unknown)
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    html = evidence(as_preparer, unknown)
    assert "Not updated: " in html
    assert "T-7" in html
    assert "T-7" in text_of(as_preparer.get(DESK))


def test_that_it_did_not_happen_is_offered_only_when_it_can_no_longer_happen(
    unknown: Operation, as_preparer: Client
) -> None:
    assert "It did not happen…" not in text_of(as_preparer.get(DESK))
    assert "can be said from" in text_of(as_preparer.get(DESK))
    in_review(unknown)
    assert f"?operation={unknown.pk}&amp;verdict=did_not_happen" in text_of(as_preparer.get(DESK))


def test_a_resolution_that_waits_is_shown_and_no_second_one_offered(
    unknown: Operation, as_preparer: Client, approver: User
) -> None:
    resolution = proposed(in_review(unknown), approver, "did_not_happen")
    html = text_of(as_preparer.get(DESK))
    assert (
        f'<a href="/operations/{resolution.pk}/">{resolution.sentence}</a>: proposed by Amara Okafor' in html
    )
    assert "It did not happen…" not in html


def test_a_click_checks_the_status_and_closes_what_is_proven(
    service: StubProvider, unknown: Operation, as_preparer: Client
) -> None:
    Attempt.objects.update(started_at=timezone.now() - timedelta(minutes=10))
    shows(service, record("T-7"))
    answer = do(as_preparer, unknown, "check", next="investigation")
    assert answer["Location"] == DESK
    unknown.refresh_from_db()
    assert unknown.status == Status.SUCCEEDED
    assert "No open case" in text_of(as_preparer.get(DESK))


def test_what_the_provider_processes_for_long_is_an_unknown_outcome_too(
    service: StubProvider, as_preparer: Client, preparer: User, approver: User
) -> None:
    service.answer_post = lambda: (200, '{"data": {"transactionId": "T-1"}}')
    operation = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(operation.pk)
    assert "No open case" in text_of(as_preparer.get(DESK))
    Attempt.objects.update(started_at=timezone.now() - timedelta(minutes=61))
    html = text_of(as_preparer.get(DESK))
    assert operation.reference in html
    assert "It happened" not in html


def test_a_closed_case_leads_to_its_operation(unknown: Operation, as_preparer: Client) -> None:
    closed = factories.prepared_to_another_account(unknown.preparer)
    assert show(as_preparer, closed, "case/")["Location"] == f"/operations/{closed.pk}/"
    assert show(as_preparer, closed, "evidence/").status_code == 204


def test_without_scripts_a_case_is_asked_for_by_a_link(
    service: StubProvider, unknown: Operation, as_preparer: Client
) -> None:
    shows(service, record("T-7"))
    assert "case/?read=1" in text_of(as_preparer.get(DESK))
    assert "T-7" in text_of(show(as_preparer, unknown, "case/", read="1"))


def test_who_may_not_propose_sees_the_evidence_and_no_controls(
    unknown: Operation, sign_in: SignIn, auditor: User
) -> None:
    html = text_of(sign_in(Client(), auditor).get(f"/operations/{in_review(unknown).pk}/case/"))
    assert unknown.sentence in html
    assert "It did not happen…" not in html


def test_it_is_linked_from_the_overview_the_menu_and_the_operation(
    unknown: Operation, as_preparer: Client
) -> None:
    assert text_of(as_preparer.get("/")).count(f'href="{DESK}"') >= 3
    assert f'href="/operations/{unknown.pk}/case/"' in text_of(show(as_preparer, unknown))


@pytest.mark.parametrize("person", ["preparer", "approver"])
def test_it_needs_eight_queries_and_fourteen_kilobytes_at_most(
    service: StubProvider,
    preparer: User,
    approver: User,
    person: str,
    request: pytest.FixtureRequest,
    sign_in: SignIn,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    many_cases(preparer, approver, 12)
    client = sign_in(Client(), request.getfixturevalue(person))
    shows(service, *(record(f"T-{number}") for number in range(9)))
    for operation in Operation.objects.all():
        evidence(client, operation)
    with django_assert_max_num_queries(8):
        answer = client.get(DESK)
    assert text_of(answer).count("<h2 id=") == 5
    assert len(gzip.compress(answer.content)) < 14_000


def test_the_oldest_come_first_and_the_rest_on_further_pages(
    service: StubProvider, preparer: User, approver: User, as_preparer: Client
) -> None:
    many_cases(preparer, approver, 7)
    expected = [attempt.operation.reference for attempt in Attempt.objects.order_by("started_at")]
    first = as_preparer.get(DESK)
    cursor = first.context["page"].next_cursor
    second = as_preparer.get(DESK, {"cursor": cursor})
    shown = [case.operation.reference for page in (first, second) for case in page.context["cases"]]
    assert shown == expected
