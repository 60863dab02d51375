"""What a kind of operation declares: its payload, form, wording, debit, how it is sent and how it is matched.

Everything else about operations is the same for every kind. The usual match fields are here, too.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict, SecretStr

from backoffice.accounts.models import User
from backoffice.core.gateway import OtpMode, otp_mode
from backoffice.core.web.formatting import exact_time, format_amount, searched_amount
from backoffice.core.web.forms import PageForm
from backoffice.operations.models.operations import Attempt
from backoffice.operations.models.reason_codes import Difference, MatchField
from backoffice.operations.permissions import APPROVE, PREPARE, PROPOSE
from payments_gateway import NotSentError, PaymentsGateway, TransactionRecord

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Facts = list[tuple[str, str]]


class GroupedCode(str):
    """A value that two people compare character by character: shown in groups, copied without spaces."""

    __slots__ = ()
    GROUP = 4

    @property
    def groups(self) -> list[str]:
        """Groups of four characters; the last may be shorter."""
        return [self[start : start + self.GROUP] for start in range(0, len(self), self.GROUP)]


class OperationLink(str):
    """A value that is shown as a link to another operation."""

    operation: UUID

    @classmethod
    def to(cls, operation: UUID, text: str) -> Self:
        linked = cls(text)
        linked.operation = operation
        return linked


class Payload(BaseModel):
    """The content that is approved and sent. Amounts are `Decimal` here and text in the database."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    # Members that were read when it was prepared, not chosen by the preparer; ignored when comparing.
    OBSERVED: ClassVar[frozenset[str]] = frozenset()

    # Members that operations stored by earlier releases do not have. They are left out while they are empty, so
    # that the same content has the same digest in every release.
    ADDED: ClassVar[frozenset[str]] = frozenset()

    duplicate_reason: str = ""  # why the same amount goes to the same recipient again within a day

    def stored(self) -> dict[str, Any]:
        """JSON members with amounts as plain text: what the digest covers."""
        members = self.model_dump(mode="json")
        return {name: value for name, value in members.items() if value or name not in self.ADDED}

    def identity(self) -> dict[str, Any]:
        """The members that make two contents equal, of which only one may be pending, approved or sending."""
        return {name: value for name, value in self.stored().items() if name not in self.OBSERVED}


P = TypeVar("P", bound=Payload)


class KindSection(StrEnum):
    """Where a kind is offered: money in the menu, set-up on the page of what it changes."""

    MONEY = "money"
    SETUP = "set-up"


@dataclass(frozen=True)
class KindPage:
    """The page that lists the operations of one kind: the end of its URL, and the button that prepares one."""

    slug: str
    button: "StrOrPromise"


@dataclass(frozen=True)
class Debit:
    """The amount debited from a balance, before fees."""

    currency: str
    amount: Decimal


@dataclass(frozen=True)
class Recipient:
    """The recipient, in one line and one detail for lists.

    `key` identifies the recipient independently of its name: a bank account, an address or a user. Empty if
    nobody is paid.
    """

    name: str
    detail: str = ""
    key: str = ""

    @property
    def account(self) -> str:
        """The searchable part of the key: the account number, address or user name."""
        return self.key.rpartition(":")[2].lower()


@dataclass(frozen=True)
class TypedConfirmation:
    """What the approver has to type from the content, where no person enters the provider's one-time code."""

    label: str
    help_text: str
    expected: str

    def is_typed_as(self, typed: str) -> bool:
        """Whether this text is what is expected: every character of it, apart from spaces around it."""
        return typed.strip() == self.expected


@dataclass(frozen=True)
class TypedAmount(TypedConfirmation):
    """An amount to type, with or without separators and final zeros; its value has to be exactly the expected one."""

    def is_typed_as(self, typed: str) -> bool:
        return searched_amount(typed) == Decimal(self.expected)


