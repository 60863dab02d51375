"""What the forms of several kinds share: typed amounts, minimums, the full balance, and where the focus begins."""

import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django import forms
from django.test import Client
from django.utils import timezone, translation
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.ledger import accounts as ledger
from backoffice.ledger.models import Balance
from backoffice.operations.kinds.form_fields import (
    NameComparison,
    OneLineField,
    TypedAmountField,
    amount_field,
    compare_names,
    is_same_holder,
    parse_typed_amount,
)
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.pages.prepare import FullBalance
from tests import factories
from tests.operations.steps import charge
from tests.sandbox_process import SandboxProcess

SignIn = Callable[[Client, User], Client]
NO_BREAK, NARROW, THIN = "\u00a0", "\u202f", "\u2009"


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("5000.50", "5000.50"),
        ("5,000.50", "5000.50"),
        (" 5 000.50 ", "5000.50"),
        (f"1{NO_BREAK}234{NO_BREAK}567", "1234567"),
        (f"12{NARROW}345.6", "12345.6"),
        (f"123{THIN}456", "123456"),
        ("1,234,567.891", "1234567.891"),
        ("7", "7"),
        ("1,000", "1000"),
    ],
)
def test_an_amount_is_read_with_and_without_separators(language: str, typed: str, plain: str) -> None:
    with translation.override(language):
        assert amount_field().clean(typed) == plain


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (f" ADA{NO_BREAK}OBI \t LTD\n", "ADA OBI LTD"),
        ("Rene\u0301", "Ren\u00e9"),
        ("Ọláìyá", "Ọláìyá"),
        ("", ""),
    ],
)
def test_a_line_of_text_is_kept_as_people_see_it(typed: str, kept: str) -> None:
    assert OneLineField(required=False).clean(typed) == kept


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("withdrawal", "typed_name"),
        ("payment", "typed_name"),
        ("payment", "service_username"),
        ("transfer", "receiver_username"),
        ("transfer", "memo"),
        ("wallet_transfer", "memo"),
        ("wallet_transfer", "wallet_type"),
        ("wallet_transfer", "address"),
        ("bank_account", "account_name"),
        ("bank_account", "preferred_name"),
        ("recipient", "name"),
        ("recipient", "alias"),
    ],
)
@pytest.mark.parametrize(
    "hidden", ["\u200b", "\u202e", "\u2066", "\ufeff", "\u00ad", "\u3164", "\ufe0f", "\x07", "\x00"]
)
def test_nothing_that_is_sent_can_hide_characters(kind: str, field: str, hidden: str) -> None:
    with pytest.raises(forms.ValidationError):
        KINDS[kind].form_type.base_fields[field].clean(f"ada{hidden}obi")


@pytest.mark.parametrize("typed", ["-1", "-1,000.50"])
def test_a_negative_amount_is_refused_as_such(typed: str) -> None:
    with pytest.raises(forms.ValidationError, match="greater than zero"):
        amount_field().clean(typed)


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(
    "typed",
    [
        *("5.000,50", "1,5", "12,34.5", "1,00", "1000,000", ",500", "5,", "5.", ".5", "1,234 567", "1,,000"),
        *("0,005", "0,500", "00,500", "012,345.00", "0 500"),
        *("1.2.3", "-1e5", "+1", "1e5", "NaN", "1_000", "0x10", "1'000", "5 00", "5\t000", "١٢"),
    ],
)
def test_an_ambiguous_amount_is_refused(language: str, typed: str) -> None:
    with translation.override(language), pytest.raises(forms.ValidationError, match=r"5,000\.50"):
        amount_field().clean(typed)


@pytest.mark.parametrize(
    ("plain", "currency", "message"),
    [
        ("0", "NGN", "Le montant doit être supérieur à zéro."),
        ("9" * 22, "NGN", "Le montant est trop élevé."),
        ("1.001", "NGN", "Un montant en NGN a au plus 2 décimales."),
        ("1.001", "USD", "Un montant en USD a au plus 2 décimales."),
        ("1.0000001", "USDT", "Un montant en USDT a au plus 6 décimales."),
    ],
)
def test_an_impossible_amount_is_explained_in_the_language_of_the_page(
    plain: str, currency: str, message: str
) -> None:
    with translation.override("fr"), pytest.raises(forms.ValidationError) as refused:
        parse_typed_amount(plain, currency)
    assert refused.value.messages == [message]


