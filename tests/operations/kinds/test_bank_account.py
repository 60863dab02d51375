"""New bank accounts: the form, the request, every end, and what proves that one was opened."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations.delivery import send
from backoffice.operations.kinds.bank_account import BankAccountForm, BankAccountPayload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome, Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
ADDRESS = "/operations/prepare/bank_account/"
FILLED_IN = {"account_name": "Lagos shop", "currency": "NGN", "preferred_name": "Obi Traders Lagos"}
CREATED = {
    "account_name": "Obi Traders Lagos",
    "account_number": "0455001122",
    "bank_code": "035",
    "bank_name": "Wema Bank",
    "currency": "NGN",
    "status": "ACTIVE",
}
ANSWER = json.dumps({"data": [CREATED], "message": "Account created"})


@pytest.fixture
def as_administrator(sign_in: SignIn, administrator: User) -> Client:
    return sign_in(Client(), administrator)


def listed(*numbers: str, name: str = "Lagos shop", currency: str = "NGN") -> str:
    assets = [
        {"currency": currency, "id": number, "type": "bank_account", "balance": 0} for number in numbers
    ]
    return json.dumps([{"accountName": name, "assets": assets}])


def sample(**changes: Any) -> BankAccountPayload:
    payload = SAMPLES["bank_account"].model_copy(update=changes)
    assert isinstance(payload, BankAccountPayload)
    return payload


def released(preparer: User, approver: User, **changes: Any) -> Operation:
    pending = factories.prepared_of_kind("bank_account", sample(**changes), preparer)
    return factories.release(factories.approve(pending, approver), approver)


def sent(preparer: User, approver: User, **changes: Any) -> Operation:
    operation = released(preparer, approver, **changes)
    send.send_operation(operation.pk)
    return Operation.objects.get(pk=operation.pk)


def review(client: Client, **changes: str) -> Any:
    return client.post(ADDRESS, {**FILLED_IN, **changes, "step": "review"})


def test_the_form_explains_kyc_before_anything_is_typed(as_administrator: Client) -> None:
    assert "KYC must be complete" in as_administrator.get(ADDRESS).content.decode()


def test_the_review_shows_the_account_to_open(as_administrator: Client, provider: StubProvider) -> None:
    html = review(as_administrator).content.decode()
    assert "<h1>Open a bank account in NGN, named “Lagos shop”</h1>" in html
    assert "None with this name and currency" in html
    assert "Requires one approver who is not the preparer." in html


def test_an_existing_account_of_the_same_name_is_warned_of(
    as_administrator: Client, provider: StubProvider
) -> None:
    provider.accounts = listed("0455000001")
    html = review(as_administrator).content.decode()
    assert "This opens another one." in html
    assert "0455000001" in html


def test_an_existing_account_without_a_name_is_warned_of_too(
    as_administrator: Client, provider: StubProvider
) -> None:
    provider.accounts = listed("0455000001", name="")
    html = review(as_administrator).content.decode()
    assert "0455000001" in html
    assert "None with this name and currency" not in html


def test_the_currencies_are_those_of_the_profile(settings: Settings) -> None:
    for name, codes in (("specification", ["NGN", "USD"]), ("published", ["NGN", "KES"])):
        settings.GATEWAY_PROFILE = name
        currency: Any = BankAccountForm().fields["currency"]
        assert [code for code, _ in currency.choices] == codes


def test_an_unreadable_account_list_is_warned_of(as_administrator: Client, provider: StubProvider) -> None:
    provider.accounts = "42"
    assert "The existing accounts could not be read" in review(as_administrator).content.decode()


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("account_name", "", "Enter a value."),
        ("account_name", "x" * 101, "at most 100"),
        ("currency", "USDT", "“USDT” is not among them"),
        ("preferred_name", "x" * 101, "at most 100"),
    ],
)
def test_invalid_input_is_reported_at_its_field_and_kept(
    as_administrator: Client, provider: StubProvider, field: str, typed: str, message: str
) -> None:
    answer = review(as_administrator, **{field: typed})
    assert answer.status_code == 422
    form = answer.context["form"]
    assert message in " ".join(form.errors[field])
    kept = {name: form[name].value() for name in FILLED_IN if name != field}
    assert kept == {name: value for name, value in FILLED_IN.items() if name != field}
    assert not Operation.objects.exists()


def test_the_request_is_exactly_the_approved_content(
    administrator: User, approver: User, provider: StubProvider
) -> None:
    sent(administrator, approver)
    assert provider.changes == ["PUT /v4/account"]
    assert json.loads(provider.posts[0]) == {
        "accountName": "Lagos shop",
        "currency": "NGN",
        "preferredAccountName": "Obi Traders Lagos",
    }


def test_an_empty_preferred_name_is_not_sent(
    administrator: User, approver: User, provider: StubProvider
) -> None:
    sent(administrator, approver, preferred_name="")
    assert "preferredAccountName" not in json.loads(provider.posts[0])


@pytest.mark.parametrize(
    ("status", "body", "ends"),
    [
        (200, ANSWER, Status.SUCCEEDED),
        (200, '{"data": [], "message": "being opened"}', Status.PROCESSING),
        (200, '{"data": [{"status": "PENDING"}], "message": "ok"}', Status.PROCESSING),
        (400, '{"message": "user has not completed kyc"}', Status.FAILED),
        (422, '{"message": "currency is not offered"}', Status.FAILED),
        (500, '{"message": "internal error"}', Status.UNKNOWN),
        (200, "<html>", Status.UNKNOWN),
    ],
)
def test_every_response_leads_to_a_status(
    administrator: User, approver: User, provider: StubProvider, status: int, body: str, ends: Status
) -> None:
    provider.answer_post = lambda: (status, body)
    assert sent(administrator, approver).status == ends


def test_the_account_that_was_opened_is_shown_on_the_operation(
    administrator: User, approver: User, provider: StubProvider, as_administrator: Client
) -> None:
    provider.answer_post = lambda: (200, ANSWER)
    operation = sent(administrator, approver)
    html = as_administrator.get(f"/operations/{operation.pk}/").content.decode()
    for text in ("Account number", "0455001122", "Wema Bank (035)", "ACTIVE"):
        assert text in html


def test_opened_accounts_are_shown_in_the_same_order_on_both_engines() -> None:
    result = {"status_2": "NEW", "number_2": "2", "number_1": "1", "bank_1": "Wema Bank"}
    facts = KINDS["bank_account"].outcome_facts(sample(), result)
    assert facts == [
        ("Account number", "1"),
        ("Bank", "Wema Bank"),
        ("Account number", "2"),
        ("Status", "NEW"),
    ]


@pytest.mark.parametrize(
    ("accounts", "ends"),
    [
        (listed("0455001122"), Status.SUCCEEDED),
        (listed("0455001122", currency="USD"), Status.UNKNOWN),
        (listed("0455001122", name="Abuja shop"), Status.UNKNOWN),
        (listed("0455001122", name=""), Status.UNKNOWN),
        (listed(""), Status.UNKNOWN),
        (listed(), Status.UNKNOWN),
        ("42", Status.UNKNOWN),
    ],
)
def test_a_lost_response_is_confirmed_only_by_a_new_account_of_this_name_and_currency(
    administrator: User, approver: User, provider: StubProvider, accounts: str, ends: Status
) -> None:
    provider.answer_post = lambda: (500, "")
    operation = sent(administrator, approver)
    provider.accounts = accounts
    assert confirmation.confirm_operation(operation.pk).status == ends


def test_an_existing_account_does_not_confirm_it(
    administrator: User, approver: User, provider: StubProvider
) -> None:
    provider.accounts, provider.answer_post = listed("0455000001"), lambda: (500, "")
    operation = sent(administrator, approver, known_numbers=("0455000001",))
    assert confirmation.confirm_operation(operation.pk).status == Status.UNKNOWN
    provider.accounts = listed("0455000001", "0455001122")
    assert confirmation.confirm_operation(operation.pk).status == Status.SUCCEEDED


def test_nothing_is_confirmed_if_the_previous_accounts_are_unknown(
    administrator: User, approver: User, provider: StubProvider
) -> None:
    provider.answer_post = lambda: (500, "")
    operation = sent(administrator, approver, known_numbers=None)
    provider.accounts = listed("0455001122")
    assert confirmation.confirm_operation(operation.pk).status == Status.UNKNOWN


def test_an_account_opened_by_another_operation_does_not_confirm_it(
    administrator: User, approver: User, provider: StubProvider
) -> None:
    provider.answer_post = lambda: (500, "")
    lost = sent(administrator, approver)
    provider.answer_post = lambda: (200, ANSWER)
    assert sent(administrator, approver, preferred_name="").status == Status.SUCCEEDED
    provider.accounts = listed("0455001122")
    assert confirmation.confirm_operation(lost.pk).status == Status.UNKNOWN


def test_neither_of_two_unknown_operations_is_matched_to_the_one_new_account(
    administrator: User, approver: User, provider: StubProvider
) -> None:
    provider.answer_post = lambda: (500, "")
    both = [sent(administrator, approver), sent(administrator, approver, preferred_name="")]
    provider.accounts = listed("0455001122")
    assert [confirmation.confirm_operation(one.pk).status for one in both] == [Status.UNKNOWN, Status.UNKNOWN]


@pytest.mark.parametrize("accounts", [listed("0455000001"), "42"], ids=["changed", "unreadable"])
def test_nothing_is_sent_if_the_accounts_changed_after_approval(
    administrator: User, approver: User, provider: StubProvider, accounts: str
) -> None:
    provider.accounts = accounts
    operation = sent(administrator, approver)
    assert (operation.status, provider.changes) == (Status.APPROVED, [])
    attempt = Attempt.objects.get(operation=operation)
    assert attempt.outcome == Outcome.NOT_SENT
    assert "No account was opened" in attempt.response
    assert [one["code"] for one in attempt.responses] == ["error" if accounts == "42" else "outdated"]


def test_two_people_open_an_account_at_the_provider(
    administrator: User, approver: User, as_administrator: Client, sandbox: SandboxProcess
) -> None:
    sandbox.kyc(completed=True)
    operation = sent(administrator, approver)
    assert operation.status == Status.SUCCEEDED
    number = (Attempt.objects.get(operation=operation).result or {})["number_1"]
    assert number in as_administrator.get(f"/operations/{operation.pk}/").content.decode()


def test_missing_kyc_is_explained_on_the_operation(
    administrator: User, approver: User, as_administrator: Client, sandbox: SandboxProcess
) -> None:
    sandbox.kyc(completed=False)
    operation = sent(administrator, approver)
    assert operation.status == Status.FAILED
    html = as_administrator.get(f"/operations/{operation.pk}/").content.decode()
    assert "only after KYC (know your customer) is complete" in html
    assert "user has not completed kyc" in html


def test_a_lost_response_is_found_by_a_status_check(
    administrator: User, approver: User, sandbox: SandboxProcess
) -> None:
    sandbox.kyc(completed=True)
    sandbox.fault("accounts.create", "drop", when="mid_answer")
    operation = sent(administrator, approver)
    assert operation.status == Status.UNKNOWN
    assert confirmation.confirm_operation(operation.pk).status == Status.SUCCEEDED


def test_the_preparer_can_cancel_it(
    administrator: User, as_administrator: Client, provider: StubProvider
) -> None:
    operation = factories.prepared_of_kind("bank_account", sample(), administrator)
    assert "Cancel operation" in as_administrator.get(f"/operations/{operation.pk}/").content.decode()
    assert as_administrator.post(f"/operations/{operation.pk}/cancel/").status_code == 302
    assert Operation.objects.get().status == Status.CANCELLED


def test_prepare_again_prefills_the_form(
    administrator: User, as_administrator: Client, provider: StubProvider
) -> None:
    operation = factories.prepared_of_kind("bank_account", sample(), administrator)
    approvals.cancel_operation(operation.pk, actor=administrator)
    form = as_administrator.get(f"{ADDRESS}?copy={operation.pk}").context["form"]
    assert {name: str(form[name].value()) for name in FILLED_IN} == FILLED_IN


def test_the_list_has_bank_and_status_of_accounts_opened_here(
    provider: StubProvider, as_administrator: Client, administrator: User, approver: User
) -> None:
    provider.answer_post = lambda: (200, ANSWER)
    send.send_operation(released(administrator, approver).pk)
    assert listed_accounts(as_administrator, provider, listed("0455001122", "0455009999")) == (1, 1, 0)
    assert listed_accounts(as_administrator, provider, listed("0455009999")) == (1, 1, 1)
    assert listed_accounts(as_administrator, provider, "[]") == (1, 0, 1)


def listed_accounts(browser: Client, provider: StubProvider, accounts: str) -> tuple[int, int, int]:
    """How many rows name the bank and status, how many name no bank, and how many accounts are not listed."""
    provider.accounts = accounts
    html = browser.get("/money/bank-accounts/own/").content.decode()
    assert html.count("Wema Bank (035)") == html.count("Status when opened: ACTIVE, <time")
    return (
        html.count("Wema Bank (035)"),
        html.count('<span class="quiet">Not provided</span>'),
        html.count("Not in the provider&#x27;s list") + html.count("Not in the provider's list"),
    )
