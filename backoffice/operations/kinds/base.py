"""What a kind of operation declares: its payload, form, wording, debit, how it is sent and how it is matched.

Everything else about operations is the same for every kind. The usual match fields are here, too.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, Generic, Self, TypeVar
from uuid import UUID

from django import forms
from django.conf import settings
from pydantic import BaseModel, ConfigDict, SecretStr

from backoffice.core.web.formatting import exact_time, format_amount
from backoffice.operations.models.operations import Attempt
from backoffice.operations.models.reason_codes import MatchField
from backoffice.operations.permissions import PREPARE, PROPOSE
from payments_gateway import NotSentError, PaymentsGateway, TransactionRecord

Facts = list[tuple[str, str]]


class GroupedCode(str):
    """A value that two people compare character by character: shown in groups, copied exactly as it is."""

    __slots__ = ()
    GROUP = 4

    @property
    def groups(self) -> list[str]:
        """The same in pieces of four characters; the last may be shorter."""
        return [self[start : start + self.GROUP] for start in range(0, len(self), self.GROUP)]


class OperationLink(str):
    """A value that leads to the page of another operation."""

    operation: UUID

    @classmethod
    def to(cls, operation: UUID, text: str) -> Self:
        """The text as a link to this operation."""
        linked = cls(text)
        linked.operation = operation
        return linked


class Payload(BaseModel):
    """The content that is countersigned and sent. Amounts are `Decimal` here and text in the database."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    SEEN: ClassVar[frozenset[str]] = (
        frozenset()
    )  # members that nobody chose: what was seen when it was prepared

    repeat_reason: str = ""  # why the same amount goes to the same beneficiary again within a day

    def stored(self) -> dict[str, Any]:
        """JSON members only, amounts as plain text: what the digest covers."""
        return self.model_dump(mode="json")

    def compared(self) -> dict[str, Any]:
        """The members by which two contents are the same, so that both cannot wait at once."""
        return {name: value for name, value in self.stored().items() if name not in self.SEEN}


P = TypeVar("P", bound=Payload)


class KindSection(StrEnum):
    """What a kind is about. Money is in the menu; set-up begins on the page of what it changes."""

    MONEY = "money"
    SETUP = "set-up"


@dataclass(frozen=True)
class Debit:
    """What leaves which balance, before fees."""

    currency: str
    amount: Decimal


@dataclass(frozen=True)
class Recipient:
    """Who is at the other end, in one line and one detail for lists.

    `key` is the same text for the same beneficiary whatever it is called: an account at a bank, an address, a user.
    Empty where nobody is paid.
    """

    name: str
    detail: str = ""
    key: str = ""

    @staticmethod
    def user_key(username: str) -> str:
        """The key of a user of the service, who is the same in capitals and in small letters."""
        return f"user:{username.casefold()}"

    @property
    def account(self) -> str:
        """What people look for: the account number, the address or the user name at the end of the key."""
        return self.key.rpartition(":")[2].lower()


@dataclass(frozen=True)
class TypedConfirmation:
    """What the person who countersigns has to type from the content, because no token of the service stops a slip."""

    label: str
    help_text: str
    expected: str


@dataclass(frozen=True)
class SendReceipt:
    """What a definitive answer of the service told.

    `transaction_id` and `status` are the service's, where it gave them. `is_final`: the answer itself proves the
    end, and nothing has to be read. `result` is what the service made, as plain text by name, kept and shown;
    `secret` is shown once to the person who sent it and is in nothing else.
    """

    transaction_id: str | None = None
    status: str = ""
    is_final: bool = False
    result: dict[str, str] = field(default_factory=dict)
    secret: SecretStr | None = None


@dataclass(frozen=True)
class FieldMatch:
    """One thing by which a transaction in the service's list is held against what we sent.

    `fits` is None where the service does not tell it, which speaks neither for nor against.
    """

    field: MatchField
    ours: str
    theirs: str
    fits: bool | None

    @property
    def label(self) -> str:
        """The name of the field on screens."""
        return str(self.field.label)