@dataclass(frozen=True)
class SendReceipt:
    """The provider's definitive answer.

    `transaction_id` and `status` are the provider's, if given. `is_final`: the answer itself proves the end,
    and nothing has to be read. `result` is what the provider created, as plain text by name, stored and
    shown; `secret` is shown once to the releasing user and stored nowhere else. `message` is the provider's, in one
    line, without secrets.
    """

    transaction_id: str | None = None
    status: str = ""
    is_final: bool = False
    result: dict[str, str] = field(default_factory=dict)
    secret: SecretStr | None = None
    message: str = ""


@dataclass(frozen=True)
class FieldMatch:
    """One field of a transaction in the provider's list, compared with what we sent.

    `matches` is None if the provider does not report the field, which counts neither for nor against a match.
    """

    field: MatchField
    local: str
    provider: str
    matches: bool | None

    @property
    def label(self) -> str:
        return str(self.field.label)


class OutdatedError(NotSentError):
    """Nothing was sent: what was approved no longer fits what exists now, so it must be prepared again."""


class LocalEffect(StrEnum):
    """What the last approval of a local kind does. `workflow.approvals` runs it."""

    RESOLVES_OPERATION = "settles what became of another operation"
    RESUMES_PAYMENTS = "lets sending go on"
    CHANGES_AUTHENTICATOR = "changes from which secret one-time codes are made"
    CREATES_OPERATIONS = "makes each row an operation"
    CHANGES_POLICY = "puts a version of the approval policies into effect"
    CHANGES_RECIPIENT = "adds, changes or retires a recipient of the register"
    STARTS_DELEGATION = "lets another person approve during a leave"
    IMPORTS_RECIPIENTS = "adds the recipients of a file to the register"
    CHANGES_STAFF = "changes a person's account or a group"
    SIGNS_ACCESS_REVIEW = "records that two people reviewed who may do what"


_LONGEST_CHOICE = 80


class KindForm(PageForm):
    """A form that produces a payload. The fields about duplicates are shown only if there is one."""

    advanced: ClassVar[tuple[str, ...]] = ()  # rarely used fields, folded away on the page
    secret_fields: ClassVar[tuple[str, ...]] = ()  # never kept in a draft, and never shown again
    is_being_typed = False  # checked for hints only, after every change; what takes long waits for the review
    # `field_order`, where a form declares it, is the order on the page.
    title: "StrOrPromise" = ""  # of the page, if the verb of the kind says too little

    duplicate_confirmed = forms.BooleanField(
        required=False, label=_("This is an additional payment, not a duplicate")
    )
    duplicate_reason = forms.CharField(
        required=False,
        max_length=200,
        label=_("Reason for the additional payment"),
        help_text=_("Shown to the approver."),
    )

    def full_clean(self) -> None:
        """Also refuse initial values that are not offered, such as those of a copied operation.

        A browser would silently select another choice instead.
        """
        super().full_clean()
        for name, asked in self.fields.items():
            if isinstance(asked, forms.ChoiceField) and isinstance(asked.widget, forms.Select):
                self._keep_unavailable_choice(name, asked)

    @property
    def submission(self) -> UUID | None:
        """The form's submission id: the operation's id, once it is prepared."""
        try:
            return UUID(str(self.data.get("submission", "")))
        except ValueError:
            return None

    def content(self) -> Payload:
        """The validated content of the kind. Call only on a valid form."""
        raise NotImplementedError

    def payload(self) -> Payload:
        """The content that is approved, with the reason for paying again if there is one."""
        values = self.cleaned_data
        return self.content().model_copy(
            update={"duplicate_reason": values["duplicate_reason"] if values["duplicate_confirmed"] else ""}
        )

    def is_needed(self, name: str) -> bool:
        """Whether the form cannot be submitted without this field."""
        return self.fields[name].required

    def set_focus(self) -> None:
        """Let the page open with the focus in the first invalid field, or else in the first empty one it needs."""
        invalid = [name for name in self.fields if name in self.errors]
        empty = [name for name in self.fields if self.is_needed(name) and self._is_empty(name)]
        for name in (invalid or empty)[:1]:
            self.fields[name].widget.attrs["autofocus"] = True

    @property
    def is_advanced_open(self) -> bool:
        """Whether a folded field has an error, or another value than at first."""
        return any(
            name in self.errors or (self[name].value() or "") != (self.fields[name].initial or "")
            for name in self.advanced
        )

    def _is_empty(self, name: str) -> bool:
        """Whether nothing is typed or selected; a list without an empty choice begins with the first one selected."""
        field_choices = getattr(self.fields[name], "choices", None)
        return not self[name].value() and not (field_choices and next(iter(field_choices))[0])

    def _keep_unavailable_choice(self, name: str, asked: forms.ChoiceField) -> None:
        """Show a value that is not offered as such, and the error beside it."""
        value = str(self[name].value() or "")[:_LONGEST_CHOICE]
        if not value or asked.valid_value(value):
            return
        choices: Any = asked.widget.choices
        unavailable = gettext("{value} (not available)").format(value=value)
        asked.widget.choices = [*choices, (value, unavailable)]
        if not self.is_bound:
            message = str(asked.error_messages["invalid_choice"]) % {"value": value}
            self.errors[name] = self.error_class([message], renderer=self.renderer)


