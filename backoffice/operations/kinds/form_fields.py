"""Form fields that several kinds share: amounts checked against the balance, and the recipient's bank account.

The account's holder is read from the bank, and compared with the name that was entered.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.validators import RegexValidator
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from backoffice.core.gateway import FORM_HINT_TIMEOUT
from backoffice.core.web.formatting import error_sentence, format_amount, mask_account, without_separators
from backoffice.ledger import accounts as ledger
from backoffice.ledger import balances
from backoffice.operations.kinds.base import Facts, KindForm, Payload, Recipient
from backoffice.recipients.keys import bank_account_key
from backoffice.recipients.models import RecipientVersion
from backoffice.recipients.register import version_in_effect
from payments_gateway import (
    AmountError,
    GatewayError,
    NotFoundError,
    RateLimitedError,
    RejectedError,
    parse_quantity,
)

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise
_AMOUNT, _CURRENCY = _("Amount"), _("Currency")
_PLAIN_AMOUNT = re.compile(r"[0-9]+(\.[0-9]+)?")


_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that no font shows, although Unicode counts them among letters, marks and symbols."""
_EXACT_TEXT = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


class OneLineField(forms.CharField):
    """One line of text that people see as it is sent.

    White space of any kind becomes single spaces, and letters with accents have their composed form. Characters that
    are invisible, or change the direction of others, are refused: two different texts could look the same.
    """

    default_error_messages = {"invisible": _("Remove invisible characters.")}

    def to_python(self, value: Any) -> str:
        text = " ".join(unicodedata.normalize("NFC", super().to_python(value) or "").split())
        if not text.isprintable() or _BLANK.search(text):
            raise forms.ValidationError(self.error_messages["invisible"], code="invisible")
        return text


def username_field(label: "StrOrPromise", help_text: "StrOrPromise") -> forms.CharField:
    """The name of a user of the provider, in letters that cannot be mistaken for those of another alphabet."""
    return forms.CharField(
        label=label,
        help_text=help_text,
        max_length=64,
        validators=[
            RegexValidator(
                r"^[A-Za-z0-9._@+-]+\Z", _("Use letters, digits and . _ - @ + only, without spaces.")
            )
        ],
        widget=forms.TextInput(attrs=_EXACT_TEXT),
    )


UNCHECKED_USERNAME = _(
    "Username at the provider. It cannot be checked before sending: confirm it with the recipient."
)


def address_field() -> forms.CharField:
    """A crypto address. Check it with `check_address`, once its network is known."""
    return forms.CharField(
        label=_("Address"),
        max_length=128,
        help_text=_("Copy it from the recipient's message, not from an earlier transaction."),
        validators=[RegexValidator(r"^[\x21-\x7e]+\Z", _("Remove spaces and special characters."))],
        widget=forms.TextInput(attrs=_EXACT_TEXT),
    )


class TypedAmountField(forms.CharField):
    """An amount to move, with or without separators. Its value is text without them, exactly as typed otherwise.

    Parse it with `parse_typed_amount`, once its currency is known. static/prepare.js shows it with commas.
    """

    default_error_messages = {
        "invalid": _("Enter a number such as 5,000.50. Commas and spaces only separate thousands."),
        "negative": _("The amount must be greater than zero."),
    }

    def to_python(self, value: Any) -> str:
        typed = super().to_python(value) or ""
        text = without_separators(typed)
        if typed.startswith("-") and _PLAIN_AMOUNT.fullmatch(without_separators(typed[1:])):
            raise forms.ValidationError(self.error_messages["negative"], code="negative")
        if text and not _PLAIN_AMOUNT.fullmatch(text):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return text

    def prepare_value(self, value: Any) -> Any:
        """The amount of an earlier operation with separators; whatever was typed as it was typed."""
        return f"{value:,f}" if isinstance(value, Decimal) else value


def amount_field(label: "StrOrPromise" = _AMOUNT, **options: Any) -> TypedAmountField:
    """An amount in the currency that another field of the form chooses."""
    return TypedAmountField(
        label=label,
        max_length=40,
        error_messages={"required": _("Enter an amount.")},
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off", "data-amount": True}),
        **options,
    )


