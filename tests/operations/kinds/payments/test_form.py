"""Off-ramp payments: the form, and what is prepared from it."""

import json
import uuid
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core.models import CachedReadRow
from backoffice.ledger import rates
from backoffice.operations import errors
from backoffice.operations.kinds.payment import business_id
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from tests import factories
from tests.cached_reads import Elapse, forget_reads
from tests.operations.kinds.payments.steps import ADDRESS, BUSINESS, REFERENCE, SUBMISSION, TO_USER, of, post
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_review_shows_payer_amounts_and_recipient(as_preparer: Client, bank: dict[str, str]) -> None:
    html = post(as_preparer, bank).content.decode()
    assert "<h1>USDT 100.000000 → NGN payout to" in html
    for shown in (
        REFERENCE,
        BUSINESS,
        "customer@example.com",
        "Requires one approver who is not the preparer.",
        "Access Bank",
    ):
        assert shown in html


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("incoming_currency", "NGN", "“NGN” is not among them"),
        ("incoming_amount", "", "Enter a pay-in or a payout amount."),
        ("incoming_amount", "1,5", "Enter a number such as 5,000.50"),
        ("incoming_amount", "0.0000001", "USDT has at most 6 decimals."),
        ("incoming_amount", "0", "greater than zero"),
        ("outgoing_currency", "USDT", "“USDT” is not among them"),
        ("outgoing_amount", "0.001", "NGN has at most 2 decimals."),
        ("customer_email", "", "Enter an email address."),
        ("customer_email", "nobody", "Enter an email address such as name@example.com."),
        ("customer_email", '"a@b"@example.com', "Use ASCII characters without spaces, quotation marks"),
        ("customer_email", '"a\x01b"@example.com', "Use ASCII characters without spaces, quotation marks"),
        ("customer_email", "ada@e\u0445ample.com", "Use ASCII characters without spaces, quotation marks"),
        ("payment_type", "", "Select one of the options."),
        ("payment_type", "cash", "“cash” is not among them"),
        ("country", "", "Select one of the options."),
        ("country", "Ghana", "Select a country from the list: the provider does not support Ghana."),
        ("bank_code", "", "Select a bank."),
        ("bank_code", "999999", "Unknown bank: 999999."),
        ("account_number", "", "Enter the account number."),
        ("account_number", "12", "exactly 10 digits"),
        ("account_number", "0123450000", "The bank did not find this account"),
        ("typed_name", "", "Enter the name of the account holder."),
        ("rate_key", "a b", "Remove spaces"),
        ("rate_key", "x" * 81, "at most 80"),
    ],
)
def test_invalid_input_is_reported_at_its_field_and_kept(
    as_preparer: Client, bank: dict[str, str], field: str, typed: str, message: str
) -> None:
    answer = post(as_preparer, {**bank, field: typed})
    assert answer.status_code == 422
    form = answer.context["form"]
    assert message in " ".join(form.errors[field])
    kept = {name: form[name].value() for name in bank if name != field}
    assert kept == {name: value for name, value in bank.items() if name != field}
    assert not Operation.objects.exists()


def test_a_name_that_differs_from_the_banks_needs_a_reason(as_preparer: Client, bank: dict[str, str]) -> None:
    answer = post(as_preparer, {**bank, "typed_name": "Somebody Else"})
    assert "Give the reason for the mismatch" in " ".join(answer.context["form"].errors["name_reason"])


@pytest.mark.parametrize("typed", ["", "two words", "ngoz\u0456.eze", "ngozi.eze\u200b", "straße"])
def test_a_user_needs_a_username_that_no_other_looks_like(
    as_preparer: Client, sandbox: SandboxProcess, typed: str
) -> None:
    answer = post(as_preparer, {**TO_USER, "service_username": typed})
    assert list(answer.context["form"].errors) == ["service_username"]


def test_fields_of_the_other_payout_type_are_ignored(as_preparer: Client, sandbox: SandboxProcess) -> None:
    answer = post(as_preparer, {**TO_USER, "account_number": "12", "bank_code": "none", "country": "x" * 70})
    assert answer.status_code == 200
    payload = answer.context["form"].payload()
    assert (payload.account_number, payload.bank_code, payload.country) == ("", "", "")


def test_one_of_the_two_amounts_is_sufficient(as_preparer: Client, bank: dict[str, str]) -> None:
    html = post(as_preparer, {**bank, "incoming_amount": "", "outgoing_amount": "150000"}).content.decode()
    assert "<h1>USDT → NGN 150,000.00 payout to" in html


def test_resubmitting_a_form_makes_one_payment_with_one_reference(
    as_preparer: Client, bank: dict[str, str]
) -> None:
    digest = post(as_preparer, bank).context["digest"]
    for _ in range(2):
        assert post(as_preparer, bank, "prepare", digest=digest).status_code == 302
    assert Operation.objects.get().payload["reference"] == REFERENCE


