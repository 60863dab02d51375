"""What became of the webhooks, the keys that sign them, and their faults on demand."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, Field

from payments_gateway.sandbox.control.bodies import ControlBody
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.merchant.profile import callback_url
from payments_gateway.sandbox.webhooks import faults as webhook_faults
from payments_gateway.sandbox.webhooks import history, signing
from payments_gateway.sandbox.webhooks.models import Forgery
from payments_gateway.sandbox.wire.answers import answer
from payments_gateway.sandbox.wire.bodies import Body, read_body, read_query, validated
from payments_gateway.sandbox.wire.fields import Number, Whole

_Count = Annotated[int, Field(ge=0, le=100_000)]


class DeliveriesQuery(Body):
    """Query of GET /_sandbox/webhooks."""

    limit: Annotated[Whole, Field(ge=1, le=500)] = 50


class DeliveryFault(ControlBody):
    """A fault of the next `deliveries`; zero takes it away."""

    kind: str
    deliveries: _Count = 1

    @abstractmethod
    def ask(self) -> None:
        """Put it in force."""


class Duplicate(DeliveryFault):
    """Each is sent so many times more."""

    copies: Annotated[int, Field(ge=0, le=1000)] = 1

    def ask(self) -> None:
        """Put it in force."""
        webhook_faults.duplicate(self.copies, deliveries=self.deliveries)


class Reorder(DeliveryFault):
    """They are held until the last was announced, and sent in reverse."""

    def ask(self) -> None:
        """Put it in force."""
        webhook_faults.reorder(self.deliveries)


class Delay(DeliveryFault):
    """Each is sent so many seconds later."""

    seconds: Annotated[Number, Field(ge=0, le=31_536_000)]

    def ask(self) -> None:
        """Put it in force."""
        webhook_faults.delay(float(self.seconds), deliveries=self.deliveries)


class Forge(DeliveryFault):
    """Each is wrong in this way."""

    forgery: Literal[
        "wrong_signature", "stranger", "unsigned", "malformed", "tampered_data", "tampered_event"
    ]

    def ask(self) -> None:
        """Put it in force."""
        webhook_faults.forge(Forgery(self.forgery), deliveries=self.deliveries)


_FAULTS: Mapping[str, type[DeliveryFault]] = {
    "duplicate": Duplicate,
    "reorder": Reorder,
    "delay": Delay,
    "forge": Forge,
}


class DeliveryFaultKind(BaseModel):
    """The member that decides what the others are."""

    model_config = ConfigDict(strict=True, extra="allow")

    kind: Literal["duplicate", "reorder", "delay", "forge"]


@operation("GET", credentials=False)
def deliveries(request: HttpRequest) -> HttpResponse:
    """Where webhooks go, and the latest of them with every try."""
    limit = read_query(request, DeliveriesQuery).limit
    return answer({"callbackUrl": callback_url(), "deliveries": history.deliveries(limit)})


@operation("GET", "POST", credentials=False)
def keys(request: HttpRequest) -> HttpResponse:
    """The public keys, after a rotation if one was asked for."""
    return answer({"keys": signing.rotate_key() if request.method == "POST" else signing.public_keys()})


@operation("GET", "POST", "DELETE", credentials=False)
def faults(request: HttpRequest) -> HttpResponse:
    """The faults of deliveries, after the change if one was asked for."""
    if request.method == "POST":
        members = read_body(request, DeliveryFaultKind)
        fault = validated(_FAULTS[members.kind], {**(members.model_extra or {}), "kind": members.kind})
        fault.ask()
    if request.method == "DELETE":
        webhook_faults.clear()
    return answer({"faults": webhook_faults.in_force()})
