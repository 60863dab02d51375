"""What a dialect must hold to be of use: each rule yields what is wrong, beginning with the name of the point.

A wrong dialect is refused at the start of the program. In the middle of a call it would be a lost transfer.
"""

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from payments_gateway.dialect.words import CAPABILITIES, DURATIONS, OTP_TYPES, STATUSES, EventKind
from payments_gateway.errors import REFUSALS

if TYPE_CHECKING:
    from payments_gateway.dialect import Dialect

_CHOICES = {"otp_type": OTP_TYPES, "key_base": ("v2", "v4")}
_MAY_BE_EMPTY = {"retry_statuses", "detail_members", "capabilities", "payment_types"}
_MAY_BE_DATA_ITSELF = {"transfer_detail_paths", "wallet_paths", "account_list_paths", "key_list_paths"}
_PATH = re.compile(r"(/[A-Za-z0-9_~-]+(\.[A-Za-z0-9_~-]+)*)+")
_PATHS_OF_ONE = ("extra_transaction_path", "extra_payment_path")
_BRACES = re.compile(r"/\{\w+\}(?=/|$)")

# Names that stand in one query or one body, and the members that the specification gives that body: all must differ.
_TOGETHER: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
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


def problems(dialect: "Dialect") -> Iterator[str]:
    """Yield everything that makes a dialect useless."""
    for point in fields(dialect):
        yield from _of_value(point.name, getattr(dialect, point.name))
    yield from _of_choices(dialect)
    yield from _of_statuses(dialect)
    yield from _of_refusals(dialect)
    yield from _of_tables(dialect)
    yield from _of_names(dialect)


def _of_value(name: str, value: object) -> Iterator[str]:
    match value:
        case str() if name.endswith("_path"):
            yield from _of_path(name, value)
        case str() if not value or value != value.strip():
            yield f"{name}: a name is needed, without spaces around it."
        case () if name not in _MAY_BE_EMPTY and name not in _MAY_BE_DATA_ITSELF:
            yield f"{name}: at least one is needed."
        case tuple():
            for item in value:
                if item != () or name not in _MAY_BE_DATA_ITSELF:
                    yield from _of_value(name, item)


def _of_path(name: str, path: str) -> Iterator[str]:
    """A path is plain segments; where one thing is read by its id, one segment in braces stands for the id.

    None may hold the word that makes GET /payment/resolve of a read, nor anything that leads to it around a corner.
    """
    plain, places = _BRACES.subn("/id", path) if name in _PATHS_OF_ONE else (path, 0)
    if not _PATH.fullmatch(plain):
        yield f"{name}: a path is like /user/api-keys, without a query."
    if name in _PATHS_OF_ONE and places != 1:
        yield f"{name}: one segment of the path is for the id, as in /transaction/{{transactionId}}."
    if "resolve" in path.casefold():
        yield f"{name}: no path may hold the word resolve, because GET /payment/resolve moves money."


def _of_choices(dialect: "Dialect") -> Iterator[str]:
    for name, choices in _CHOICES.items():
        if getattr(dialect, name) not in choices:
            yield f"{name} is one of {', '.join(choices)}."
    strange = [name for name in dialect.capabilities if name not in CAPABILITIES]
    if strange:
        yield f"capabilities: there is no {strange[0]!r}; there are {', '.join(CAPABILITIES)}."
    if dialect.first_page < 0:
        yield "first_page is no less than zero."


def _of_statuses(dialect: "Dialect") -> Iterator[str]:
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


def _of_refusals(dialect: "Dialect") -> Iterator[str]:
    kinds = {
        "refusal_patterns": dialect.refusal_patterns,
        "refusal_statuses": dialect.refusal_statuses.values(),
    }
    for name, named in kinds.items():
        if not set(named) <= set(REFUSALS):
            yield f"{name}: the kinds of refusal are {', '.join(REFUSALS)}."
    for pattern in dialect.refusal_patterns.values():
        try:
            re.compile(pattern)
        except re.error as exc:
            yield f"refusal_patterns: {pattern!r} is no pattern ({exc})."


def _of_tables(dialect: "Dialect") -> Iterator[str]:
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


def _of_names(dialect: "Dialect") -> Iterator[str]:
    for points, taken in _TOGETHER:
        used: dict[str, str] = dict.fromkeys(taken, "the specification")
        for name in points:
            spelling: Any = getattr(dialect, name)
            if spelling in used:
                yield f"{name}: {spelling} is taken, in the same place, by {used[spelling]}."
            used[spelling] = name