def test_another_form_has_another_reference(as_preparer: Client, bank: dict[str, str]) -> None:
    other = as_preparer.post(ADDRESS, {**bank, "submission": str(uuid.uuid4()), "step": "review"})
    reference = other.context["form"].payload().reference
    assert reference.startswith("CS-")
    assert reference != REFERENCE


def test_an_identical_pending_payment_is_refused_despite_a_new_reference(preparer: User) -> None:
    factories.prepared_of_kind("payment", of(duplicate_reason="Second part"), preparer)
    with pytest.raises(errors.DuplicatePendingError):
        factories.prepared_of_kind(
            "payment", of(duplicate_reason="Second part", reference="CS-ANOTHER"), preparer
        )


def test_a_repeated_payment_within_a_day_needs_a_reason(preparer: User) -> None:
    first = factories.prepared_of_kind("payment", of(), preparer)
    approvals.cancel_operation(first.pk, actor=preparer)
    second = factories.prepared_of_kind("payment", of(reference="CS-SECOND"), preparer)
    assert (second.currency, second.amount) == ("USDT", Decimal(100))
    with pytest.raises(errors.DuplicatePaymentError):
        factories.prepared_of_kind(
            "payment", of(reference="CS-THIRD", customer_email="other@example.com"), preparer
        )


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({}, 1),
        ({"incoming_amount": Decimal(10_001)}, 2),
        ({"incoming_amount": None, "outgoing_amount": Decimal(10_000_000)}, 1),
        ({"outgoing_amount": Decimal("10000000.01")}, 2),
        ({"incoming_amount": Decimal(10_001), "outgoing_amount": Decimal(100)}, 2),
        ({"incoming_amount": Decimal(100), "outgoing_amount": Decimal("10000000.01")}, 2),
        ({"incoming_amount": Decimal(100), "outgoing_amount": Decimal(100)}, 1),
    ],
)
def test_a_large_payment_needs_two_approvals(preparer: User, changes: dict[str, Any], needed: int) -> None:
    assert factories.prepared_of_kind("payment", of(**changes), preparer).approvals_needed == needed


def test_a_form_without_its_id_is_refused(as_preparer: Client, bank: dict[str, str]) -> None:
    answer = as_preparer.post(ADDRESS, {**bank, "step": "review"})
    assert answer.status_code == 422
    assert "form is incomplete" in " ".join(answer.context["form"].non_field_errors())


def test_the_business_is_the_configured_one_or_that_of_the_newest_transaction(
    settings: Settings, provider: StubProvider
) -> None:
    assert business_id() == ""
    provider.records = json.dumps(
        [
            {"transactionId": "T-2", "amount": 1},
            {"transactionId": "T-1", "amount": 1, "businessId": "from-the-list"},
        ]
    )
    assert business_id() == "from-the-list"
    forget_reads()
    provider.records = provider.records.replace('"T-2"', '"T-2", "businessId": "another"')
    assert business_id() == ""
    forget_reads()
    settings.GATEWAY_BUSINESS_ID = "configured"
    assert business_id() == "configured"


def test_nothing_is_prepared_without_a_business(as_preparer: Client, provider: StubProvider) -> None:
    message = " ".join(post(as_preparer, TO_USER).context["form"].non_field_errors())
    assert "set COUNTERSIGN_GATEWAY_BUSINESS_ID" in message


def test_an_unreachable_provider_is_reported(as_preparer: Client, settings: Settings) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    message = " ".join(post(as_preparer, TO_USER).context["form"].non_field_errors())
    assert "Your business ID could not be read. The provider cannot be reached" in message


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((403, '{"message": "Not for this user"}'), "The provider refuses the API key."),
        ((400, '{"message": "No such user"}'), "The provider refused the request: No such user"),
        ((502, "oops"), "The provider responded with an error (HTTP 502)."),
        ((200, "<html>no</html>"), "The provider responded with HTTP 200"),
    ],
)
def test_a_business_that_cannot_be_read_says_why(
    as_preparer: Client, provider: StubProvider, monkeypatch: pytest.MonkeyPatch, answer: Any, why: str
) -> None:
    monkeypatch.setattr(provider, "answer_get", lambda path: answer)
    message = " ".join(post(as_preparer, TO_USER).context["form"].non_field_errors())
    assert f"Your business ID could not be read. {why}" in message
    assert "cannot be reached" not in message


