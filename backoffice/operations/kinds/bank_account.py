"""Bank account: the provider opens a further account for the merchant (PUT {base_url_v4}/account)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core.gateway import FORM_CHECK_TIMEOUT, PAGE_TIMEOUT, gateway, provider_profile
from backoffice.ledger import accounts as ledger
from backoffice.operations.kinds.base import (
    ChangeKind,
    Facts,
    KindForm,
    KindPage,
    OutdatedError,
    Payload,
    Recipient,
    SendReceipt,
)
from backoffice.operations.kinds.form_fields import OneLineField, currency_field
from backoffice.operations.models.operations import Attempt, Operation
from payments_gateway import (
    AccountRequest,
    CreatedAccount,
    GatewayError,
    KycRequiredError,
    NotSentError,
    PaymentsGateway,
)

NAME_MAX = 100
_LABELS = {
    "number": _("Account number"),
    "bank": _("Bank"),
    "name": _("Account holder"),
    "status": _("Status"),
}


class BankAccountPayload(Payload):
    """The account to open, and the numbers known before, which show later which account is the new one."""

    OBSERVED = frozenset({"known_numbers"})

    account_name: str
    currency: str
    preferred_name: str
    # Of this name, or of none, and in this currency; None if the provider could not be read.
    known_numbers: tuple[str, ...] | None


class BankAccountForm(KindForm):
    """Asks for the names, and reads the existing accounts from the provider."""

    account_name = OneLineField(
        label=_("Account name"),
        max_length=NAME_MAX,
        help_text=_("Your name for the account, as the provider lists it."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    currency = currency_field()
    preferred_name = OneLineField(
        label=_("Preferred name"),
        required=False,
        max_length=NAME_MAX,
        help_text=_("Shown to payers as the account holder. If empty, the account name is used."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    known_numbers: tuple[str, ...] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        currency: Any = self.fields["currency"]
        currency.choices = [(code, code) for code in provider_profile().account_currencies]

    def clean(self) -> dict[str, Any]:
        """Read the existing accounts of this name; if that fails, a caution is shown instead."""
        values = super().clean() or self.cleaned_data
        if values.get("account_name") and values.get("currency"):
            self.known_numbers = _current_numbers(
                values["account_name"], values["currency"], patience=FORM_CHECK_TIMEOUT
            )
        return values

    def content(self) -> BankAccountPayload:
        values = self.cleaned_data
        return BankAccountPayload(
            account_name=values["account_name"],
            currency=values["currency"],
            preferred_name=values["preferred_name"],
            known_numbers=self.known_numbers,
        )


class BankAccountKind(ChangeKind[BankAccountPayload]):
    """An account in the merchant's name. Needs completed KYC at the provider, but no one-time code."""

    name = "bank_account"
    label = _("Bank account")
    plural = _("Bank account openings")
    page = KindPage("bank-account-openings", _("New bank account"))
    letter = "B"
    verb = _("Open bank account")
    payload_type = BankAccountPayload
    form_type = BankAccountForm

    def sentence(self, payload: BankAccountPayload) -> str:
        return gettext("Open a bank account in {currency}, named “{name}”").format(
            currency=payload.currency, name=payload.account_name
        )

    def recipient(self, payload: BankAccountPayload) -> Recipient:
        return Recipient(
            payload.account_name, gettext("New bank account in {currency}").format(currency=payload.currency)
        )

    def facts(self, payload: BankAccountPayload) -> Facts:
        return [
            (gettext("Account name"), payload.account_name),
            (gettext("Currency"), payload.currency),
            (gettext("Preferred name"), payload.preferred_name or gettext("None: the account name is used")),
            (gettext("Existing accounts"), _open_accounts_text(payload)),
        ]

    def initial(self, payload: BankAccountPayload) -> dict[str, Any]:
        return payload.model_dump(include={"account_name", "currency", "preferred_name"})

    def cautions(self, payload: BankAccountPayload) -> list[str]:
        if payload.known_numbers is None:
            return [
                gettext(
                    "The existing accounts could not be read from the provider. If the outcome of sending is "
                    "unknown, two people must resolve it."
                )
            ]
        if payload.known_numbers:
            return [gettext("You already have an account in this currency. This opens another one.")]
        return []

    def send(
        self, gateway: PaymentsGateway, payload: BankAccountPayload, otp: SecretStr | None
    ) -> SendReceipt:
        """Open it, if the accounts of this name are still those that were approved.

        Otherwise a later read could take another account for the new one. The provider's answer is final if
        it names the account.
        """
        _check_accounts_unchanged(payload)
        request = AccountRequest(
            account_name=payload.account_name,
            currency=payload.currency,
            preferred_account_name=payload.preferred_name or None,
        )
        try:
            created = gateway.accounts.create(request)
        except KycRequiredError as exc:
            raise _with_kyc_advice(exc) from exc
        result = _result(created)
        message = created[0].provider_message if created else ""
        return SendReceipt(is_final="number_1" in result, result=result, message=message)

    def is_done(self, gateway: PaymentsGateway, payload: BankAccountPayload) -> bool:
        """Whether a new account of this name and currency exists that no other operation opened.

        Proves nothing while two such operations are open, if the accounts before are not known, or if the
        provider lists accounts without names.
        """
        if payload.known_numbers is None or _unsettled(payload) > 1:
            return False
        accounts = ledger.fetch_own_accounts(payload.account_name, client=gateway)
        if not all(account.account_name for account in accounts):
            return False
        numbers = ledger.account_numbers(accounts, payload.currency)
        return bool(numbers - {*payload.known_numbers} - _opened_by_others(payload))

    def outcome_facts(self, payload: BankAccountPayload, result: dict[str, str]) -> Facts:
        return [
            (str(label), result[f"{member}_{place}"])
            for place in range(1, len(result) + 1)
            for member, label in _LABELS.items()
            if f"{member}_{place}" in result
        ]


