"""The provider profile: every point that the specification leaves open, in one validated object.

A deployment overrides single points with `ProviderProfile().overridden({...})` and changes no code. An
invalid profile is rejected at start-up, because in the middle of a call it could lose the outcome of a
transfer. Not part of the profile: the `X-User-Version` header (`GatewayConfig.user_version`) and the webhook
signature scheme (`payments_gateway.webhooks`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any, Self, get_type_hints

from payments_gateway.errors import REJECTION_KINDS
from payments_gateway.profile.points import (
    CAPABILITIES,
    DURATIONS,
    OTP_TYPES,
    STATUSES,
    ErrorPoints,
    EventKind,
    ExtraPoints,
    KeyPoints,
    OpenPoint,
    RequestPoints,
    ResponsePoints,
    WebhookPoints,
    parse_point_value,
)

_CHOICES = {"otp_type": OTP_TYPES, "key_base": ("v2", "v4")}
_MAY_BE_EMPTY = {"retry_statuses", "detail_members", "capabilities", "payment_types"}
_MAY_BE_DATA_ITSELF = {"transfer_detail_paths", "wallet_paths", "account_list_paths", "key_list_paths"}
_PATH = re.compile(r"(/[A-Za-z0-9_~-]+(\.[A-Za-z0-9_~-]+)*)+")
_PATHS_WITH_ID = ("extra_transaction_path", "extra_payment_path")
_ID_SEGMENT = re.compile(r"/\{\w+\}(?=/|$)")

# Names used in the same query or body, and the members that the specification defines for that body: all must differ.
_NAMES_USED_TOGETHER: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        (
            "transaction_currency_query",
            "transaction_type_query",
            "transaction_page_query",
            "transaction_per_page_query",
            "transaction_duration_query",
        ),
        (),
    ),
    (("wallet_currency_query", "wallet_network_query"), ()),
    (("account_name_query", "account_page_query", "account_per_page_query"), ()),
    (
        ("otp_type_member",),
        ("accountNumber", "accountName", "bank", "bankCode", "currency", "amount", "token"),
    ),
    (("otp_type_member", "transfer_currency_member"), ("receiverUsername", "amount", "token", "memo")),
    (
        ("service_username_member",),
        (
            "businessId",
            "incomingCurrency",
            "outgoingCurrency",
            "customerEmail",
            "paymentType",
            "reference",
            "incomingAmount",
            "outgoingAmount",
            "rateKey",
            "country",
            "accountNumber",
            "accountName",
            "bank",
            "bankCode",
        ),
    ),
    (
        (
            "key_name_member",
            "key_scope_member",
            "key_replaced_member",
            "key_days_member",
            "key_months_member",
            "key_otp_member",
        ),
        (),
    ),
    (("delivery_event_member", "delivery_data_member", "delivery_signature_member"), ()),
)


def profile_problems(dialect: "ProviderProfile") -> Iterator[str]:
    """Yield everything that makes a profile unusable."""
    for point in fields(dialect):
        yield from _value_problems(point.name, getattr(dialect, point.name))
    yield from _choice_problems(dialect)
    yield from _status_problems(dialect)
    yield from _rejection_problems(dialect)
    yield from _table_problems(dialect)
    yield from _name_problems(dialect)


def _value_problems(name: str, value: object) -> Iterator[str]:
    match value:
        case str() if name.endswith("_path"):
            yield from _path_problems(name, value)
        case str() if not value or value != value.strip():
            yield f"{name}: a name is needed, without spaces around it."
        case () if name not in _MAY_BE_EMPTY and name not in _MAY_BE_DATA_ITSELF:
            yield f"{name}: at least one is needed."
        case tuple():
            for item in value:
                if item != () or name not in _MAY_BE_DATA_ITSELF:
                    yield from _value_problems(name, item)


def _path_problems(name: str, path: str) -> Iterator[str]:
    """A path has plain segments; in the path of a read by id, exactly one segment in braces is the id.

    No path may contain `resolve` (GET /payment/resolve moves money) or segments such as `..` that could lead
    to it.
    """
    plain, places = _ID_SEGMENT.subn("/id", path) if name in _PATHS_WITH_ID else (path, 0)
    if not _PATH.fullmatch(plain):
        yield f"{name}: a path is like /user/api-keys, without a query."
    if name in _PATHS_WITH_ID and places != 1:
        yield f"{name}: one segment of the path is for the id, as in /transaction/{{transactionId}}."
    if "resolve" in path.casefold():
        yield f"{name}: no path may hold the word resolve, because GET /payment/resolve moves money."


def _choice_problems(dialect: "ProviderProfile") -> Iterator[str]:
    for name, choices in _CHOICES.items():
        if getattr(dialect, name) not in choices:
            yield f"{name} is one of {', '.join(choices)}."
    strange = [name for name in dialect.capabilities if name not in CAPABILITIES]
    if strange:
        yield f"capabilities: there is no {strange[0]!r}; there are {', '.join(CAPABILITIES)}."
    if dialect.first_page < 0:
        yield "first_page is no less than zero."


def _status_problems(dialect: "ProviderProfile") -> Iterator[str]:
    allowed: tuple[tuple[str, int, int], ...] = (
        ("success_statuses", 200, 299),
        ("retry_statuses", 400, 599),
        ("uncertain_statuses", 400, 499),
        ("refusal_statuses", 400, 499),
    )
    for name, least, most in allowed:
        wrong = [status for status in getattr(dialect, name) if not least <= status <= most]
        if wrong:
            yield f"{name}: an HTTP status here is from {least} to {most}, and {wrong[0]} is not."


def _rejection_problems(dialect: "ProviderProfile") -> Iterator[str]:
    kinds = {
        "refusal_patterns": dialect.refusal_patterns,
        "refusal_statuses": dialect.refusal_statuses.values(),
    }
    for name, named in kinds.items():
        if not set(named) <= set(REJECTION_KINDS):
            yield f"{name}: the kinds of refusal are {', '.join(REJECTION_KINDS)}."
    for pattern in dialect.refusal_patterns.values():
        try:
            re.compile(pattern)
        except re.error as exc:
            yield f"refusal_patterns: {pattern!r} is no pattern ({exc})."


def _table_problems(dialect: "ProviderProfile") -> Iterator[str]:
    if not set(dialect.durations) <= set(DURATIONS) or not all(dialect.durations.values()):
        yield f"durations: what is sent for {', '.join(DURATIONS)}; nothing else has a place here."
    if not set(dialect.statuses.values()) <= set(STATUSES):
        yield f"statuses: ours are {', '.join(STATUSES)}."
    if any(word != word.strip().lower() for word in dialect.statuses):
        yield "statuses: the words of the wire are compared without case, and written here in lower case."
    if not set(dialect.event_kinds.values()) <= set(EventKind):
        yield f"event_kinds: ours are {', '.join(EventKind)}."
    if any(word != word.strip().lower() for word in dialect.event_kinds):
        yield "event_kinds: the words of the wire are compared without case, and written here in lower case."


def _name_problems(dialect: "ProviderProfile") -> Iterator[str]:
    for points, taken in _NAMES_USED_TOGETHER:
        used: dict[str, str] = dict.fromkeys(taken, "the specification")
        for name in points:
            spelling: Any = getattr(dialect, name)
            if spelling in used:
                yield f"{name}: {spelling} is taken, in the same place, by {used[spelling]}."
            used[spelling] = name


# A dataclass lists the fields of its last base first, so the bases are in reverse order.
@dataclass(frozen=True, kw_only=True)
class ProviderProfile(WebhookPoints, ErrorPoints, ResponsePoints, KeyPoints, ExtraPoints, RequestPoints):
    """The names and values of requests, responses and webhooks that the specification does not define."""

    def __post_init__(self) -> None:
        """Reject an invalid profile, with ValueError, before any call is made."""
        for problem in profile_problems(self):
            raise ValueError(problem)

    def status(self, text: str | None) -> str:
        """Translate a status of the API to ours; an unknown one is returned unchanged."""
        text = (text or "").strip()
        return self.statuses.get(text.lower(), text)

    def event_kind(self, text: str) -> EventKind | None:
        """Return the kind of event for the text in a webhook, or None for an unknown one."""
        kind = self.event_kinds.get(text.strip().lower())
        return None if kind is None else EventKind(kind)

    def overridden(self, points: Mapping[str, Any]) -> Self:
        """Return a copy with some points replaced, given as a deployment writes them (types of JSON or TOML).

        Raises ValueError, which names the point, for an unknown point or a value of another shape.
        """
        kinds = get_type_hints(type(self))
        unknown = sorted(set(points) - set(kinds))
        if unknown:
            raise ValueError(f"No such point in the dialect: {', '.join(unknown)}.")
        return replace(
            self, **{name: parse_point_value(name, kinds[name], value) for name, value in points.items()}
        )

    def open_points(self) -> Iterator[OpenPoint]:
        """Yield each point with its documentation: requests first, webhooks last.

        The version header is not among them: it is a setting, `GatewayConfig.user_version`.
        """
        declared: Field[Any]
        for declared in fields(self):
            yield OpenPoint(declared.name, getattr(self, declared.name), **declared.metadata)