def test_the_amount_of_an_earlier_operation_is_shown_with_separators() -> None:
    field = TypedAmountField()
    assert field.prepare_value(Decimal("1234567.50")) == "1,234,567.50"
    assert field.prepare_value("1234567.5") == "1234567.5"


@pytest.fixture
def as_preparer(sign_in: SignIn, preparer: User) -> Client:
    return sign_in(Client(), preparer)


@pytest.fixture
def with_minimums(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "profile.toml"
    file.write_text('capabilities = ["minimums"]')
    settings.GATEWAY_PROFILE = str(file)


def form_of(client: Client, kind: str, query: str = "") -> Any:
    return client.get(f"/operations/prepare/{kind}/{query}").context["form"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("with_minimums")
@pytest.mark.parametrize(
    ("kind", "field", "text"),
    [
        ("withdrawal", "amount", "Minimum: NGN\N{NO-BREAK SPACE}0.01 · USD\N{NO-BREAK SPACE}0.01"),
        ("transfer", "amount", "Minimum: NGN\N{NO-BREAK SPACE}0.01 · USD\N{NO-BREAK SPACE}0.01"),
        ("conversion", "amount", "Minimum: NGN\N{NO-BREAK SPACE}0.01 · USD\N{NO-BREAK SPACE}0.01"),
        ("wallet_transfer", "amount", "Minimum: USDT\N{NO-BREAK SPACE}0.000001"),
        (
            "payment",
            "incoming_amount",
            "The other is calculated at the provider's rate. Minimum: USDT\N{NO-BREAK SPACE}0.000001",
        ),
        ("payment", "outgoing_amount", "Minimum: NGN\N{NO-BREAK SPACE}0.01 · USD\N{NO-BREAK SPACE}0.01"),
    ],
)
def test_the_providers_minimum_is_shown_at_the_amount(
    as_preparer: Client, sandbox: SandboxProcess, kind: str, field: str, text: str
) -> None:
    ledger.refresh_lists_due()
    assert form_of(as_preparer, kind).fields[field].help_text.endswith(text)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("with_minimums")
def test_without_the_providers_answer_no_minimum_is_shown(as_preparer: Client, settings: Settings) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    assert form_of(as_preparer, "transfer").fields["amount"].help_text == ""


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["withdrawal", "transfer", "conversion", "wallet_transfer", "payment"])
def test_a_form_takes_at_most_six_queries(
    as_preparer: Client, kind: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(6):
        form_of(as_preparer, kind)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "query", "first"),
    [
        ("withdrawal", "", "amount"),
        ("withdrawal", "?amount=5", "bank_code"),
        ("withdrawal", "?currency=EUR", "currency"),
        ("transfer", "", "receiver_username"),
        ("transfer", "?receiver_username=ada", "amount"),
        ("transfer", "?receiver_username=ada&amount=5", None),
        ("conversion", "", "amount"),
        ("wallet_transfer", "", "amount"),
        ("wallet_transfer", "?amount=5", "network"),
        ("wallet_transfer", "?network=TRON", "network"),
        ("payment", "", "incoming_amount"),
        ("payment", "?outgoing_amount=5", "customer_email"),
        ("payment", "?incoming_amount=5&customer_email=a", "bank_code"),
        ("payment", "?incoming_amount=5&customer_email=a&payment_type=profile", "service_username"),
    ],
)
def test_the_focus_begins_in_the_first_field_to_fill_in(
    as_preparer: Client, kind: str, query: str, first: str | None
) -> None:
    assert focused(form_of(as_preparer, kind, query)) == ([first] if first else [])


@pytest.mark.django_db
def test_the_focus_of_a_refused_form_is_in_its_first_invalid_field(as_preparer: Client) -> None:
    typed = {"receiver_username": "ada", "currency": "NGN", "amount": "1,5", "memo": "x" * 29}
    answer = as_preparer.post("/operations/prepare/transfer/", {**typed, "step": "review"})
    assert focused(answer.context["form"]) == ["amount"]
    assert 'value="1,5"' in answer.content.decode()


def focused(form: forms.Form) -> list[str]:
    return [name for name, field in form.fields.items() if "autofocus" in field.widget.attrs]