@dataclass(frozen=True)
class OpenedAccount:
    """One account that the provider opened for an operation of ours, as it answered at `reported_at`."""

    number: str
    bank: str
    name: str
    currency: str
    status: str
    reported_at: datetime


@dataclass(frozen=True)
class OpenedAccounts:
    """The opened accounts by number, and those of them that a list of accounts does not have."""

    by_number: dict[str, OpenedAccount]
    unlisted: list[OpenedAccount]


def opened_accounts(operations: QuerySet[Operation], listed_numbers: Iterable[str]) -> OpenedAccounts:
    """What the provider answered when it opened accounts for these operations. One query."""
    answered = Attempt.objects.filter(
        operation__in=operations, operation__kind=BankAccountKind.name, result__isnull=False
    )
    found = {
        account.number: account
        for attempt in answered.select_related("operation").order_by("started_at")
        for account in _opened_by(attempt)
    }
    listed = frozenset(listed_numbers)
    return OpenedAccounts(found, [account for number, account in found.items() if number not in listed])


def _opened_by(attempt: Attempt) -> Iterator[OpenedAccount]:
    result = attempt.result or {}
    for place in range(1, len(result) + 1):
        if number := result.get(f"number_{place}"):
            bank, name, status = (
                result.get(f"{member}_{place}", "") for member in ("bank", "name", "status")
            )
            currency = str(attempt.operation.payload.get("currency", ""))
            yield OpenedAccount(number, bank, name, currency, status, attempt.closed_at or attempt.started_at)


def _current_numbers(account_name: str, currency: str, *, patience: float) -> tuple[str, ...] | None:
    try:
        client = gateway(deadline=patience)
        accounts = ledger.fetch_own_accounts(account_name, client=client)
        return tuple(sorted(ledger.account_numbers(accounts, currency)))
    except GatewayError:
        return None  # the gateway has logged it


def _open_accounts_text(payload: BankAccountPayload) -> str:
    if payload.known_numbers is None:
        return gettext("Could not be read from the provider")
    return ", ".join(payload.known_numbers) or gettext("None with this name and currency")


def _check_accounts_unchanged(payload: BankAccountPayload) -> None:
    """Raises NotSentError if the accounts of this name changed since this was prepared, or cannot be read."""
    if payload.known_numbers is None:
        return
    numbers = _current_numbers(payload.account_name, payload.currency, patience=PAGE_TIMEOUT)
    if numbers is None:
        raise NotSentError.of(
            gettext_noop("The existing accounts could not be read from the provider. No account was opened.")
        )
    if numbers != payload.known_numbers:
        raise OutdatedError.of(
            gettext_noop(
                "The accounts with this name changed after the approval. No account was opened. Check the bank "
                "accounts."
            )
        )


def _with_kyc_advice(exc: KycRequiredError) -> KycRequiredError:
    advice = gettext_noop(
        "The provider opens accounts only after KYC (know your customer) is complete. No account was opened. "
        "Complete KYC with the provider, then prepare this again. Provider's message: {message}"
    )
    return KycRequiredError.of(advice, exc.status, exc.body_excerpt, message=exc.message)


def _result(created: list[CreatedAccount]) -> dict[str, str]:
    """The opened accounts as flat text by field and position, since JSON keeps no order."""
    return {
        f"{member}_{place}": value
        for place, account in enumerate(created, start=1)
        for member, value in _members(account).items()
        if value
    }


def _members(account: CreatedAccount) -> dict[str, str]:
    bank = f"{account.bank_name} ({account.bank_code})" if account.bank_code else account.bank_name
    return {
        "number": account.account_number,
        "bank": bank,
        "name": account.account_name,
        "status": account.status,
    }


def _same_account_filter(payload: BankAccountPayload) -> dict[str, str]:
    return {
        "operation__kind": BankAccountKind.name,
        "operation__payload__account_name": payload.account_name,
        "operation__payload__currency": payload.currency,
    }


def _unsettled(payload: BankAccountPayload) -> int:
    """The number of open attempts to open such an account, including the current one."""
    return Attempt.objects.filter(closed_at__isnull=True, **_same_account_filter(payload)).count()


def _opened_by_others(payload: BankAccountPayload) -> set[str]:
    """Account numbers that the provider named in answers to other attempts to open such an account."""
    results = Attempt.objects.filter(result__isnull=False, **_same_account_filter(payload)).values_list(
        "result", flat=True
    )
    return {
        value
        for result in results
        for member, value in (result or {}).items()
        if member.startswith("number_")
    }
