"""What the specification leaves open: each point with its default, confidence, section and meaning.

Where the specification is explicit, it takes precedence. A path such as ("withdrawal", "transactionId") leads
through nested objects; the empty path is the object where the search begins. No configured path may lead to
GET /payment/resolve, which moves money.
"""

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from pydantic import TypeAdapter, ValidationError


class OpenPoint(NamedTuple):
    """One point that the specification leaves open, with our default and its documentation.

    `confidence` is sure, likely, hint or unknown; `why` is its meaning; `where` is the section of the
    specification.
    """

    name: str
    value: object
    confidence: str
    why: str
    where: str


def open_point(default: Any, confidence: str, where: str, why: str) -> Any:
    """Declare an open point as a field of the profile. A mapping as default becomes read-only."""
    metadata = {"confidence": confidence, "where": where, "why": why}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: MappingProxyType(dict(default)), metadata=metadata)
    return field(default=default, metadata=metadata)


def parse_point_value(name: str, kind: Any, value: object) -> Any:
    """Parse a value as written in JSON or TOML. Lists become tuples; keys become numbers where required.

    Nothing else is converted. Raises ValueError, which names the point and the position in it, for another
    shape.
    """
    try:
        read = TypeAdapter(kind).validate_json(json.dumps(value), strict=True)
    except ValidationError as exc:
        problem = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{name}{place and f' at {place}'}: {problem['msg']}.") from None
    except (TypeError, ValueError):  # types that JSON does not have, such as the dates of TOML
        raise ValueError(f"{name}: a {type(value).__name__} can be no value of any point.") from None
    return MappingProxyType(read) if isinstance(read, dict) else read


OtpType = Literal["otp", "totp"]
OTP_TYPES: tuple[OtpType, ...] = get_args(OtpType)

Capability = Literal["banks", "rates", "currencies", "minimums", "wallet_config", "transaction", "payment"]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)

DURATIONS = ("one day", "one week", "one month", "one year")
STATUSES = ("fulfilled", "processing", "failed")


class EventKind(enum.StrEnum):
    """Kinds of event seen so far; there may be others."""

    PAYMENT_CREATED = "payment created"
    PAYMENT_UPDATED = "payment updated"
    TRANSACTION_UPDATED = "transaction updated"
    DEPOSIT = "deposit"
    CONVERT = "convert"
    TRANSFER = "transfer"
    WITHDRAWAL = "withdrawal"
    ONRAMP = "onramp"
    OFFRAMP = "offramp"


_TRANSACTION_SECTION = "Endpoints, GET /transaction"
_WALLET_SECTION = "Endpoints, GET /wallet"
_ACCOUNT_SECTION = "Endpoints, GET {base_url_v4}/account"
_OTP_SECTION = "Authentication, 7: OTP token"


