"""Preparing a withdrawal: the form, its live check, the review, and every way to fill it in wrongly."""

import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.ledger import accounts as ledger
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.prepare import MAX_DRAFTS
from tests import factories, stub_provider
from tests.cached_reads import forget_reads
from tests.policies.versions import put_in_effect
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
ADDRESS = "/operations/prepare/withdrawal/"
NUMBER, BANK = "0123456789", "044"


@pytest.fixture
def as_preparer(sign_in: SignIn, preparer: User) -> Client:
    return sign_in(Client(), preparer)


@pytest.fixture
def holder(sandbox: SandboxProcess) -> str:
    """The name that the provider gives for the account."""
    return ledger.resolve_account_holder(NUMBER, BANK).account_name


def filled_in(holder: str, **changes: str) -> dict[str, str]:
    values = {
        "submission": str(uuid.uuid4()),
        "currency": "NGN",
        "amount": "250000.00",
        "bank_code": BANK,
        "account_number": NUMBER,
        "typed_name": holder,
        "name_reason": "",
        "memo": "week 46",
    }
    return {**values, **changes}


def review(client: Client, values: dict[str, str]) -> Any:
    return client.post(ADDRESS, {**values, "step": "review"})


def prepare(client: Client, values: dict[str, str]) -> Any:
    """Review, then press "Prepare" on the review."""
    digest = review(client, values).context["digest"]
    return client.post(ADDRESS, {**values, "digest": digest, "step": "prepare"})


def text_of(answer: Any) -> str:
    return str(answer.content.decode())


def test_the_review_shows_the_effect_and_the_approvals_needed(as_preparer: Client, holder: str) -> None:
    answer = review(as_preparer, filled_in(holder))
    html = text_of(answer)
    assert f"<h1>Withdraw NGN 250,000.00 to {holder}, Access Bank ••6789</h1>" in html
    assert "Requires one approver who is not the preparer." in html
    assert f'<p class="digest">{answer.context["code"]}</p>' in html
    assert not Operation.objects.exists()


def test_a_review_that_the_policies_refuse_is_not_offered_for_approval(
    as_preparer: Client, holder: str
) -> None:
    assert 'value="prepare"' in text_of(review(as_preparer, filled_in(holder)))
    put_in_effect({"refuse": "Ask Treasury first"})
    html = text_of(review(as_preparer, filled_in(holder)))
    assert 'value="prepare"' not in html
    assert "then submit for approval" not in html
    assert "Ask Treasury first" in html
    assert 'value="change"' in html
    prepare(as_preparer, filled_in(holder))
    assert not Operation.objects.exists()


def test_the_reviewed_content_is_prepared(as_preparer: Client, preparer: User, holder: str) -> None:
    values = filled_in(holder)
    digest = review(as_preparer, values).context["digest"]
    answer = as_preparer.post(ADDRESS, {**values, "digest": digest, "step": "prepare"})
    operation = Operation.objects.get()
    assert answer["Location"] == f"/operations/{operation.pk}/"
    assert (operation.digest, operation.preparer, operation.amount) == (digest, preparer, Decimal(250000))
    assert str(operation.pk) == values["submission"]


@pytest.mark.parametrize(
    ("amount", "written"),
    [("250000.00", "Another person must approve it."), ("10000000.01", "2 approvals are needed.")],
)
def test_the_approvals_needed_are_said_after_submitting(
    as_preparer: Client, holder: str, amount: str, written: str
) -> None:
    answer = prepare(as_preparer, filled_in(holder, amount=amount))
    assert f"Submitted for approval. {written}" in text_of(as_preparer.get(answer["Location"]))


def test_resubmitting_a_form_makes_one_operation(as_preparer: Client, holder: str) -> None:
    values = filled_in(holder)
    first, second = prepare(as_preparer, values), prepare(as_preparer, values)
    assert first["Location"] == second["Location"]
    assert Operation.objects.count() == 1


def test_resubmitting_a_form_while_the_provider_is_down_finds_its_operation(
    as_preparer: Client, settings: Settings, holder: str
) -> None:
    values = filled_in(holder)
    digest = review(as_preparer, values).context["digest"]
    first = as_preparer.post(ADDRESS, {**values, "digest": digest, "step": "prepare"})
    forget_reads()
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    again = as_preparer.post(ADDRESS, {**values, "digest": digest, "step": "prepare"}, follow=True)
    assert again.redirect_chain == [(first["Location"], 302)]
    assert "This form was already submitted. The operation was prepared once." in text_of(again)
    assert Operation.objects.count() == 1


def test_a_form_with_the_id_of_anothers_operation_reveals_nothing(
    as_preparer: Client, settings: Settings
) -> None:
    other = factories.person("Ngozi Eze", Role.PREPARER)
    operation = factories.prepared(other)
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    values = filled_in("Somebody Else", submission=str(operation.pk), amount="1")
    answer = as_preparer.post(ADDRESS, {**values, "digest": operation.digest, "step": "prepare"})
    assert answer.status_code == 422
    assert operation.reference not in text_of(answer)
    assert operation.sentence not in text_of(answer)