class OperationKind(ABC, Generic[P]):
    """One kind of operation, defined in one file: a MoneyKind, a ChangeKind or a LocalKind."""

    name: ClassVar[str]
    label: ClassVar["StrOrPromise"]
    plural: ClassVar["StrOrPromise"]  # for several of them, and the title of their page
    page: ClassVar[KindPage | None] = None  # that lists its operations, if it has one of its own
    letter: ClassVar[str]  # first letter of the reference
    verb: ClassVar["StrOrPromise"]  # the entry in the menu
    section: ClassVar[KindSection]
    permission: ClassVar[str]  # who may prepare it
    approval_permission: ClassVar[str] = APPROVE  # who may approve or reject it
    # Title and text shown on success, if the usual ones would mislead.
    success_texts: ClassVar["tuple[StrOrPromise, StrOrPromise] | None"] = None
    # What its status on success is called, if that of other kinds would mislead.
    success_label: ClassVar["StrOrPromise | None"] = None
    # Whether it is sent even if the provider cannot be read with the present key.
    skips_preflight: ClassVar[bool] = False
    # Whether the provider's call has a member for its one-time code.
    takes_otp: ClassVar[bool] = False
    # The fields of its form that a file of payments may have as columns; none if it cannot be prepared from a file.
    file_fields: ClassVar[tuple[str, ...]] = ()
    # The one field of its form that says who is paid, beside which a recipient is refused; empty if there is none.
    recipient_field: ClassVar[str] = ""
    # URL name of the page where it is prepared, if not by its form.
    prepared_on: ClassVar[str] = ""
    # Names of other kinds whose approval rules decide about it, too: the strictest counts.
    ruled_as_well_as: ClassVar[tuple[str, ...]] = ()
    # URL name of the page with the content that is too long for the page of the operation, if there is one.
    content_page: ClassVar[str] = ""
    # whether it is approved on its own page only, not in bulk
    excluded_from_bulk: ClassVar[bool] = False
    payload_type: type[P]
    form_type: type[KindForm]

    def read(self, stored: dict[str, Any]) -> P:
        """The payload as stored in the database."""
        return self.payload_type.model_validate(stored)

    def form_page(self, query: Mapping[str, str]) -> str:
        """URL name of this kind's own form page for this query string; empty for the form page of all kinds."""
        return ""

    def must_be_approved_alone(self, payload: P) -> bool:
        """Whether this content is approved on its own page only."""
        return self.excluded_from_bulk

    @property
    def requires_otp(self) -> bool:
        """Whether the request has to carry the provider's one-time code."""
        return self.takes_otp and otp_mode() != OtpMode.NOT_ASKED

    @property
    def asks_for_otp(self) -> bool:
        """Whether the person who sends it has to enter that code."""
        return self.takes_otp and otp_mode() == OtpMode.ENTERED

    @property
    def lifetime(self) -> timedelta:
        """How long it may stay pending or approved before it expires."""
        return timedelta(hours=settings.PENDING_LIFETIME_HOURS)

    @abstractmethod
    def sentence(self, payload: P) -> str:
        """What will happen, in one plain sentence: the headline of the operation."""

    @abstractmethod
    def debit(self, payload: P) -> Debit | None:
        """The debit of a balance; None if it moves no money."""

    def exposure(self, payload: P) -> Debit | None:
        """The amount for duplicates, lists and totals: the debit, unless the kind overrides it."""
        return self.debit(payload)

    def limited_amounts(self, payload: P) -> list[Debit]:
        """The amounts checked against the limits: one above its currency's limit requires two approvals."""
        stake = self.exposure(payload)
        return [stake] if stake else []

    def paid_currency(self, payload: P) -> str:
        """The currency in which the recipient is paid: that of the debit, unless the kind overrides it.

        Empty if nobody is paid.
        """
        debit = self.debit(payload)
        return debit.currency if debit else ""

    @abstractmethod
    def recipient(self, payload: P) -> Recipient:
        """The recipient."""

    def recipient_key_of(self, fields: Mapping[str, Any]) -> str:
        """The key of the recipient by the valid fields of a form with errors in others; empty if they do not say it."""
        return ""

    @abstractmethod
    def facts(self, payload: P) -> Facts:
        """Label and value of everything the approver must see."""

    def decision_facts(self, payload: P) -> Facts:
        """The facts that the decision panel repeats beside its buttons: amounts, recipient and whole account."""
        return self.facts(payload)

    @abstractmethod
    def initial(self, payload: P) -> dict[str, Any]:
        """The form's values for preparing the same again."""

    def confirmation(self, payload: P) -> TypedConfirmation | None:
        """What has to be typed to approve, besides the second factor; None for most kinds."""
        return None

    def provider_reference(self, payload: P) -> str:
        """Our reference at the provider, a member `reference` of the payload; empty for kinds without one.

        Only one operation of the kind has it (`Operation.objects.holding_reference`).
        """
        return ""

    def acknowledgement(self, payload: P) -> str:
        """What the approver has to confirm with a tick, such as an unchecked name; empty for most contents."""
        return ""

    def cautions(self, payload: P) -> list[str]:
        """Warnings for the preparer and the approver. May read the database, not the provider."""
        return []

    @abstractmethod
    def send(self, gateway: PaymentsGateway, payload: P, otp: SecretStr | None) -> SendReceipt:
        """The one call to the provider. Raises the gateway's errors, sorted by what may be done next."""

    def affected_people(self, payload: P) -> frozenset[int]:
        """Ids of the people whose rights it changes: they may neither prepare nor approve it."""
        return frozenset()

    def check_proposal(self, payload: P, preparer: User) -> None:
        """Raise OperationError if it would be refused when it is applied; in the transaction that prepares it."""

    def fetch_details(self, gateway: PaymentsGateway, payload: P) -> dict[str, str]:
        """Empty members of the result that a read can provide. Called after the answer was recorded.

        Nothing is lost if it is never called. Raises the gateway's errors.
        """
        return {}

    def response_differences(self, payload: P, result: dict[str, str]) -> list[Difference]:
        """Where the provider created something else than was approved, by the receipt's result."""
        return []

    def outcome_facts(self, payload: P, result: dict[str, str]) -> Facts:
        """Label and value of what the provider created, from the receipt's result."""
        return []