@dataclass(frozen=True, kw_only=True)
class RequestPoints:
    """The names and values of requests that the specification does not define."""

    balance_currency_query: str = open_point(
        "currency", "sure", "Endpoints, GET /balance", "Query name: the currency."
    )
    transaction_currency_query: str = open_point(
        "currency", "sure", _TRANSACTION_SECTION, "Query name: the currency."
    )
    transaction_type_query: str = open_point("type", "sure", _TRANSACTION_SECTION, "Query name: the type.")
    transaction_duration_query: str = open_point(
        "duration", "sure", _TRANSACTION_SECTION, "Query name: the duration."
    )
    transaction_page_query: str = open_point("page", "sure", _TRANSACTION_SECTION, "Query name: the page.")
    transaction_per_page_query: str = open_point(
        "limit", "sure", _TRANSACTION_SECTION, "Query name: records per page."
    )
    first_page: int = open_point(1, "hint", _WALLET_SECTION, "Number of the first page of any list.")
    durations: Mapping[str, str] = open_point(
        {phrase: phrase for phrase in DURATIONS},
        "likely",
        "Endpoints, GET /transaction/summary",
        "Durations of the specification -> value sent. By default the same phrases, percent-encoded.",
    )
    wallet_currency_query: str = open_point(
        "currency", "sure", _WALLET_SECTION, "Query name: the cryptocurrency (free text)."
    )
    wallet_network_query: str = open_point(
        "network", "sure", _WALLET_SECTION, "Query name: the crypto network (free text)."
    )
    otp_type_member: str = open_point(
        "otpType",
        "sure",
        "Endpoints, POST /balance/withdraw",
        "Member: the type of one-time code, also in a transfer.",
    )
    otp_type: str = open_point(
        "totp",
        "hint",
        _OTP_SECTION,
        "Type of one-time code: totp from an authenticator app, or otp sent by the provider.",
    )
    token_required: bool = open_point(
        True,
        "hint",
        _OTP_SECTION,
        "Whether calls need a one-time code. Some merchants are exempt; others are rejected without one.",
    )
    transfer_currency_member: str = open_point(
        "currency",
        "sure",
        "Endpoints, POST /balance/transfer",
        "Member: the currency of a transfer, NGN or USD.",
    )
    service_username_member: str = open_point(
        "serviceUsername",
        "likely",
        "Endpoints, POST /payment",
        "Member: the username that a payment is paid out to, as in the specification; may differ in practice.",
    )
    payment_types: tuple[str, ...] = open_point(
        ("profile", "bank"),
        "hint",
        "Resources, Payment",
        "Payment types offered in forms; any other text is sent unchanged.",
    )
    account_name_query: str = open_point(
        "accountName", "likely", _ACCOUNT_SECTION, "Query name: the name of the account."
    )
    account_page_query: str = open_point("page", "likely", _ACCOUNT_SECTION, "Query name: the page.")
    account_per_page_query: str = open_point(
        "perPage", "likely", _ACCOUNT_SECTION, "Query name: accounts per page."
    )


_BEYOND_SPECIFICATION = "nowhere: beyond the specification"


@dataclass(frozen=True, kw_only=True)
class ExtraPoints:
    """The reads beyond the specification, all off by default."""

    capabilities: tuple[Capability, ...] = open_point(
        (),
        "hint",
        _BEYOND_SPECIFICATION,
        f"Which of these optional reads the provider has: {', '.join(CAPABILITIES)}. None is required.",
    )
    extra_banks_path: str = open_point(
        "/bank/supported", "hint", _BEYOND_SPECIFICATION, "Path of: the banks."
    )
    extra_rates_path: str = open_point("/currency/rate", "hint", _BEYOND_SPECIFICATION, "Path of: the rates.")
    extra_currencies_path: str = open_point(
        "/currency/supported", "hint", _BEYOND_SPECIFICATION, "Path of: the currencies."
    )
    extra_minimums_path: str = open_point(
        "/currency/minimum-allowed", "hint", _BEYOND_SPECIFICATION, "Path of: the minimum amounts."
    )
    extra_wallet_config_path: str = open_point(
        "/wallet/supported/config", "hint", _BEYOND_SPECIFICATION, "Path of: the networks of wallets."
    )
    extra_transaction_path: str = open_point(
        "/transaction/{transactionId}",
        "hint",
        _BEYOND_SPECIFICATION,
        "Path of: one transaction; its id replaces the segment in braces.",
    )
    extra_payment_path: str = open_point(
        "/payment/{paymentId}",
        "hint",
        _BEYOND_SPECIFICATION,
        "Path of: one payment; its id replaces the segment in braces.",
    )
    extra_country_query: str = open_point(
        "country", "hint", _BEYOND_SPECIFICATION, "Banks: query name of the country."
    )


_KEYS_SECTION = "Authentication, 8: key management"