def parse_typed_amount(text: str, currency: str) -> Decimal:
    """The amount, padded to all decimals of its currency if they are known. Raises ValidationError with the reason."""
    try:
        return parse_quantity(text, currency)
    except AmountError as exc:
        raise forms.ValidationError(error_sentence(exc)) from exc


def minimum_text(minimums: Mapping[str, Decimal], currencies: Iterable[str]) -> str:
    """`Minimum: NGN 100.00 · USD 1.00`, of these currencies; empty if no minimum is known."""
    known = [
        f"{currency}\N{NO-BREAK SPACE}{format_amount(minimums[currency], currency)}"
        for currency in currencies
        if currency in minimums
    ]
    return gettext("Minimum: {amounts}").format(amounts=" · ".join(known)) if known else ""


def currency_field(*codes: str, label: "StrOrPromise" = _CURRENCY) -> forms.ChoiceField:
    return forms.ChoiceField(choices=[(code, code) for code in codes], label=label)


class AmountForm(KindForm):
    """A form whose `amount` is debited in its `currency`; a subclass declares both fields."""

    reads_balance = True  # or the balance is compared elsewhere, for many amounts together

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["amount"].help_text = minimum_text(ledger.minimum_amounts(), self.debit_currencies)

    @property
    def debit_currencies(self) -> list[str]:
        """The currencies that can be debited."""
        currency: Any = self.fields["currency"]
        return [code for code, _label in currency.choices]

    def clean(self) -> dict[str, Any]:
        """Parse the amount, and refuse it if it is above the balance."""
        values = super().clean() or self.cleaned_data
        currency = self.debited(values)
        if values.get("amount") and currency:
            self._check_amount(values, currency)
        return values

    def debited(self, values: dict[str, Any]) -> str:
        """The currency of the debited balance; empty while it is not chosen."""
        return str(values.get("currency", ""))

    def _check_amount(self, values: dict[str, Any], currency: str) -> None:
        try:
            values["amount"] = parse_typed_amount(values["amount"], currency)
        except forms.ValidationError as exc:
            self.add_error("amount", exc)
            return
        problem = balance_problem(values["amount"], currency) if self.reads_balance else ""
        if problem:
            self.add_error("amount", problem)


def balance_problem(amount: Decimal, currency: str) -> str:
    """Why the balance is not sufficient, as the provider reports it now; empty if it is or cannot be read.

    The provider decides in the end; this check only avoids a predictable refusal.
    """
    try:
        balance = balances.current_balance(currency, deadline=FORM_HINT_TIMEOUT)
    except GatewayError:
        return ""
    if balance is None or amount <= balance:
        return ""
    return gettext("The amount exceeds the balance of {currency} {balance}. Enter a lower amount.").format(
        currency=currency, balance=format_amount(balance, currency)
    )


_TITLES = {"MR", "MRS", "MS", "MISS", "DR", "CHIEF", "ENGR", "ALHAJI", "ALHAJA"}
# "Enterprises" and "Ventures" are part of a registered business name, which is not its owner's.
_LEGAL_FORMS = {
    "LTD": "LIMITED",
    "LIMITED": "LIMITED",
    "PLC": "PLC",
    "INC": "INC",
    "CO": "COMPANY",
    "COMPANY": "COMPANY",
}
_APOSTROPHES = re.compile("['`\u2018\u2019\u02bb\u02bc\uff07]")


class NameComparison(Enum):
    EXACT = "exact"
    CLOSE = "close"
    DIFFERENT = "different"


def compare_names(typed: str, held: str) -> NameComparison:
    """Exact: the same words in any order. Close: every word of the shorter name is in the longer one.

    Case, accents, punctuation, titles and the legal form do not count.
    """
    first, second = (_words(name) - set(_LEGAL_FORMS.values()) or _words(name) for name in (typed, held))
    if first == second and first:
        return NameComparison.EXACT
    shorter, longer = sorted((first, second), key=len)
    return NameComparison.CLOSE if shorter and shorter <= longer else NameComparison.DIFFERENT