@pytest.fixture
def reported(db: None) -> None:
    """Balances as last reported."""
    for currency, amount in (("NGN", "5000.00"), ("USD", "70.50"), ("USDT", "0.500000")):
        Balance.objects.create(
            currency=currency,
            amount=Decimal(amount),
            total_received=0,
            total_sent=0,
            transaction_count=0,
            as_of=timezone.now(),
        )


UNKNOWN_FEE = "Fees are charged on top: leave enough for them."


def offers(client: Client, kind: str) -> list[FullBalance]:
    offered: list[FullBalance] = client.get(f"/operations/prepare/{kind}/").context["full_balances"]
    return offered


@pytest.mark.usefixtures("reported")
def test_the_full_balance_is_offered_without_the_fee_charged_last(
    as_preparer: Client, preparer: User
) -> None:
    assert offers(as_preparer, "withdrawal") == [
        FullBalance("NGN", "", Decimal("5000.00"), UNKNOWN_FEE),
        FullBalance("USD", "", Decimal("70.50"), UNKNOWN_FEE),
    ]
    for fee in ("45", "50"):
        charge("withdrawal", preparer, fee, currency="NGN")
    charge("withdrawal", preparer, "0", currency="USD")
    note = "NGN 50.00 is kept for the fee, as charged last time."
    assert offers(as_preparer, "withdrawal") == [
        FullBalance("NGN", "", Decimal("4950.00"), note),
        FullBalance("USD", "", Decimal("70.50"), ""),
    ]
    html = as_preparer.get("/operations/prepare/withdrawal/").content.decode()
    assert f'<data hidden value="4,950.00" data-currency="NGN" data-network="" data-note="{note}">' in html
    assert 'Balance before fees: <span class="balance nowrap">' in html


@pytest.mark.usefixtures("reported")
def test_a_fee_on_one_network_says_nothing_of_another(as_preparer: Client, preparer: User) -> None:
    charge("wallet_transfer", preparer, "0.2", network="POLYGON")
    charge("wallet_transfer", preparer, "1", network="TRC20")
    assert offers(as_preparer, "wallet_transfer") == [
        FullBalance("USDT", "", Decimal("0.5"), UNKNOWN_FEE),
        FullBalance(
            "USDT", "POLYGON", Decimal("0.3"), "USDT 0.200000 is kept for the fee, as charged last time."
        ),
    ]


@pytest.mark.usefixtures("reported")
@pytest.mark.parametrize(
    ("kind", "currencies"), [("conversion", ["NGN", "USD"]), ("transfer", ["NGN", "USD"]), ("payment", [])]
)
def test_the_full_balance_is_offered_for_what_the_form_debits(
    as_preparer: Client, kind: str, currencies: list[str]
) -> None:
    assert [offer.currency for offer in offers(as_preparer, kind)] == currencies