@dataclass(frozen=True, kw_only=True)
class KeyPoints:
    """Paths, requests and responses of key management, and where a new key is in its response."""

    key_base: str = open_point(
        "v4", "likely", _KEYS_SECTION, "Base address of the five operations: v2 or v4."
    )
    key_generate_path: str = open_point(
        "/user/api-key", "sure", _KEYS_SECTION, "Path of: generate. Also in use: /user/apikey."
    )
    key_list_path: str = open_point(
        "/user/api-keys", "sure", _KEYS_SECTION, "Path of: list. Also in use: /user/apikeys."
    )
    key_scopes_path: str = open_point(
        "/user/api-key/scopes",
        "sure",
        _KEYS_SECTION,
        "Path of: view scopes. Also in use: /user/apikey-scope.",
    )
    key_invalidate_path: str = open_point(
        "/user/api-key/invalidate",
        "sure",
        _KEYS_SECTION,
        "Path of: invalidate. Also in use: /user/invalidate-apikey.",
    )
    key_delete_path: str = open_point(
        "/user/api-key", "sure", _KEYS_SECTION, "Path of: delete. Also in use: /user/apikey."
    )
    key_name_member: str = open_point(
        "keyname", "likely", _KEYS_SECTION, "Generate: the name of the new key."
    )
    key_scope_member: str = open_point(
        "scope", "likely", _KEYS_SECTION, "Generate: the scope of the new key, a code of the scopes."
    )
    key_replaced_member: str = open_point(
        "apikey", "likely", _KEYS_SECTION, "Generate: the old key that the new one replaces."
    )
    key_days_member: str = open_point(
        "expirationInDays", "likely", _KEYS_SECTION, "Generate: the lifetime of the new key in days."
    )
    key_months_member: str = open_point(
        "expirationInMonths", "likely", _KEYS_SECTION, "Generate: the lifetime of the new key in months."
    )
    key_otp_member: str = open_point("otp", "likely", _KEYS_SECTION, "Generate: the one-time code.")
    key_invalidate_member: str = open_point(
        "apikey", "likely", _KEYS_SECTION, "Invalidate: the key to invalidate."
    )
    key_hash_query: str = open_point(
        "apikeyHash", "likely", _KEYS_SECTION, "Delete: query name of the short hash of the key."
    )
    created_key_paths: tuple[tuple[str, ...], ...] = open_point(
        (("key",), ("apikey",)),
        "likely",
        _KEYS_SECTION,
        "Path in `data` to a new key, which is shown only once.",
    )
    created_key_expiry_paths: tuple[tuple[str, ...], ...] = open_point(
        (("expires",), ("expiration",), ("Expiration",)),
        "hint",
        _KEYS_SECTION,
        "Path in `data` to the expiry of a new key.",
    )
    key_list_paths: tuple[tuple[str, ...], ...] = open_point(
        (("Apikeys",), ("apikeys",), ()),
        "likely",
        _KEYS_SECTION,
        "Path in `data` to the list of keys: a member, or `data` itself.",
    )
    listed_key_hash_members: tuple[str, ...] = open_point(
        ("Apikey",), "likely", _KEYS_SECTION, "List: member with the short hash of a key (required)."
    )
    listed_key_name_members: tuple[str, ...] = open_point(
        ("Keyname",), "likely", _KEYS_SECTION, "List: member with the name of a key."
    )
    listed_key_username_members: tuple[str, ...] = open_point(
        ("Username",), "likely", _KEYS_SECTION, "List: member with the username of the owner."
    )
    listed_key_expirable_members: tuple[str, ...] = open_point(
        ("Expirable",), "likely", _KEYS_SECTION, "List: member that says whether a key expires."
    )
    listed_key_expiry_members: tuple[str, ...] = open_point(
        ("Expiration",), "likely", _KEYS_SECTION, "List: member with the expiry of a key."
    )
    listed_key_deletion_members: tuple[str, ...] = open_point(
        ("DeletedAt",),
        "likely",
        _KEYS_SECTION,
        "List: member with the time at which a key was deleted, if it was.",
    )


_WALLET_RESOURCE = "Resources, Wallet"
_BANK_RESOURCE = "Resources, Bank account resolution result"
_ACCOUNT_LIST_SECTION = "Endpoints, GET {base_url_v4}/account"