def is_same_holder(approved: str, current: str) -> bool:
    """Whether both name one holder: the same words, the legal form among them, since a person and the company of that
    name are two.
    """
    words = _words(approved)
    return bool(words) and words == _words(current)


def _words(name: str) -> frozenset[str]:
    """The words of a name without titles, and each legal form written in one way; all of them, if it has no others.

    In any script: vowel signs that are no accents are part of a word.
    """
    seen = [
        one
        for one in unicodedata.normalize("NFKD", _APOSTROPHES.sub("", name))
        if not unicodedata.combining(one) and unicodedata.category(one) != "Cf"
    ]
    separated = "".join(one if unicodedata.category(one)[0] in "LMN" else " " for one in seen)
    words = frozenset(_LEGAL_FORMS.get(word, word) for word in separated.upper().split())
    named = words - _TITLES
    return named if named - set(_LEGAL_FORMS.values()) else words


class RecipientAccountPayload(Payload):
    """A bank account, and how its holder's name was checked."""

    bank_code: str
    bank: str
    account_number: str
    account_name: str  # the holder's name as reported by the bank: this is what is sent
    typed_name: str
    name_reason: str
    # The holder's name saved with the account, if the bank reports another one now.
    saved_name: str = ""
    # Why the name could not be read from the bank (`ledger.unresolved_cause`), and why the typed name is sent
    # nevertheless, in the preparer's words. Both are empty if the bank named the holder.
    name_not_checked: dict[str, str] = {}
    unchecked_reason: str = ""

    OBSERVED = frozenset({"name_not_checked"})
    ADDED = frozenset({"name_not_checked", "unchecked_reason"})

    @property
    def recipient(self) -> Recipient:
        """The account as a recipient, named by its holder."""
        account = f"{self.bank} {mask_account(self.account_number)}"
        if self.name_not_checked:
            account = gettext("{account}, name not checked").format(account=account)
        key = bank_account_key(self.bank_code, self.account_number)
        return Recipient(self.account_name, account, key=key)

    @property
    def not_checked_text(self) -> str:
        """Why the bank did not name the holder; empty if it did."""
        return _not_checked_text(self.name_not_checked)

    @property
    def acknowledgement(self) -> str:
        """What the approver confirms if the bank did not name the holder; empty if it did."""
        if not self.name_not_checked:
            return ""
        if self.name_not_checked["code"] == ledger.UnresolvedCause.NO_ACCOUNT:
            return gettext("I approve this recipient although the bank did not find this account")
        return gettext("I approve this recipient although the bank has not confirmed the name {name}").format(
            name=self.account_name
        )

    @property
    def is_name_different(self) -> bool:
        """Whether the bank's name of the holder differs from the name that was typed."""
        is_exact = compare_names(self.typed_name, self.account_name) is NameComparison.EXACT
        return not (is_exact or self.name_not_checked)

    @property
    def account_warnings(self) -> list[str]:
        """Warnings if the name was not checked, or differs from the typed name or the one saved with the account."""
        cautions = [self.not_checked_text] if self.name_not_checked else []
        if self.is_name_different:
            cautions.append(self._different_name_text())
        if self.saved_name and self.name_not_checked:
            cautions.append(
                gettext("This recipient is saved as {saved}, but {typed_name} was entered.").format(
                    saved=self.saved_name, typed_name=self.typed_name
                )
            )
        elif self.saved_name:
            cautions.append(changed_holder_warning(self.saved_name, self.account_name))
        return cautions

    def _different_name_text(self) -> str:
        text = (
            gettext("The name at the bank is {bank_name}, but {typed_name} was entered. Check the reason.")
            if self.name_reason
            else gettext("The name at the bank is {bank_name}, but {typed_name} was entered.")
        )
        return text.format(bank_name=self.account_name, typed_name=self.typed_name)

    @property
    def account_facts(self) -> Facts:
        """The account, the typed name if the bank reports another one, and why a name was not checked."""
        facts = [
            (gettext("Recipient"), self.account_name),
            (gettext("Account"), f"{self.account_number} · {self.bank} ({self.bank_code})"),
        ]
        if self.is_name_different:
            facts.append((gettext("Name entered"), self.typed_name))
            # An earlier release asked for no reason if the names differed in "Enterprises" alone.
            if self.name_reason:
                facts.append((gettext("Reason for the mismatch"), self.name_reason))
        if self.name_not_checked:
            facts += [
                (gettext("Name check"), self.not_checked_text),
                (gettext("Reason for using the name"), self.unchecked_reason),
            ]
        if self.saved_name:
            facts.append((gettext("Name when saved"), self.saved_name))
        return facts


