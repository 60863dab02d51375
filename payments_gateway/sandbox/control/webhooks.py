"""Control API of webhooks: deliveries and their attempts, signing keys, delivery faults."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, Field

from payments_gateway.sandbox.api.authentication import api_view
from payments_gateway.sandbox.api.http import (
    ApiRequest,
    ExactNumber,
    WholeNumber,
    json_response,
    read_body,
    read_query,
    validated,
)
from payments_gateway.sandbox.control.views import ControlRequest
from payments_gateway.sandbox.merchant.profile import callback_url
from payments_gateway.sandbox.models import Forgery
from payments_gateway.sandbox.webhooks import outbox, signing
from payments_gateway.sandbox.webhooks import outbox as webhook_faults

_Count = Annotated[int, Field(ge=0, le=100_000)]


class DeliveriesQuery(ApiRequest):
    """Query of GET /_sandbox/webhooks."""

    limit: Annotated[WholeNumber, Field(ge=1, le=500)] = 50


class DeliveryFaultRequest(ControlRequest):
    """A fault of the next `deliveries`; zero removes it."""

    kind: str
    deliveries: _Count = 1

    @abstractmethod
    def activate(self) -> None:
        """Activate the fault."""


class DuplicateDeliveries(DeliveryFaultRequest):
    """Each delivery is sent this many additional times."""

    copies: Annotated[int, Field(ge=0, le=1000)] = 1

    def activate(self) -> None:
        webhook_faults.duplicate_next(self.copies, deliveries=self.deliveries)


class ReorderDeliveries(DeliveryFaultRequest):
    """The deliveries are held until the last one was created, and sent in reverse order."""

    def activate(self) -> None:
        webhook_faults.reorder_next(self.deliveries)


class DelayDeliveries(DeliveryFaultRequest):
    """Each delivery is sent this many seconds later."""

    seconds: Annotated[ExactNumber, Field(ge=0, le=31_536_000)]

    def activate(self) -> None:
        webhook_faults.delay_next(float(self.seconds), deliveries=self.deliveries)


class ForgeDeliveries(DeliveryFaultRequest):
    """Each delivery is forged in this way."""

    forgery: Literal[
        "wrong_signature", "stranger", "unsigned", "malformed", "tampered_data", "tampered_event"
    ]

    def activate(self) -> None:
        webhook_faults.forge_next(Forgery(self.forgery), deliveries=self.deliveries)


_FAULT_REQUESTS: Mapping[str, type[DeliveryFaultRequest]] = {
    "duplicate": DuplicateDeliveries,
    "reorder": ReorderDeliveries,
    "delay": DelayDeliveries,
    "forge": ForgeDeliveries,
}


class DeliveryFaultMembers(BaseModel):
    """The member that selects the kind of fault."""

    model_config = ConfigDict(strict=True, extra="allow")

    kind: Literal["duplicate", "reorder", "delay", "forge"]


@api_view("GET", credentials=False)
def deliveries(request: HttpRequest) -> HttpResponse:
    """The callback URL, and the latest deliveries with every attempt."""
    limit = read_query(request, DeliveriesQuery).limit
    return json_response({"callbackUrl": callback_url(), "deliveries": outbox.list_deliveries(limit)})


@api_view("GET", "POST", credentials=False)
def keys(request: HttpRequest) -> HttpResponse:
    """The public keys, after a rotation if requested."""
    return json_response(
        {"keys": signing.rotate_key() if request.method == "POST" else signing.public_keys()}
    )


@api_view("GET", "POST", "DELETE", credentials=False)
def faults(request: HttpRequest) -> HttpResponse:
    """The delivery faults, after the requested change, if any."""
    if request.method == "POST":
        members = read_body(request, DeliveryFaultMembers)
        fault = validated(
            _FAULT_REQUESTS[members.kind], {**(members.model_extra or {}), "kind": members.kind}
        )
        fault.activate()
    if request.method == "DELETE":
        webhook_faults.clear_delivery_faults()
    return json_response({"faults": webhook_faults.delivery_faults()})