def test_resubmitting_a_form_with_changed_content_is_refused(as_preparer: Client, holder: str) -> None:
    values = filled_in(holder)
    prepare(as_preparer, values)
    answer = prepare(as_preparer, {**values, "amount": "999"})
    assert answer.status_code == 422
    assert "already submitted with other content" in text_of(answer)
    assert Operation.objects.get().amount == Decimal(250000)


def test_unreviewed_content_is_not_prepared(as_preparer: Client, holder: str) -> None:
    values = filled_in(holder)
    digest = review(as_preparer, values).context["digest"]
    answer = as_preparer.post(ADDRESS, {**values, "amount": "999", "digest": digest, "step": "prepare"})
    assert answer.status_code == 422
    assert "details changed after your review" in text_of(answer)
    assert not Operation.objects.exists()


def test_going_back_to_change_keeps_the_input(as_preparer: Client, holder: str) -> None:
    values = filled_in(holder)
    html = text_of(as_preparer.post(ADDRESS, {**values, "step": "change"}))
    assert 'value="250000.00"' in html
    assert f'value="{values["submission"]}"' in html


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("amount", "", "Enter an amount."),
        ("amount", "0", "greater than zero"),
        ("amount", "-5", "greater than zero"),
        ("amount", "10.001", "NGN has at most 2 decimals."),
        ("amount", "1e5", "Enter a number such as 5,000.50"),
        ("amount", "NaN", "Enter a number such as 5,000.50"),
        ("amount", "5.000,50", "Enter a number such as 5,000.50"),
        ("amount", "9000000000000", "The amount exceeds the balance"),
        ("account_number", "123", "exactly 10 digits"),
        ("account_number", "12345678901", "exactly 10 digits"),
        ("account_number", "01234S6789", "exactly 10 digits"),
        ("bank_code", "999999", "Unknown bank: 999999."),
        ("typed_name", "", "Enter the name of the account holder."),
        ("typed_name", "Somebody Else", "Give the reason for the mismatch"),
        ("memo", "x" * 29, "at most 28 characters"),
        ("currency", "USDT", "“USDT” is not among them"),
    ],
)
def test_invalid_input_is_reported_and_kept(
    as_preparer: Client, holder: str, field: str, typed: str, message: str
) -> None:
    answer = review(as_preparer, filled_in(holder, **{field: typed}))
    html = text_of(answer)
    beside = "name_reason" if typed == "Somebody Else" else field
    assert answer.status_code == 422
    assert f'id="id_{beside}_error"' in html
    assert message in " ".join(answer.context["form"].errors[beside])
    assert answer.context["form"][field].value() == typed
    assert not Operation.objects.exists()


def test_a_name_mismatch_is_prepared_with_a_reason_shown_to_the_approver(
    as_preparer: Client, sign_in: SignIn, approver: User, holder: str
) -> None:
    reason = "Trades under a short name"
    answer = prepare(as_preparer, filled_in(holder, typed_name="Somebody Else", name_reason=reason))
    html = text_of(sign_in(Client(), approver).get(answer["Location"]))
    assert "<dt>Reason for the mismatch</dt>" in html
    assert "Somebody Else" in html
    assert reason in html


def test_the_name_at_the_bank_is_shown_while_typing(as_preparer: Client, holder: str) -> None:
    html = text_of(as_preparer.post(f"{ADDRESS}check/", filled_in("", amount="")))
    assert f"<b>{holder}</b>" in html
    assert "Enter the name of the account holder." not in html
    assert "<!DOCTYPE" not in html


def test_a_name_mismatch_is_warned_of_while_typing(as_preparer: Client, holder: str) -> None:
    html = text_of(as_preparer.post(f"{ADDRESS}check/", filled_in("Somebody Else", amount="")))
    assert f"The names differ: {holder} would receive the money." in html
    assert 'name="name_reason"' in html


def test_the_account_is_checked_without_javascript(as_preparer: Client, holder: str) -> None:
    answer = as_preparer.post(ADDRESS, {**filled_in(holder, amount=""), "step": "check"})
    html = text_of(answer)
    assert answer.status_code == 200
    assert "The names match." in html
    assert "Enter the name of the account holder." not in html
    assert 'value="week 46"' in html


def test_what_else_the_provider_answered_is_in_a_disclosure(as_preparer: Client, settings: Settings) -> None:
    details = {"country": "NG", "phonenumber": "+2348030000001", "name": "Access Bank", "code": "044"}
    with stub_provider.running() as stub:
        settings.GATEWAY_URL = stub.url
        stub.answer_post = lambda: (200, json.dumps({"data": {"accountname": "ADA OBI", **details}}))
        first, cached = (
            text_of(as_preparer.post(f"{ADDRESS}check/", filled_in("Ada Obi"))) for _ in range(2)
        )
    disclosure = first.partition("Details from the provider")[2].partition("</details>")[0]
    for shown in ("Access Bank · 044", "Nigeria", "+2348030000001"):
        assert f"<dd>{shown}</dd>" in disclosure
    assert "Currency" not in disclosure
    assert cached == first