_OUTDATED_STATEMENT = gettext_noop(
    "The confirmation and reason below were given for another account. Check that they apply to this account, "
    "and confirm again."
)


def _not_checked_text(cause: Mapping[str, str]) -> str:
    if not cause:
        return ""
    return gettext("Name not checked. {cause}").format(cause=ledger.unresolved_sentence(cause))


def changed_holder_warning(saved: str, holder: str) -> str:
    """The warning for a saved account whose holder has changed."""
    return gettext(
        "The name at the bank was {saved} when this recipient was saved, and is now {current}. "
        "Confirm with the recipient before you continue."
    ).format(saved=saved, current=holder)


class RecipientAccountForm(KindForm):
    """Asks for a bank account, and reads its holder from the bank."""

    bank_code = forms.ChoiceField(
        label=_("Bank"),
        widget=forms.Select(attrs={"translate": "no"}),
        error_messages={
            "required": _("Select a bank."),
            "invalid_choice": _("Unknown bank: %(value)s. Enter its code, such as 057, or its full name."),
        },
    )
    account_number = forms.CharField(
        label=_("Account number"),
        help_text=_("10 digits"),
        error_messages={"required": _("Enter the account number.")},
        validators=[RegexValidator(r"^[0-9]{10}\Z", _("Enter exactly 10 digits."))],
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "maxlength": "34"}),
    )
    typed_name = OneLineField(
        label=_("Account holder"),
        error_messages={"required": _("Enter the name of the account holder.")},
        help_text=_("The name on the invoice. It is compared with the name at the bank."),
        max_length=120,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    name_reason = forms.CharField(
        label=_("Reason for the mismatch"),
        required=False,
        max_length=200,
        help_text=_("Required if the names differ. Shown to the approver."),
    )
    unchecked_confirmed = forms.BooleanField(
        required=False, label=_("Use the name as entered, without a check by the bank")
    )
    unchecked_reason = forms.CharField(
        label=_("Reason for using the name"),
        required=False,
        max_length=200,
        help_text=_("How you know who holds the account. Shown to the approver."),
    )
    # The account that the two fields above are about: another one in the form needs them again.
    unchecked_for = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)
    holder: str | None = None
    holder_details: Sequence[tuple[str, str]] = ()  # what else the provider answered about the account
    not_checked: Mapping[str, str] = MappingProxyType({})  # the cause if the bank did not name the holder
    match: NameComparison | None = None
    saved_name = ""
    registered: Mapping[str, RecipientVersion] | None = None  # versions in effect, if read for many forms
    is_statement_outdated = False  # it was typed for another account, and is no longer confirmed

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unconfirm_outdated_statement()
        self.banks = ledger.banks()
        bank_code: Any = self.fields["bank_code"]
        bank_code.choices = [
            ("", gettext("Select a bank")),
            *sorted(self.banks.items(), key=lambda item: item[1]),
        ]

    def clean(self) -> dict[str, Any]:
        """Read the account's holder from the provider."""
        values = super().clean() or self.cleaned_data
        if values.get("account_number") and values.get("bank_code"):
            self._check_holder(values)
        return values

    def account(self) -> dict[str, Any]:
        """The members of a RecipientAccountPayload. Call only on a valid form."""
        values = self.cleaned_data
        return {
            "bank_code": values["bank_code"],
            "bank": self.banks[values["bank_code"]],
            "account_number": values["account_number"],
            "account_name": self.holder or values["typed_name"],
            "typed_name": values["typed_name"],
            "name_reason": values["name_reason"],
            "saved_name": self.saved_name,
            "name_not_checked": dict(self.not_checked),
            "unchecked_reason": values["unchecked_reason"] if self.not_checked else "",
        }

    @property
    def changed_holder(self) -> str:
        """The warning if the holder changed since this account was saved; empty otherwise."""
        return changed_holder_warning(self.saved_name, self.holder) if self.saved_name and self.holder else ""

    @property
    def not_checked_text(self) -> str:
        """Why the bank did not name the holder; empty if it did."""
        return _not_checked_text(self.not_checked)

    @property
    def outdated_statement_text(self) -> str:
        """What to do about a statement that was typed for another account."""
        return gettext(_OUTDATED_STATEMENT)

    @property
    def account_key(self) -> str:
        """The account that is typed in, as `unchecked_for` names it."""
        typed = self.data if self.is_bound else self.initial
        code, number = (str(typed.get(name) or "").strip() for name in ("bank_code", "account_number"))
        return bank_account_key(code, number)

    def _unconfirm_outdated_statement(self) -> None:
        """Remove the tick of a statement about another account. Its reason remains, to be confirmed again."""
        typed = self.data if self.is_bound else self.initial
        about = str(typed.get("unchecked_for") or "")
        has_statement = bool(typed.get("unchecked_confirmed") or typed.get("unchecked_reason"))
        if not has_statement or about == self.account_key:
            return
        self.is_statement_outdated = True
        unconfirmed = {**dict(typed.items()), "unchecked_confirmed": ""}
        if self.is_bound:
            self.data = unconfirmed
        else:
            self.initial = unconfirmed

    def _check_holder(self, values: dict[str, Any]) -> None:
        key = bank_account_key(values["bank_code"], values["account_number"])
        try:
            resolved = ledger.resolve_account_holder(values["account_number"], values["bank_code"])
        except RateLimitedError as exc:  # no cause: many checks would be a way around the check
            problem = gettext("{problem} Nothing was prepared. Try again.")
            self.add_error("account_number", problem.format(problem=ledger.unresolved_text(exc)))
            return
        except NotFoundError as exc:  # an answer, so that no statement of the preparer replaces it
            problem = gettext("{problem} Check the account number and the bank. Nothing was prepared.")
            self.add_error("account_number", problem.format(problem=ledger.unresolved_text(exc)))
            return
        except GatewayError as exc:
            self.not_checked = ledger.reviewed_cause(exc, submission=self.submission, account=key)
            self.saved_name = self._outdated_saved_name(key, values.get("typed_name", ""))
            self._require_statement(values, exc)
            return
        self.holder, self.holder_details = resolved.account_name, ledger.holder_details(resolved)
        self.saved_name = self._outdated_saved_name(key, self.holder)
        self._compare(values, self.holder)

    def _outdated_saved_name(self, key: str, holder: str) -> str:
        """The name saved with the account, if it differs from the holder's; empty otherwise."""
        saved = version_in_effect(key) if self.registered is None else self.registered.get(key)
        if saved is None or is_same_holder(saved.name, holder):
            return ""
        return saved.name

    def _require_statement(self, values: dict[str, Any], exc: GatewayError) -> None:
        """Refuse the account unless the preparer states, with a reason, that the name is used without a check."""
        confirmed, reason = values.get("unchecked_confirmed"), values.get("unchecked_reason")
        if confirmed and reason:
            return
        if self.is_statement_outdated:
            self.add_error("unchecked_confirmed", gettext(_OUTDATED_STATEMENT))
        elif confirmed:
            self.add_error("unchecked_reason", gettext("Enter how you know who holds the account."))
        elif reason:
            self.add_error("unchecked_confirmed", gettext("Confirm that the name is used without a check."))
        problem = ledger.unresolved_text(exc)
        if not isinstance(exc, RejectedError):
            problem = gettext("{problem} Nothing was prepared. Try again.").format(problem=problem)
        self.add_error("account_number", problem)

    def _compare(self, values: dict[str, Any], holder: str) -> None:
        typed = values.get("typed_name")
        if not typed:
            return
        self.match = compare_names(typed, holder)
        if self.match is not NameComparison.EXACT and not values.get("name_reason"):
            self.add_error(
                "name_reason",
                gettext(
                    "The name at the bank is {name}. Give the reason for the mismatch, or correct the account."
                ).format(name=holder),
            )