def test_prepare_again_prefills_the_form_with_a_new_reference(as_preparer: Client, preparer: User) -> None:
    operation = factories.prepared_of_kind("payment", of(), preparer)
    approvals.cancel_operation(operation.pk, actor=preparer)
    form = as_preparer.get(f"{ADDRESS}?copy={operation.pk}").context["form"]
    assert str(form["incoming_amount"].value()) == "100.000000"
    assert form["account_number"].value() == "0123456789"
    assert "reference" not in form.initial


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("en", ["Burkina Faso", "Côte d'Ivoire", "Nigeria", "South Africa", "XK"]),
        (
            "fr",
            [
                "Afrique du Sud",
                "Burkina Faso",
                "Côte d\N{RIGHT SINGLE QUOTATION MARK}Ivoire",
                "Nigéria",
                "XK",
            ],
        ),
    ],
)
def test_the_countries_are_those_of_the_profile_by_name(
    as_preparer: Client, preparer: User, settings: Settings, tmp_path: Any, language: str, names: list[str]
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('payment_countries = ["NG", "ZA", "XK", "CI", "BF"]')
    settings.GATEWAY_PROFILE = str(profile)
    User.objects.filter(pk=preparer.pk).update(language=language)
    form = as_preparer.get(ADDRESS).context["form"]
    assert [label for _code, label in form.fields["country"].choices] == names
    assert form["country"].value() == "NG"


def test_the_review_names_the_country_and_what_is_sent(as_preparer: Client, bank: dict[str, str]) -> None:
    assert "Nigeria (NG)" in post(as_preparer, bank).content.decode()


def test_a_copy_with_a_country_no_longer_offered_shows_it_with_the_error(
    as_preparer: Client, preparer: User
) -> None:
    operation = factories.prepared_of_kind("payment", of(country="Nigeria"), preparer)
    approvals.cancel_operation(operation.pk, actor=preparer)
    html = as_preparer.get(f"{ADDRESS}?copy={operation.pk}").content.decode()
    assert '<option value="Nigeria" selected>Nigeria (not available)</option>' in html
    assert "the provider does not support Nigeria." in html


@pytest.mark.parametrize(("typed", "is_open"), [("", False), ("key-1", True), ("a b", True)])
def test_the_rate_key_is_folded_away_unless_it_is_used(
    as_preparer: Client, bank: dict[str, str], typed: str, is_open: bool
) -> None:
    html = post(as_preparer, {**bank, "rate_key": typed, "incoming_amount": ""}).content.decode()
    assert ('<details class="fold advanced" open>' in html) == is_open


def test_the_check_shows_the_recipient_and_the_rate_with_its_key(
    as_preparer: Client, bank: dict[str, str], settings: Settings, tmp_path: Any
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('capabilities = ["rates"]')
    settings.GATEWAY_PROFILE = str(profile)
    html = as_preparer.post(f"{ADDRESS}check/", {**bank, "submission": SUBMISSION}).content.decode()
    assert bank["typed_name"] in html
    assert "USDT 1 = NGN" in html
    assert "data-age>less than 1 min</time>" in html
    key = html.partition('data-copy="')[2].partition('"')[0]
    assert post(as_preparer, {**bank, "rate_key": key}).status_code == 200


@pytest.mark.parametrize("field", ["incoming_currency", "outgoing_currency"])
def test_no_rate_is_read_for_a_text_that_is_no_currency(
    as_preparer: Client, bank: dict[str, str], settings: Settings, tmp_path: Path, field: str
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('capabilities = ["rates"]')
    settings.GATEWAY_PROFILE = str(profile)
    answer = as_preparer.post(f"{ADDRESS}check/", {**bank, field: "X" * 300, "submission": SUBMISSION})
    assert answer.status_code < 500
    assert not CachedReadRow.objects.filter(key__contains="XX").exists()
    assert rates.last_rate("X" * 300, "NGN") is None
    assert not CachedReadRow.objects.filter(key__contains="XX").exists()


def test_an_unreachable_provider_leaves_the_last_rate_with_its_age_and_without_its_key(
    sandbox: SandboxProcess, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('capabilities = ["rates"]')
    settings.GATEWAY_PROFILE = str(profile)
    present = rates.keyed_rate("USDT", "NGN")
    assert present is not None
    assert present.fresh_key == present.key != ""
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    Elapse(monkeypatch)(timedelta(hours=2))
    assert rates.keyed_rate("USDT", "NGN") == present
    aged = replace(present, known_at=present.known_at - timedelta(hours=2))
    html = render_to_string("operations/kinds/payment_check.html", {"check": {"rate": aged}})
    assert "USDT 1 = NGN" in html
    assert ">2 h</time>" in html
    assert aged.key not in html


def test_no_rate_is_requested_without_the_capability(as_preparer: Client, bank: dict[str, str]) -> None:
    html = as_preparer.post(f"{ADDRESS}check/", {**bank, "submission": SUBMISSION}).content.decode()
    assert "USDT 1 = NGN" not in html