class MoneyKind(OperationKind[P]):
    """Moves money: the provider's list of transactions shows its outcome."""

    section = KindSection.MONEY
    permission = PREPARE
    # The field of its form that says who is paid, beside which a recipient is refused; empty if nobody is paid.
    recipient_field: ClassVar[str] = ""

    @abstractmethod
    def debit(self, payload: P) -> Debit:
        """The debit of a balance."""

    @abstractmethod
    def match_fields(self, payload: P, record: TransactionRecord) -> list[FieldMatch]:
        """The fields by which a transaction is matched to this operation: our value and the provider's."""

    def is_match(self, payload: P, record: TransactionRecord) -> bool:
        """Whether a transaction may be this operation: none of its reported fields differs."""
        debit = self.debit(payload)
        if debit is not None and (record.currency, record.amount) != (debit.currency, debit.amount):
            return False  # most of a list: found without putting each field into words
        return all(field_match.matches is not False for field_match in self.match_fields(payload, record))

    def is_similar_only(self, payload: P, record: TransactionRecord) -> bool:
        """Whether a transaction that `is_match` finds may still be another's, so that people decide, not a claim."""
        return False


class LocalKind(OperationKind[P]):
    """Changes something here: the last approval applies it, mostly in its own transaction, and nothing is sent."""

    section = KindSection.SETUP
    excluded_from_bulk = True
    effect: ClassVar[LocalEffect]
    # Whether the effect is complete at the last approval; otherwise a worker completes it.
    applied_at_once: ClassVar[bool] = True
    # The step after the approval.
    applied_label: ClassVar["StrOrPromise"] = _("Applied")

    def listed_amount(self, payload: P) -> Debit | None:
        """The amount shown in lists, if there is one, although the operation itself debits nothing."""
        return None

    def approval_texts(self, payload: P) -> tuple[str, str]:
        """The label of the button that approves it, and what is said beside the button, which may be empty."""
        return gettext("Approve and apply"), ""

    def debit(self, payload: P) -> None:
        """Debits no balance."""

    def send(self, gateway: PaymentsGateway, payload: P, otp: SecretStr | None) -> SendReceipt:
        """Never sends. Raises NotSentError."""
        raise NotSentError.of(gettext_noop("This operation changes Countersign only. Nothing was sent."))


