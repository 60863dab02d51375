"""Withdrawal: fiat from the merchant's balance to a bank account (POST /balance/withdraw)."""

from decimal import Decimal
from typing import Any

from django import forms
from django.core.validators import RegexValidator
from pydantic import SecretStr

from backoffice.core.display import format_amount, mask_account
from backoffice.core.gateway import dialect
from backoffice.ledger import selectors as ledger
from backoffice.operations.kinds.amounts import AmountForm, amount_field, currency_field
from backoffice.operations.kinds.base import (
    Counterparty,
    Debit,
    Facts,
    MoneyKind,
    Payload,
    Receipt,
)
from backoffice.operations.kinds.names import Match, compare_names
from payments_gateway import (
    GatewayError,
    PaymentsGateway,
    RejectedError,
    TransactionRecord,
    Withdrawal,
)

CURRENCIES = ("NGN", "USD")
MEMO_MAX = 28


class WithdrawalPayload(Payload):
    """Where the money goes, and how its holder's name was checked."""

    currency: str
    amount: Decimal
    bank_code: str
    bank: str
    account_number: str
    account_name: str  # the holder's name as the bank gave it: this is what is sent
    typed_name: str
    name_reason: str
    memo: str


class WithdrawalForm(AmountForm):
    """Asks for the payment, and asks the bank who holds the account."""

    currency = currency_field(*CURRENCIES)
    amount = amount_field()
    bank_code = forms.ChoiceField(
        label="Bank",
        error_messages={"invalid_choice": "Choose a bank from the list: %(value)s is not one of its codes."},
    )
    account_number = forms.CharField(
        label="Account number",
        help_text="10 digits",
        validators=[RegexValidator(r"^[0-9]{10}\Z", "An account number has exactly 10 digits.")],
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "maxlength": "34"}),
    )
    typed_name = forms.CharField(
        label="Account holder",
        help_text="The name on the invoice; it is compared with the bank's.",
        max_length=120,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    name_reason = forms.CharField(
        label="Why the other name is right",
        required=False,
        max_length=200,
        help_text="Only needed where the two names differ. The person who countersigns reads it.",
    )
    memo = forms.CharField(
        label="Memo",
        required=False,
        max_length=MEMO_MAX,
        help_text=f"For your colleagues and the reports, at most {MEMO_MAX} characters.",
    )

    holder: str | None = None
    match: Match | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.banks = ledger.banks()
        bank_code: Any = self.fields["bank_code"]
        bank_code.choices = [("", "Choose a bank"), *sorted(self.banks.items(), key=lambda item: item[1])]

    def clean(self) -> dict[str, Any]:
        """Check what only the service can tell: the balance, and the holder of the account."""
        values = super().clean() or self.cleaned_data
        if values.get("account_number") and values.get("bank_code"):
            self._check_holder(values)
        return values

    def content(self) -> WithdrawalPayload:
        values = self.cleaned_data
        return WithdrawalPayload(
            currency=values["currency"],
            amount=values["amount"],
            bank_code=values["bank_code"],
            bank=self.banks[values["bank_code"]],
            account_number=values["account_number"],
            account_name=self.holder or "",
            typed_name=values["typed_name"],
            name_reason=values["name_reason"],
            memo=values["memo"],
        )

    def _check_holder(self, values: dict[str, Any]) -> None:
        try:
            holder = ledger.account_holder(values["account_number"], values["bank_code"]).account_name
        except RejectedError as exc:
            self.add_error("account_number", f"The bank knows no such account: {exc}")
            return
        except GatewayError:
            self.add_error(
                None,
                "The account could not be checked: the service does not answer. Nothing was prepared; try again.",
            )
            return
        self.holder = holder
        self._compare(values, holder)

    def _compare(self, values: dict[str, Any], holder: str) -> None:
        typed = values.get("typed_name")
        if not typed:
            return
        self.match = compare_names(typed, holder)
        if self.match is not Match.EXACT and not values.get("name_reason"):
            self.add_error(
                "name_reason", f"The bank says {holder}. Say why this is the right account, or correct it."
            )


class WithdrawalKind(MoneyKind[WithdrawalPayload]):
    """Fiat to a bank account; needs the service's one-time token."""

    name = "withdrawal"
    label = "Withdrawal"
    plural = "Withdrawals"
    letter = "W"
    verb = "Withdraw"
    payload_type = WithdrawalPayload
    form_type = WithdrawalForm

    @property
    def needs_token(self) -> bool:
        return dialect().token_required

    def sentence(self, payload: WithdrawalPayload) -> str:
        amount = format_amount(payload.amount, payload.currency)
        return (
            f"Withdraw {payload.currency} {amount} to {payload.account_name}, "
            f"{payload.bank} {mask_account(payload.account_number)}"
        )

    def debit(self, payload: WithdrawalPayload) -> Debit:
        return Debit(payload.currency, payload.amount)

    def counterparty(self, payload: WithdrawalPayload) -> Counterparty:
        return Counterparty(
            payload.account_name,
            f"{payload.bank} {mask_account(payload.account_number)}",
            key=f"bank:{payload.bank_code}:{payload.account_number}",
        )

    def facts(self, payload: WithdrawalPayload) -> Facts:
        facts = [
            ("Amount", f"{payload.currency} {format_amount(payload.amount, payload.currency)}"),
            ("To", payload.account_name),
            ("Account", f"{payload.account_number} · {payload.bank} ({payload.bank_code})"),
        ]
        if compare_names(payload.typed_name, payload.account_name) is not Match.EXACT:
            facts.append(
                ("Typed as", f"{payload.typed_name} · the bank's name differs: {payload.name_reason}")
            )
        if payload.memo:
            facts.append(("Memo", payload.memo))
        return facts

    def initial(self, payload: WithdrawalPayload) -> dict[str, Any]:
        return payload.model_dump(
            include={"currency", "amount", "bank_code", "account_number", "typed_name", "name_reason", "memo"}
        )

    def send(self, gateway: PaymentsGateway, payload: WithdrawalPayload, token: SecretStr | None) -> Receipt:
        request = Withdrawal(
            account_number=payload.account_number,
            account_name=payload.account_name,
            bank=payload.bank,
            bank_code=payload.bank_code,
            currency=payload.currency,
            amount=payload.amount,
        )
        receipt = gateway.balances.withdraw(request, token=token)
        return Receipt(receipt.transaction_id, receipt.status)

    def recognises(self, payload: WithdrawalPayload, record: TransactionRecord) -> bool:
        """By type, currency and amount: the service's record names no account and no reference of ours."""
        return (
            record.type == "withdrawal"
            and record.currency == payload.currency
            and record.amount == payload.amount
        )