WITH_A_FORM = [name for name, kind in KINDS.items() if not kind.prepared_on]
BY_A_BROWSER = {"Sec-Fetch-Mode": "navigate"}
TYPED: dict[str, dict[str, str]] = {
    "withdrawal": {"amount": "5,000.50", "bank_code": "044", "account_number": "0123456789", "memo": "m"},
    "conversion": {"direction": "USD-NGN", "amount": "5 000.50"},
    "transfer": {"receiver_username": "ada", "amount": "5,000.50", "currency": "USD"},
    "wallet_transfer": {"amount": "1,000", "network": "POLYGON", "wallet_type": "hot", "address": "0x1"},
    "payment": {"incoming_amount": "1,000", "country": "NG", "rate_key": "key-1", "bank_code": "044"},
    "bank_account": {"account_name": "Lagos shop", "currency": "USD", "preferred_name": "Shop"},
    "callback_url": {"url": "https://pay.example.com/webhooks"},
    "api_key_create": {"method": "named", "key_name": "till", "expires_in": "3", "expires_unit": "months"},
    "api_key_switch": {"target": "0a1b2c3d"},
    "api_key_invalidate": {"short_hash": "0a1b2c3d"},
    "api_key_delete": {"short_hash": "0a1b2c3d"},
    "recipient": {"type": "user", "receiver_username": "ada", "name": "Ada Obi", "reason": "The contract"},
    "resume": {"reason": "The key is ended"},
    "otp_secret": {"change": "remove"},
    "resolution": {"reason": "Confirmed by telephone"},
    "staff_change": {"change": "invite", "typed": "1", "full_name": "Ada Obi", "role_auditor": "on"},
    "access_review": {"report": "5f2a" * 16, "findings": "All right"},
    "delegation": {"first_day": "2026-12-01", "last_day": "2026-12-07", "reason": "Annual leave"},
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("step", ["review", "check", "change"])
@pytest.mark.parametrize("kind", WITH_A_FORM)
def test_back_keeps_what_was_typed_into_every_form(
    sign_in: SignIn,
    preparer: User,
    approver: User,
    administrator: User,
    sandbox: SandboxProcess,
    kind: str,
    step: str,
) -> None:
    person = next(one for one in (preparer, approver, administrator) if one.has_perm(KINDS[kind].permission))
    client, submission = sign_in(Client(), person), uuid.uuid4()
    address = f"/operations/prepare/{kind}/?submission={submission}"
    answer = client.post(
        address,
        {**TYPED[kind], "submission": str(submission), "step": step},
        headers={**BY_A_BROWSER, "Referer": f"http://testserver{address}"},
    )
    assert answer.status_code == 303  # so that neither Back nor Reload asks to send the form again
    back = client.get(address, headers=BY_A_BROWSER).context["form"]
    typed = {name: "True" if text == "on" else text for name, text in TYPED[kind].items()}
    assert {name: str(back[name].value()) for name in TYPED[kind]} == typed


def test_every_kind_has_something_typed() -> None:
    assert set(TYPED) == set(WITH_A_FORM)


def test_a_difference_that_an_earlier_release_did_not_ask_about_has_no_reason_to_check() -> None:
    names = {"account_name": "KOLA VENTURES LTD", "typed_name": "Kola Ltd"}
    [asked] = factories.payload(**names, name_reason="Trades as").account_warnings
    [earlier] = factories.payload(**names, name_reason="").account_warnings
    assert asked.endswith("but Kola Ltd was entered. Check the reason.")
    assert earlier.endswith("but Kola Ltd was entered.")
    facts = dict(factories.payload(**names, name_reason="").account_facts)
    assert (facts["Name entered"], "Reason for the mismatch" in facts) == ("Kola Ltd", False)


@pytest.mark.parametrize(
    ("typed", "held", "match", "same_holder"),
    [
        ("Obi, Ada", "MRS ADA OBI", NameComparison.EXACT, True),
        ("Okonkwo Ltd", "OKONKWO LIMITED", NameComparison.EXACT, True),
        ("Okonkwo", "OKONKWO LIMITED", NameComparison.EXACT, False),
        ("Okonkwo", "OKONKWO ENTERPRISES", NameComparison.CLOSE, False),
        ("Kola Ltd", "KOLA VENTURES LTD", NameComparison.CLOSE, False),
        ("Ada Obi", "ADA CHIDINMA OBI", NameComparison.CLOSE, False),
        ("Ada Obi", "ADA EZE", NameComparison.DIFFERENT, False),
        ("Company Ltd", "COMPANY LIMITED", NameComparison.EXACT, True),
        ("O\u2019Brien", "O'BRIEN", NameComparison.EXACT, True),
        ("Renée Ọláìyá", "OLAIYA RENEE", NameComparison.EXACT, True),
        ("李 Ltd", "李 LIMITED", NameComparison.EXACT, True),
        ("李 Ltd", "王 LTD", NameComparison.DIFFERENT, False),
        ("李", "王", NameComparison.DIFFERENT, False),
        ("-", "--", NameComparison.DIFFERENT, False),
        ("राम", "रमा", NameComparison.DIFFERENT, False),
        ("O\u2018Brien", "OBRIEN", NameComparison.EXACT, True),
        ("Ada\u200bObi", "ADAOBI", NameComparison.EXACT, True),
        ("Chief Ltd", "MRS LIMITED", NameComparison.DIFFERENT, False),
        ("Chief Obi Ltd", "OBI LIMITED", NameComparison.EXACT, True),
    ],
)
def test_a_business_name_is_not_its_owners(
    typed: str, held: str, match: NameComparison, same_holder: bool
) -> None:
    assert compare_names(typed, held) is match
    assert is_same_holder(typed, held) is same_holder