class ChangeKind(OperationKind[P]):
    """Changes something at the provider that shows in its answer or another read, not in transactions."""

    section = KindSection.SETUP
    permission = PROPOSE

    def debit(self, payload: P) -> Debit | None:
        return None

    @abstractmethod
    def is_done(self, gateway: PaymentsGateway, payload: P) -> bool | None:
        """Whether the provider shows that it is done now. False proves nothing. Raises the gateway's errors.

        None if no read of the provider can show it: then people resolve it at once.
        """


NOT_PROVIDED = _("not provided")


def common_match_fields(kind: str, debit: Debit, record: TransactionRecord) -> list[FieldMatch]:
    """Type, currency and amount. `kind` is the provider's name of the type."""
    amounts = (format_amount(debit.amount, debit.currency), format_amount(record.amount, record.currency))
    return [
        FieldMatch(MatchField.TYPE, kind, record.type or str(NOT_PROVIDED), record.type == kind),
        FieldMatch(
            MatchField.CURRENCY,
            debit.currency,
            record.currency or str(NOT_PROVIDED),
            record.currency == debit.currency,
        ),
        FieldMatch(MatchField.AMOUNT, *amounts, record.amount == debit.amount),
    ]


def optional_match_field(field: MatchField, local: str, provider: str) -> FieldMatch:
    """A field that the provider may leave out, which is no difference."""
    return FieldMatch(field, local, provider or str(NOT_PROVIDED), provider == local if provider else None)


def attempt_match_fields(attempt: Attempt, record: TransactionRecord) -> list[FieldMatch]:
    """The balance before the attempt and its time, both as the provider reports them."""
    seen = record.sender_previous_balance if record.previous_balance is None else record.previous_balance
    mark, is_comparable = attempt.watermark_balance, None not in {seen, attempt.watermark_balance}
    earliest, latest = attempt.search_from, attempt.search_until
    at = record.created_at
    return [
        FieldMatch(
            MatchField.PREVIOUS_BALANCE,
            _formatted_amount(mark, record),
            _formatted_amount(seen, record),
            seen == mark if is_comparable else None,
        ),
        FieldMatch(
            MatchField.TIME,
            gettext("{start} to {end}").format(start=exact_time(earliest), end=exact_time(latest)),
            exact_time(at) if at else str(NOT_PROVIDED),
            earliest <= at <= latest if at else None,
        ),
    ]


def _formatted_amount(amount: Decimal | None, record: TransactionRecord) -> str:
    return str(NOT_PROVIDED) if amount is None else format_amount(amount, record.currency)