@dataclass(frozen=True, kw_only=True)
class ResponsePoints:
    """The locations and values of responses that the specification does not define."""

    success_statuses: tuple[int, ...] = open_point(
        (200, 201),
        "sure",
        "Endpoints",
        "HTTP statuses of a success. The specification shows 200; 201 is tolerated; no other is trusted.",
    )
    balances_members: tuple[str, ...] = open_point(
        ("balances", "balance"), "likely", "Resources, Balance entry", "Member of `data` with the balances."
    )
    balance_currency_members: tuple[str, ...] = open_point(
        ("toCurrency", "currency"),
        "likely",
        "Resources, Balance entry",
        "Member with the currency of a balance.",
    )
    withdrawal_id_paths: tuple[tuple[str, ...], ...] = open_point(
        (("withdrawal", "transactionId"), ("transferDetail", "transactionId"), ("transactionId",)),
        "hint",
        "Endpoints, POST /balance/withdraw",
        "Path in `data` to the transaction id of a withdrawal. It is often missing.",
    )
    withdrawal_status_paths: tuple[tuple[str, ...], ...] = open_point(
        (("withdrawal", "status"), ("transferDetail", "status"), ("status",)),
        "hint",
        "Endpoints, POST /balance/withdraw",
        "Path in `data` to the status of a withdrawal, next to its transaction id.",
    )
    transfer_detail_paths: tuple[tuple[str, ...], ...] = open_point(
        (("transferDetail",), ()),
        "likely",
        "Endpoints, POST /balance/convert",
        "Path in `data` to the detail of a conversion or transfer: nested, or `data` itself.",
    )
    bank_code_paths: tuple[tuple[str, ...], ...] = open_point(
        (("code",), ("data", "code")),
        "hint",
        _BANK_RESOURCE,
        "Path to the bank code: top-level as in the specification, or nested.",
    )
    bank_name_paths: tuple[tuple[str, ...], ...] = open_point(
        (("name",), ("data", "name")),
        "hint",
        _BANK_RESOURCE,
        "Path to the bank name: top-level as in the specification, or nested.",
    )
    wallet_paths: tuple[tuple[str, ...], ...] = open_point(
        (("wallet",), ("data", "wallet"), ("data",)),
        "hint",
        "Resources, Response envelopes",
        "Path in the response to the wallet: as in the specification, or in the usual envelope.",
    )
    wallet_address_members: tuple[str, ...] = open_point(
        ("address", "id"),
        "unknown",
        _WALLET_RESOURCE,
        "Member with the address in an element of `addresses`.",
    )
    wallet_network_members: tuple[str, ...] = open_point(
        ("network", "type"),
        "unknown",
        _WALLET_RESOURCE,
        "Member with the network in an element of `addresses`.",
    )
    wallet_address_currency_members: tuple[str, ...] = open_point(
        ("currency",), "unknown", _WALLET_RESOURCE, "Member with the currency in an element of `addresses`."
    )
    account_list_paths: tuple[tuple[str, ...], ...] = open_point(
        (("accounts",), ()),
        "likely",
        _ACCOUNT_LIST_SECTION,
        "Path in `data` to the list of accounts: a member, or `data` itself.",
    )
    account_assets_members: tuple[str, ...] = open_point(
        ("assets",),
        "likely",
        _ACCOUNT_LIST_SECTION,
        "Member with the assets of an account per currency: a list or a map.",
    )
    statuses: Mapping[str, str] = open_point(
        {"fullfiled": "fulfilled", "fulfilled": "fulfilled", "processing": "processing", "failed": "failed"},
        "likely",
        "States and transitions",
        "Status of a transaction in the API -> ours, compared without case. Any other text is kept unchanged.",
    )


_ERRORS_SECTION = "Errors"