class LocalEffect(StrEnum):
    """What applying an operation does that is never sent. `services.approving` does it."""

    SETTLES = "settles what became of another operation"
    RESUMES = "lets sending go on"


class KindForm(forms.Form):
    """A form that ends in a payload. The two fields about repeating are asked only where the same was paid before."""

    repeat_meant = forms.BooleanField(
        required=False, label="This is a further payment, not the same one again"
    )
    repeat_reason = forms.CharField(
        required=False,
        max_length=200,
        label="Why it is paid again",
        help_text="The person who countersigns reads it.",
    )

    def content(self) -> Payload:
        """The validated content of the kind. Call only on a valid form."""
        raise NotImplementedError

    def payload(self) -> Payload:
        """What is countersigned: the content, with the reason for paying again where there is one."""
        values = self.cleaned_data
        return self.content().model_copy(
            update={"repeat_reason": values["repeat_reason"] if values["repeat_meant"] else ""}
        )


class OperationKind(ABC, Generic[P]):
    """One kind of operation; its file is the only place that knows it: a MoneyKind, a ChangeKind or a LocalKind."""

    name: ClassVar[str]
    label: ClassVar[str]
    plural: ClassVar[str]  # the label in the rule: "Withdrawals need one approver …"
    letter: ClassVar[str]  # first letter of the reference
    verb: ClassVar[str]  # the entry in the menu
    section: ClassVar[KindSection]
    permission: ClassVar[str]  # who may prepare it
    done: ClassVar[tuple[str, str] | None] = (
        None  # title and text of its success, where others' would mislead
    )
    is_sent_blindly: ClassVar[bool] = (
        False  # whether the service need not be readable with the present key to send it
    )
    is_decided_alone: ClassVar[bool] = False  # whether it is countersigned on its own page only
    payload_type: type[P]
    form_type: type[KindForm]

    def read(self, stored: dict[str, Any]) -> P:
        """The payload as it stands in the database."""
        return self.payload_type.model_validate(stored)

    @property
    def needs_token(self) -> bool:
        """Whether the service demands its one-time token to send this."""
        return False

    @property
    def lifetime(self) -> timedelta:
        """How long it may wait to be decided and sent."""
        return timedelta(hours=settings.PENDING_LIFETIME_HOURS)

    @abstractmethod
    def sentence(self, payload: P) -> str:
        """What will happen, in one plain sentence: the headline of the operation."""

    @abstractmethod
    def debit(self, payload: P) -> Debit | None:
        """What it takes from a balance; None if it moves no money."""

    def at_stake(self, payload: P) -> Debit | None:
        """The amount that repeats, lists and totals look at: the debit, unless the kind says otherwise."""
        return self.debit(payload)

    def limited(self, payload: P) -> list[Debit]:
        """The amounts that limits look at: one above its currency's limit takes a second person to countersign."""
        stake = self.at_stake(payload)
        return [stake] if stake else []

    @abstractmethod
    def counterparty(self, payload: P) -> Recipient:
        """Who is at the other end."""

    @abstractmethod
    def facts(self, payload: P) -> Facts:
        """Label and value of everything the person who countersigns must see."""

    @abstractmethod
    def initial(self, payload: P) -> dict[str, Any]:
        """The form's values for preparing the same again."""

    def confirmation(self, payload: P) -> TypedConfirmation | None:
        """What has to be typed to countersign, besides the second factor; None for most kinds."""
        return None

    def cautions(self, payload: P) -> list[str]:
        """What the people who prepare and who countersign must be warned of. May read the database, not the service."""
        return []

    @abstractmethod
    def send(self, gateway: PaymentsGateway, payload: P, token: SecretStr | None) -> SendReceipt:
        """The one call to the service. Raises the gateway's errors, sorted by what may be done next."""

    def told_besides(self, gateway: PaymentsGateway, payload: P) -> dict[str, str]:
        """What a read tells of the result besides. Asked only of a result with gaps, and once the answer is recorded.

        So nothing is lost if it is never asked. Raises the gateway's errors.
        """
        return {}

    def outcome_facts(self, payload: P, result: dict[str, str]) -> Facts:
        """Label and value of what the service made, out of the receipt's result."""
        return []


