"""What a kind of operation declares. Everything else about operations is the same for every kind."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from pydantic import BaseModel, ConfigDict, SecretStr

from payments_gateway import PaymentsGateway, TransactionRecord


class Payload(BaseModel):
    """The content that is countersigned and sent. Amounts are `Decimal` here and text in the database."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def stored(self) -> dict[str, Any]:
        """JSON members only, amounts as plain text: what the digest covers."""
        return self.model_dump(mode="json")


P = TypeVar("P", bound=Payload)


@dataclass(frozen=True)
class Debit:
    """What leaves which balance, before fees."""

    currency: str
    amount: Decimal


@dataclass(frozen=True)
class Counterparty:
    """Who receives, in one line and one detail for lists."""

    name: str
    detail: str


@dataclass(frozen=True)
class Receipt:
    """What a definitive answer of the service told: its id of the transaction, and its status, if it gave them."""

    transaction_id: str | None
    status: str = ""


class KindForm(forms.Form):
    """A form that ends in a payload."""

    def payload(self) -> Payload:
        """The validated content. Call only on a valid form."""
        raise NotImplementedError


class Kind(ABC, Generic[P]):
    """One kind of operation; its file is the only place that knows it."""

    name: ClassVar[str]
    label: ClassVar[str]
    letter: ClassVar[str]  # first letter of the reference
    verb: ClassVar[str]  # the entry in the menu
    payload_type: type[P]
    form_type: type[KindForm]

    def read(self, stored: dict[str, Any]) -> P:
        """The payload as it stands in the database."""
        return self.payload_type.model_validate(stored)

    @property
    @abstractmethod
    def needs_token(self) -> bool:
        """Whether the service demands its one-time token to send this."""

    @abstractmethod
    def sentence(self, payload: P) -> str:
        """What will happen, in one plain sentence: the headline of the operation."""

    @abstractmethod
    def debit(self, payload: P) -> Debit | None:
        """What it takes from a balance; None if it moves no money."""

    @abstractmethod
    def counterparty(self, payload: P) -> Counterparty:
        """Who is at the other end."""

    @abstractmethod
    def facts(self, payload: P) -> list[tuple[str, str]]:
        """Label and value of everything the person who countersigns must see."""

    @abstractmethod
    def initial(self, payload: P) -> dict[str, Any]:
        """The form's values for preparing the same again."""

    @abstractmethod
    def send(self, gateway: PaymentsGateway, payload: P, token: SecretStr | None) -> Receipt:
        """The one call to the service. Raises the gateway's errors, sorted by what may be done next."""

    @abstractmethod
    def recognises(self, payload: P, record: TransactionRecord) -> bool:
        """Whether a transaction in the service's list may be this operation."""
