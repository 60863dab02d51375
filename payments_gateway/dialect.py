"""What the specification leaves open, as data: our default for each point, how sure it is, and why.

The specification wins wherever it speaks. Each field below is one open point; a deployment replaces the
ones that turn out differently with `Dialect().overridden({...})` and changes no code.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

from payments_gateway.errors import REFUSALS

OtpType = Literal["otp", "totp"]
OTP_TYPES: tuple[OtpType, ...] = get_args(OtpType)

Capability = Literal["banks", "rates", "currencies", "minimums", "wallet_config", "transaction", "payment"]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)


def _open(default: Any, confidence: str, why: str) -> Any:
    """One open point: `confidence` is sure, likely, hint or unknown."""
    return field(default=default, metadata={"confidence": confidence, "why": why})


def _open_table(default: Mapping[Any, str], confidence: str, why: str) -> Any:
    metadata = {"confidence": confidence, "why": why}
    return field(default_factory=lambda: MappingProxyType(dict(default)), metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The names and values of the wire that the specification does not show."""

    # Requests
    balance_currency_query: str = _open("currency", "sure", "Query name of GET /balance.")
    transaction_currency_query: str = _open("currency", "sure", "Query name of GET /transaction.")
    transaction_type_query: str = _open("type", "sure", "Query name of GET /transaction.")
    transaction_duration_query: str = _open("duration", "sure", "Query name of GET /transaction.")
    transaction_page_query: str = _open("page", "sure", "Query name of GET /transaction.")
    transaction_per_page_query: str = _open("limit", "sure", "Query name of GET /transaction.")
    first_page: int = _open(1, "hint", "Number that the service gives the first page.")
    durations: Mapping[str, str] = _open_table(
        {phrase: phrase for phrase in ("one day", "one week", "one month", "one year")},
        "likely",
        "Durations of the specification -> what is sent. The literal phrases, percent-encoded.",
    )
    otp_type_member: str = _open("otpType", "sure", "OTP-type member of a withdrawal.")
    otp_type: str = _open(
        "totp", "hint", "Which token the merchant has: totp of an authenticator app, otp sent by the service."
    )
    token_required: bool = _open(
        True, "hint", "Some merchants call with an API key and no token; the others are refused without one."
    )

    # Reads beyond the specification
    capabilities: tuple[str, ...] = _open(
        (),
        "hint",
        f"Which of these reads the service has: {', '.join(CAPABILITIES)}. Nothing needs them.",
    )

    # Key management (its five operations have no shape in the specification)
    key_generate_path: str = _open(
        "/user/api-key", "sure", "Path of: generate a key. In use, too: /user/apikey."
    )
    key_list_path: str = _open("/user/api-keys", "sure", "Path of: list keys. In use, too: /user/apikeys.")
    key_scopes_path: str = _open(
        "/user/api-key/scopes", "sure", "Path of: view key scopes. In use, too: /user/apikey-scope."
    )
    key_invalidate_path: str = _open(
        "/user/api-key/invalidate", "sure", "Path of: invalidate a key. In use, too: /user/invalidate-apikey."
    )
    key_delete_path: str = _open("/user/api-key", "sure", "Path of: delete a key. In use, too: /user/apikey.")

    # Answers
    success_statuses: tuple[int, ...] = _open(
        (200, 201), "sure", "200 is shown, 201 tolerated; no other is trusted."
    )
    balances_members: tuple[str, ...] = _open(
        ("balances", "balance"), "likely", "Where the balances are in `data`."
    )
    balance_currency_members: tuple[str, ...] = _open(
        ("toCurrency", "currency"), "likely", "What names the currency of a balance."
    )
    withdrawal_id_paths: tuple[tuple[str, ...], ...] = _open(
        (("withdrawal", "transactionId"), ("transferDetail", "transactionId"), ("transactionId",)),
        "hint",
        "Where in `data` a withdrawal may name its transaction. Absence is normal.",
    )
    withdrawal_status_paths: tuple[tuple[str, ...], ...] = _open(
        (("withdrawal", "status"), ("transferDetail", "status"), ("status",)),
        "hint",
        "Where in `data` a withdrawal may say its status, beside its transaction.",
    )
    bank_code_paths: tuple[tuple[str, ...], ...] = _open(
        (("code",), ("data", "code")), "hint", "The bank's code, flat as shown or nested."
    )
    bank_name_paths: tuple[tuple[str, ...], ...] = _open(
        (("name",), ("data", "name")), "hint", "The bank's name, flat as shown or nested."
    )
    statuses: Mapping[str, str] = _open_table(
        {"fullfiled": "fulfilled", "fulfilled": "fulfilled", "processing": "processing", "failed": "failed"},
        "likely",
        "Status of a transaction on the wire -> ours, compared without case. Any other text is kept as it is.",
    )

    # Errors
    message_members: tuple[str, ...] = _open(("message",), "likely", "What holds the words of an error.")
    detail_members: tuple[str, ...] = _open(("errors",), "likely", "What lists the details of an error.")
    retry_statuses: tuple[int, ...] = _open(
        (429, 502, 503, 504), "likely", "A read answered so is tried again."
    )
    uncertain_statuses: Mapping[int, str] = _open_table(
        {
            408: "the service gave up waiting, and may have read the whole request",
            409: "a conflict may be with this very request, already executed",
            424: "something behind the service failed, perhaps after the money moved",
            425: "the request was taken too early and may be replayed by what stands between",
            499: "what stands between cut the call while the service went on",
        },
        "unknown",
        "Refusals that do not prove that nothing was executed -> why. On a money call the outcome is unknown.",
    )
    refusal_patterns: Mapping[str, str] = _open_table(
        {
            "kyc_required": r"\bkyc\b|know your customer",
            "insufficient_funds": r"insufficient\W+(?:\w+\W+)?(?:funds?|balance)|balance\b.*\b(?:insufficient|too low)"
            r"|(?:funds?|balance)\b.*\bnot (?:enough|sufficient)|not enough (?:funds?|balance|money)",
            "credentials": r"api[\s_-]*(?:key|user|scope)|\b(?:access|bearer|api) token|credential|\bscope\b"
            r"|endpoint (?:is )?disabled",
            "token_refused": r"\b(?:t?otp|2fa|two[\s-]?factor|one[\s-]?time|token|passcode|authenticator)\b"
            r"|(?:verification|security) code",
            "rate_limited": r"too many (?:requests|calls)|rate limit",
        },
        "likely",
        "The same refusal is seen under several codes, so its words are read first: kind -> pattern, in this order.",
    )
    refusal_statuses: Mapping[int, str] = _open_table(
        {
            400: "invalid_request",
            401: "credentials",
            403: "credentials",
            404: "not_found",
            422: "invalid_request",
            429: "rate_limited",
        },
        "likely",
        "What a refusal is taken for when its words match no pattern. All of them mean: not executed.",
    )

    def __post_init__(self) -> None:
        """Refuse at once, with ValueError, what would otherwise fail in the middle of a call."""
        if self.otp_type not in OTP_TYPES:
            raise ValueError(f"otp_type is one of {', '.join(OTP_TYPES)}.")
        for name in self.capabilities:
            if name not in CAPABILITIES:
                raise ValueError(f"capabilities: there is no {name!r}; there are {', '.join(CAPABILITIES)}.")
        for pattern in self.refusal_patterns.values():
            try:
                re.compile(pattern)
            except re.error as exc:
                raise ValueError(f"refusal_patterns: {pattern!r} is no pattern ({exc}).") from exc
        for name in ("refusal_patterns", "refusal_statuses"):
            table = getattr(self, name)
            kinds = table if name == "refusal_patterns" else table.values()
            if not set(kinds) <= set(REFUSALS):
                raise ValueError(f"{name}: the kinds of refusal are {', '.join(REFUSALS)}.")

    def status(self, text: str | None) -> str:
        """Return our word for a status of the wire; an unknown one stays as it is."""
        text = (text or "").strip()
        return self.statuses.get(text.lower(), text)

    def overridden(self, points: Mapping[str, Any]) -> Self:
        """Return this dialect with some points replaced, as a deployment writes them (JSON types).

        Raises ValueError for a point that does not exist and for a value of another shape.
        """
        unknown = sorted(set(points) - {point.name for point in fields(self)})
        if unknown:
            raise ValueError(f"No such point in the dialect: {', '.join(unknown)}.")
        plain = Dialect()
        return replace(
            self, **{name: _like(name, getattr(plain, name), value) for name, value in points.items()}
        )

    def open_points(self) -> Iterator[tuple[str, object, str, str]]:
        """Yield each point as (name, value, confidence, explanation), in the order of the wire."""
        point: Field[Any]
        for point in fields(self):
            yield point.name, getattr(self, point.name), point.metadata["confidence"], point.metadata["why"]


def _like(name: str, default: Any, value: Any) -> Any:
    """Give a value from JSON the shape of the default it replaces: lists become tuples, keys numbers.

    An empty default is one of texts.
    """
    if isinstance(default, tuple) and isinstance(value, (list, tuple)):
        return tuple(_like(name, default[0] if default else "", item) for item in value)
    if isinstance(default, Mapping) and isinstance(value, Mapping):
        first_key, first_item = next(iter(default.items()))
        return MappingProxyType(
            {_key(name, first_key, key): _like(name, first_item, item) for key, item in value.items()}
        )
    if type(value) is not type(default):
        raise ValueError(f"{name} must be like {default!r}.")
    return value


def _key(name: str, default: object, key: object) -> object:
    """JSON writes every key as text; a status is a number."""
    if isinstance(default, str):
        return key
    if not str(key).isdecimal():
        raise ValueError(f"{name} is kept by HTTP status, and {key!r} is none.")
    return int(str(key))