class MoneyKind(OperationKind[P]):
    """Moves money: its end is what the service's list of transactions shows."""

    section = KindSection.MONEY
    permission = PREPARE

    @abstractmethod
    def debit(self, payload: P) -> Debit:
        """What it takes from a balance."""

    @abstractmethod
    def traits(self, payload: P, record: TransactionRecord) -> list[FieldMatch]:
        """What tells this operation from others in the service's list, as we sent it and as the service tells it."""

    def recognises(self, payload: P, record: TransactionRecord) -> bool:
        """Whether a transaction in the service's list may be this operation: none of its traits differs."""
        return all(trait.fits is not False for trait in self.traits(payload, record))


class LocalKind(OperationKind[P]):
    """Changes something here: the last countersignature applies it in its own transaction, and nothing is sent."""

    section = KindSection.SETUP
    is_decided_alone = True
    effect: ClassVar[LocalEffect]

    def debit(self, payload: P) -> None:
        """Nothing leaves a balance."""

    def send(self, gateway: PaymentsGateway, payload: P, token: SecretStr | None) -> SendReceipt:
        """Never: nothing of it leaves this machine. Raises NotSentError."""
        raise NotSentError("This is applied here and never sent. Nothing was sent.")


class ChangeKind(OperationKind[P]):
    """Changes something at the service that its list of transactions does not show: an answer or another read tells."""

    section = KindSection.SETUP
    permission = PROPOSE

    def debit(self, payload: P) -> Debit | None:
        """Nothing leaves a balance."""
        return None

    @abstractmethod
    def is_done(self, gateway: PaymentsGateway, payload: P) -> bool | None:
        """Whether the service shows now that it is done. False proves nothing. Raises the gateway's errors.

        None where no read of the service can ever tell: then people settle it at once.
        """


NOT_PROVIDED = "not told"


def common_match_fields(kind: str, debit: Debit, record: TransactionRecord) -> list[FieldMatch]:
    """Type, currency and amount. `kind` is the service's own word."""
    amounts = (format_amount(debit.amount, debit.currency), format_amount(record.amount, record.currency))
    return [
        FieldMatch(MatchField.TYPE, kind, record.type or NOT_PROVIDED, record.type == kind),
        FieldMatch(
            MatchField.CURRENCY,
            debit.currency,
            record.currency or NOT_PROVIDED,
            record.currency == debit.currency,
        ),
        FieldMatch(MatchField.AMOUNT, *amounts, record.amount == debit.amount),
    ]


def optional_match_field(field: MatchField, ours: str, theirs: str) -> FieldMatch:
    """One that the service may leave out: nothing said differs from nothing."""
    return FieldMatch(field, ours, theirs or NOT_PROVIDED, theirs == ours if theirs else None)


def attempt_match_fields(attempt: Attempt, record: TransactionRecord) -> list[FieldMatch]:
    """What tells by when it was sent: the balance before it, and the time, both by the service's own word."""
    seen = record.sender_previous_balance if record.previous_balance is None else record.previous_balance
    mark, is_told = attempt.watermark_balance, None not in {seen, attempt.watermark_balance}
    earliest, latest = attempt.sought_from, attempt.sought_until
    at = record.created_at
    return [
        FieldMatch(
            MatchField.PREVIOUS_BALANCE,
            _formatted_amount(mark, record),
            _formatted_amount(seen, record),
            seen == mark if is_told else None,
        ),
        FieldMatch(
            MatchField.TIME,
            f"{exact_time(earliest)} to {exact_time(latest)}",
            exact_time(at) if at else NOT_PROVIDED,
            earliest <= at <= latest if at else None,
        ),
    ]


def _formatted_amount(amount: Decimal | None, record: TransactionRecord) -> str:
    return NOT_PROVIDED if amount is None else format_amount(amount, record.currency)