def test_an_unreachable_provider_prepares_nothing_and_keeps_the_input(
    as_preparer: Client, settings: Settings
) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    answer = review(as_preparer, filled_in("Ada Obi"))
    assert answer.status_code == 422
    assert "Account not checked. The provider cannot be reached" in text_of(answer)
    assert 'value="Ada Obi"' in text_of(answer)


def test_an_unreadable_response_prepares_nothing(as_preparer: Client, settings: Settings) -> None:
    with stub_provider.running() as stub:
        settings.GATEWAY_URL = stub.url
        stub.answer_post = lambda: (200, "<html>Welcome</html>")
        answer = review(as_preparer, filled_in("Ada Obi"))
    assert answer.status_code == 422
    assert "Account not checked. The provider responded with HTTP 200" in text_of(answer)


def test_a_copy_is_prepared_with_the_same_content(as_preparer: Client, preparer: User, holder: str) -> None:
    first = Operation.objects.get(pk=prepare(as_preparer, filled_in(holder))["Location"].split("/")[2])
    as_preparer.post(f"/operations/{first.pk}/cancel/")
    copy = f"{ADDRESS}?copy={first.pk}"
    html = text_of(as_preparer.get(copy))
    assert 'value="week 46"' in html
    assert first.reference in html
    values = filled_in(holder)
    digest = as_preparer.post(copy, {**values, "step": "review"}).context["digest"]
    as_preparer.post(copy, {**values, "digest": digest, "step": "prepare"})
    assert Operation.objects.get(pk=values["submission"]).prepared_from == first


def test_a_copy_of_a_missing_operation_is_not_found(as_preparer: Client) -> None:
    assert as_preparer.get(f"{ADDRESS}?copy={uuid.uuid4()}").status_code == 404
    assert as_preparer.get(f"{ADDRESS}?copy=nonsense").status_code == 200


def test_a_kind_that_does_not_exist_is_not_found(as_preparer: Client) -> None:
    assert as_preparer.get("/operations/prepare/lottery/").status_code == 404


@pytest.mark.parametrize("address", [ADDRESS, f"{ADDRESS}check/"])
def test_preparing_needs_the_permission(sign_in: SignIn, approver: User, address: str) -> None:
    assert sign_in(Client(), approver).post(address, filled_in("Ada Obi")).status_code == 403


def test_a_copied_form_takes_at_most_seven_queries(
    as_preparer: Client, preparer: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    copied = factories.prepared(preparer)
    with django_assert_max_num_queries(7):
        as_preparer.get(f"{ADDRESS}?copy={copied.pk}")


BY_A_BROWSER = {"Sec-Fetch-Mode": "navigate", "Referer": f"http://testserver{ADDRESS}"}


def test_a_browser_gets_an_address_for_the_form(as_preparer: Client) -> None:
    opened = as_preparer.get(f"{ADDRESS}?currency=USD", headers=BY_A_BROWSER)
    assert opened.status_code == 302
    assert opened.headers["Location"].startswith(f"{ADDRESS}?currency=USD&submission=")
    form = as_preparer.get(opened.headers["Location"], headers=BY_A_BROWSER)
    assert form.status_code == 200
    assert str(form.context["submission"]) in opened.headers["Location"]


def test_back_from_the_review_keeps_everything_that_was_typed(as_preparer: Client, holder: str) -> None:
    values = filled_in(holder)
    address = f"{ADDRESS}?submission={values['submission']}"
    reviewed = as_preparer.post(address, {**values, "step": "review"}, headers=BY_A_BROWSER)
    assert reviewed.status_code == 303
    assert "Requires one approver" in text_of(as_preparer.get(reviewed.headers["Location"]))
    back = as_preparer.get(address, headers=BY_A_BROWSER)
    typed = {name: back.context["form"][name].value() for name in values if name != "submission"}
    assert typed == {name: value for name, value in values.items() if name != "submission"}
    assert str(back.context["submission"]) == values["submission"]


def test_only_the_last_few_drafts_are_kept(as_preparer: Client, holder: str) -> None:
    sent = [filled_in(holder, memo=f"week {number}") for number in range(MAX_DRAFTS + 1)]
    for values in sent:
        review(as_preparer, values)
    kept = [as_preparer.get(f"{ADDRESS}?submission={values['submission']}") for values in (sent[0], sent[-1])]
    assert [form.context["form"]["memo"].value() or "" for form in kept] == ["", f"week {MAX_DRAFTS}"]


def test_another_person_does_not_see_the_draft(
    as_preparer: Client, holder: str, sign_in: SignIn, preparer: User
) -> None:
    values = filled_in(holder)
    review(as_preparer, values)
    elsewhere = sign_in(Client(), factories.person("Ngozi Eze", Role.PREPARER))
    form = elsewhere.get(f"{ADDRESS}?submission={values['submission']}").context["form"]
    assert not form["memo"].value()
