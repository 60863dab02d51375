"""What the specification leaves open, as data: our default for each point, how sure it is, where, and why.

The specification wins wherever it speaks. Each field of the groups below is one open point; a deployment replaces the
ones that turn out differently with `Dialect().overridden({...})` and changes no code. A path such as
("withdrawal", "transactionId") leads through nested objects; the empty path is where the search begins.

Three things are elsewhere. The `X-User-Version` header is a setting, `GatewayConfig.user_version`. The shapes of the
optional reads are taken in several spellings by `schemas/extras.py`. How a delivery is signed is sure: a constant of
`deliveries`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any, Self, get_type_hints

from payments_gateway.dialect.answers import AnswerPoints
from payments_gateway.dialect.errors import ErrorPoints
from payments_gateway.dialect.extras import ExtraPoints
from payments_gateway.dialect.keys import KeyPoints
from payments_gateway.dialect.points import OpenPoint, shaped
from payments_gateway.dialect.requests import RequestPoints
from payments_gateway.dialect.rules import problems
from payments_gateway.dialect.webhooks import WebhookPoints
from payments_gateway.dialect.words import CAPABILITIES, OTP_TYPES, Capability, EventKind, OtpType

__all__ = ["CAPABILITIES", "OTP_TYPES", "Capability", "Dialect", "EventKind", "OpenPoint", "OtpType"]


# A dataclass takes the fields of its last base first, so the bases stand against the order of the wire.
@dataclass(frozen=True, kw_only=True)
class Dialect(WebhookPoints, ErrorPoints, AnswerPoints, KeyPoints, ExtraPoints, RequestPoints):
    """The names and values of the wire that the specification does not show."""

    def __post_init__(self) -> None:
        """Refuse at once, with ValueError, what would otherwise fail in the middle of a call."""
        for problem in problems(self):
            raise ValueError(problem)

    def status(self, text: str | None) -> str:
        """Return our word for a status of the wire; an unknown one stays as it is."""
        text = (text or "").strip()
        return self.statuses.get(text.lower(), text)

    def event_kind(self, text: str) -> EventKind | None:
        """Return the kind of event that a text of the wire names, or None for one that is not known."""
        kind = self.event_kinds.get(text.strip().lower())
        return None if kind is None else EventKind(kind)

    def overridden(self, points: Mapping[str, Any]) -> Self:
        """Return this dialect with some points replaced, as a deployment writes them (types of JSON or TOML).

        Raises ValueError, which names the point, for one that does not exist and for a value of another shape.
        """
        kinds = get_type_hints(type(self))
        unknown = sorted(set(points) - set(kinds))
        if unknown:
            raise ValueError(f"No such point in the dialect: {', '.join(unknown)}.")
        return replace(self, **{name: shaped(name, kinds[name], value) for name, value in points.items()})

    def open_points(self) -> Iterator[OpenPoint]:
        """Yield each point with what is known of it, in the order of the wire: requests first, webhooks last.

        The version header is none of them: it is a setting, `GatewayConfig.user_version`.
        """
        declared: Field[Any]
        for declared in fields(self):
            yield OpenPoint(declared.name, getattr(self, declared.name), **declared.metadata)