@dataclass(frozen=True, kw_only=True)
class ErrorPoints:
    """How a rejection is distinguished from an unknown outcome, and how rejections are classified."""

    message_members: tuple[str, ...] = open_point(
        ("message",), "likely", _ERRORS_SECTION, "Member with the message of an error."
    )
    detail_members: tuple[str, ...] = open_point(
        ("errors",), "likely", _ERRORS_SECTION, "Member with the details of an error."
    )
    retry_statuses: tuple[int, ...] = open_point(
        (429, 502, 503, 504), "likely", _ERRORS_SECTION, "HTTP statuses after which a read is retried."
    )
    uncertain_statuses: Mapping[int, str] = open_point(
        {
            408: "the service gave up waiting, and may have read the whole request",
            409: "a conflict may be with this very request, already executed",
            424: "something behind the service failed, perhaps after the money moved",
            425: "the request was taken too early and may be replayed by what stands between",
            499: "what stands between cut the call while the service went on",
        },
        "unknown",
        _ERRORS_SECTION,
        "4xx statuses that do not prove that nothing was executed -> reason. A money call then has an unknown outcome.",
    )
    refusal_patterns: Mapping[str, str] = open_point(
        {
            "kyc_required": r"\bkyc\b|know your customer",
            "insufficient_funds": r"insufficient\W+(?:\w+\W+)?(?:funds?|balance)|balance\b.*\b(?:insufficient|too low)"
            r"|(?:funds?|balance)\b.*\bnot (?:enough|sufficient)|not enough (?:funds?|balance|money)",
            "invalid_request": r"\binvalid api scope\b",
            "credentials": r"api[\s_-]*(?:key|user|scope)|\b(?:access|bearer|api) token|credential|\bscope\b"
            r"|endpoint (?:is )?disabled",
            "token_refused": r"\b(?:t?otp|2fa|two[\s-]?factor|one[\s-]?time|token|passcode|authenticator)\b"
            r"|(?:verification|security) code",
            "rate_limited": r"too many (?:requests|calls)|rate limit",
        },
        "likely",
        _ERRORS_SECTION,
        "Kind of rejection -> pattern of its message, tried in this order, before the HTTP status (the same rejection "
        "occurs with several statuses).",
    )
    refusal_statuses: Mapping[int, str] = open_point(
        {
            400: "invalid_request",
            401: "credentials",
            403: "credentials",
            404: "not_found",
            422: "invalid_request",
            429: "rate_limited",
        },
        "likely",
        _ERRORS_SECTION,
        "HTTP status -> kind of rejection, if no pattern matches the message. Every kind means: not executed.",
    )


_EVENTS_SECTION = "Events"


@dataclass(frozen=True, kw_only=True)
class WebhookPoints:
    """The members of a webhook delivery; the specification defines none of them."""

    delivery_event_member: str = open_point(
        "event", "likely", _EVENTS_SECTION, "Member with the kind of event."
    )
    delivery_data_member: str = open_point(
        "data", "likely", _EVENTS_SECTION, "Member with the data, which is what the signature covers."
    )
    delivery_signature_member: str = open_point(
        "signature", "likely", _EVENTS_SECTION, "Member with the signature of the data, in base64."
    )
    event_kinds: Mapping[str, str] = open_point(
        {kind.value: kind.value for kind in EventKind},
        "likely",
        _EVENTS_SECTION,
        "Kind of event in the webhook -> ours, compared without case. Any other text is kept unchanged.",
    )
    news_session_members: tuple[str, ...] = open_point(
        ("sessionId",),
        "likely",
        _EVENTS_SECTION,
        "Data of a transaction event: the session id of the bank transfer.",
    )
    news_reference_members: tuple[str, ...] = open_point(
        ("reference",),
        "likely",
        _EVENTS_SECTION,
        "Data of an event: the merchant's reference, by which a payment is found.",
    )
    news_failure_members: tuple[str, ...] = open_point(
        ("failureReason",), "likely", _EVENTS_SECTION, "Data of a transaction event: the reason of a failure."
    )
    news_resolution_members: tuple[str, ...] = open_point(
        ("resolveId",), "likely", _EVENTS_SECTION, "Data of a payment event: the id by which it is resolved."
    )
