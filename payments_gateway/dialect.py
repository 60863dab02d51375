"""What the specification leaves open, as data: our default for each point, how sure it is, where, and why.

The specification wins wherever it speaks. Each field below is one open point; a deployment replaces the
ones that turn out differently with `Dialect().overridden({...})` and changes no code. A path such as
("withdrawal", "transactionId") leads through nested objects; the empty path is where the search begins.
"""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any, Self, get_type_hints

from payments_gateway._dialect_rules import CAPABILITIES, OTP_TYPES, Capability, OtpType, problems
from payments_gateway._points import OpenPoint, point, shaped

__all__ = ["CAPABILITIES", "OTP_TYPES", "Capability", "Dialect", "OtpType"]

_ADDRESSES = "Resources, Wallet"
_BANK = "Resources, Bank account resolution result"
_TRANSACTION = "Endpoints, GET /transaction"
_WALLET = "Endpoints, GET /wallet"
_ACCOUNT = "Endpoints, GET {base_url_v4}/account"
_KEYS = "Authentication, 8: key management"
_SECOND_FACTOR = "Authentication, 7: OTP token"
_ERRORS = "Errors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The names and values of the wire that the specification does not show."""

    # Requests
    balance_currency_query: str = point(
        "currency", "sure", "Endpoints, GET /balance", "Query name: the currency."
    )
    transaction_currency_query: str = point("currency", "sure", _TRANSACTION, "Query name: the currency.")
    transaction_type_query: str = point("type", "sure", _TRANSACTION, "Query name: the type.")
    transaction_duration_query: str = point("duration", "sure", _TRANSACTION, "Query name: the duration.")
    transaction_page_query: str = point("page", "sure", _TRANSACTION, "Query name: the page.")
    transaction_per_page_query: str = point("limit", "sure", _TRANSACTION, "Query name: records per page.")
    first_page: int = point(1, "hint", _WALLET, "Number that the service gives the first page of any list.")
    durations: Mapping[str, str] = point(
        {phrase: phrase for phrase in ("one day", "one week", "one month", "one year")},
        "likely",
        "Endpoints, GET /transaction/summary",
        "Durations of the specification -> what is sent. The literal phrases, percent-encoded.",
    )
    wallet_currency_query: str = point(
        "currency", "sure", _WALLET, "Query name: the cryptocurrency, any text."
    )
    wallet_network_query: str = point("network", "sure", _WALLET, "Query name: the crypto network, any text.")
    otp_type_member: str = point(
        "otpType",
        "sure",
        "Endpoints, POST /balance/withdraw",
        "OTP-type member, also of a transfer.",
    )
    otp_type: str = point(
        "totp",
        "hint",
        _SECOND_FACTOR,
        "Which token: totp of an authenticator app, otp sent by the service.",
    )
    token_required: bool = point(
        True,
        "hint",
        _SECOND_FACTOR,
        "Some merchants call without a token; the others are refused without one.",
    )
    transfer_currency_member: str = point(
        "currency", "sure", "Endpoints, POST /balance/transfer", "Currency member of a transfer, NGN or USD."
    )
    service_username_member: str = point(
        "serviceUsername",
        "likely",
        "Endpoints, POST /payment",
        "As shown; it may bear another name upstream.",
    )
    payment_types: tuple[str, ...] = point(
        ("profile", "bank"),
        "hint",
        "Resources, Payment",
        "Offered to people; any other text is sent as it is.",
    )
    account_name_query: str = point("accountName", "likely", _ACCOUNT, "Query name: the name of the account.")
    account_page_query: str = point("page", "likely", _ACCOUNT, "Query name: the page.")
    account_per_page_query: str = point("perPage", "likely", _ACCOUNT, "Query name: accounts per page.")

    # Reads beyond the specification
    capabilities: tuple[Capability, ...] = point(
        (),
        "hint",
        "nowhere: beyond the specification",
        f"Which of these reads the service has: {', '.join(CAPABILITIES)}. Nothing needs them.",
    )

    # Key management (its five operations have no shape in the specification)
    key_base: str = point("v4", "likely", _KEYS, "Base address of the five operations: v2 or v4.")
    key_generate_path: str = point(
        "/user/api-key", "sure", _KEYS, "Path of: generate. In use, too: /user/apikey."
    )
    key_list_path: str = point("/user/api-keys", "sure", _KEYS, "Path of: list. In use, too: /user/apikeys.")
    key_scopes_path: str = point(
        "/user/api-key/scopes", "sure", _KEYS, "Path of: view scopes. In use, too: /user/apikey-scope."
    )
    key_invalidate_path: str = point(
        "/user/api-key/invalidate",
        "sure",
        _KEYS,
        "Path of: invalidate. In use, too: /user/invalidate-apikey.",
    )
    key_delete_path: str = point(
        "/user/api-key", "sure", _KEYS, "Path of: delete. In use, too: /user/apikey."
    )
    key_name_member: str = point("keyname", "likely", _KEYS, "Generate: the name of the new key.")
    key_scope_member: str = point("scope", "likely", _KEYS, "Generate: what it may do, a code of the scopes.")
    key_replaced_member: str = point(
        "apikey", "likely", _KEYS, "Generate: the old key that the new one replaces."
    )
    key_days_member: str = point("expirationInDays", "likely", _KEYS, "Generate: the new key's life in days.")
    key_months_member: str = point(
        "expirationInMonths", "likely", _KEYS, "Generate: the new key's life in months."
    )
    key_otp_member: str = point("otp", "likely", _KEYS, "Generate: the one-time token.")
    key_invalidate_member: str = point("apikey", "likely", _KEYS, "Invalidate: the key.")
    key_hash_query: str = point("apikeyHash", "likely", _KEYS, "Delete: query name of the key's short hash.")

    # Answers
    success_statuses: tuple[int, ...] = point(
        (200, 201), "sure", "Endpoints", "200 is shown, 201 tolerated; no other is trusted."
    )
    balances_members: tuple[str, ...] = point(
        ("balances", "balance"), "likely", "Resources, Balance entry", "Where the balances are in `data`."
    )
    balance_currency_members: tuple[str, ...] = point(
        ("toCurrency", "currency"),
        "likely",
        "Resources, Balance entry",
        "What names the currency of a balance.",
    )
    withdrawal_id_paths: tuple[tuple[str, ...], ...] = point(
        (("withdrawal", "transactionId"), ("transferDetail", "transactionId"), ("transactionId",)),
        "hint",
        "Endpoints, POST /balance/withdraw",
        "Where in `data` a withdrawal may name its transaction. Absence is normal.",
    )
    withdrawal_status_paths: tuple[tuple[str, ...], ...] = point(
        (("withdrawal", "status"), ("transferDetail", "status"), ("status",)),
        "hint",
        "Endpoints, POST /balance/withdraw",
        "Where in `data` a withdrawal may say its status, beside its transaction.",
    )
    transfer_detail_paths: tuple[tuple[str, ...], ...] = point(
        (("transferDetail",), ()),
        "likely",
        "Endpoints, POST /balance/convert",
        "Where in `data` a conversion or a transfer of any kind is told: nested, or `data` itself.",
    )
    bank_code_paths: tuple[tuple[str, ...], ...] = point(
        (("code",), ("data", "code")),
        "hint",
        _BANK,
        "The bank's code, flat as shown or nested.",
    )
    bank_name_paths: tuple[tuple[str, ...], ...] = point(
        (("name",), ("data", "name")),
        "hint",
        _BANK,
        "The bank's name, flat as shown or nested.",
    )
    wallet_paths: tuple[tuple[str, ...], ...] = point(
        (("wallet",), ("data", "wallet"), ("data",)),
        "hint",
        "Resources, Response envelopes",
        "Where the wallet is in the answer: as shown, or in the envelope of the other operations.",
    )
    wallet_address_members: tuple[str, ...] = point(
        ("address", "id"),
        "unknown",
        _ADDRESSES,
        "What holds the address in an element of `addresses`.",
    )
    wallet_network_members: tuple[str, ...] = point(
        ("network", "type"),
        "unknown",
        _ADDRESSES,
        "What names the network of an element of `addresses`.",
    )
    wallet_address_currency_members: tuple[str, ...] = point(
        ("currency",), "unknown", _ADDRESSES, "What names the currency of an element of `addresses`."
    )
    account_list_paths: tuple[tuple[str, ...], ...] = point(
        (("accounts",), ()), "likely", _ACCOUNT, "Where in `data` the accounts are: a member, or a bare list."
    )
    account_assets_members: tuple[str, ...] = point(
        ("assets",), "likely", _ACCOUNT, "What holds the per-currency assets of an account, a list or a map."
    )
    created_key_paths: tuple[tuple[str, ...], ...] = point(
        (("key",), ("apikey",)),
        "likely",
        _KEYS,
        "Where in `data` a new key is, the only time that it is shown.",
    )
    created_key_expiry_paths: tuple[tuple[str, ...], ...] = point(
        (("expires",), ("expiration",), ("Expiration",)),
        "hint",
        _KEYS,
        "Where in `data` a new key says when it expires.",
    )
    key_list_paths: tuple[tuple[str, ...], ...] = point(
        (("Apikeys",), ("apikeys",), ()),
        "likely",
        _KEYS,
        "Where in `data` the keys are: a member, or a bare list.",
    )
    statuses: Mapping[str, str] = point(
        {"fullfiled": "fulfilled", "fulfilled": "fulfilled", "processing": "processing", "failed": "failed"},
        "likely",
        "States and transitions",
        "Status of a transaction on the wire -> ours, compared without case. Any other text is kept as it is.",
    )

    # Errors
    message_members: tuple[str, ...] = point(
        ("message",), "likely", _ERRORS, "What holds the words of an error."
    )
    detail_members: tuple[str, ...] = point(
        ("errors",), "likely", _ERRORS, "What lists the details of an error."
    )
    retry_statuses: tuple[int, ...] = point(
        (429, 502, 503, 504), "likely", _ERRORS, "A read answered so is tried again."
    )
    uncertain_statuses: Mapping[int, str] = point(
        {
            408: "the service gave up waiting, and may have read the whole request",
            409: "a conflict may be with this very request, already executed",
            424: "something behind the service failed, perhaps after the money moved",
            425: "the request was taken too early and may be replayed by what stands between",
            499: "what stands between cut the call while the service went on",
        },
        "unknown",
        _ERRORS,
        "Refusals that do not prove that nothing was executed -> why. On a money call the outcome is unknown.",
    )
    refusal_patterns: Mapping[str, str] = point(
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
        _ERRORS,
        "The same refusal is seen under several codes, so its words are read first: kind -> pattern, in this order.",
    )
    refusal_statuses: Mapping[int, str] = point(
        {
            400: "invalid_request",
            401: "credentials",
            403: "credentials",
            404: "not_found",
            422: "invalid_request",
            429: "rate_limited",
        },
        "likely",
        _ERRORS,
        "What a refusal is taken for when its words match no pattern. All of them mean: not executed.",
    )

    def __post_init__(self) -> None:
        """Refuse at once, with ValueError, what would otherwise fail in the middle of a call."""
        for problem in problems(self):
            raise ValueError(problem)

    def status(self, text: str | None) -> str:
        """Return our word for a status of the wire; an unknown one stays as it is."""
        text = (text or "").strip()
        return self.statuses.get(text.lower(), text)

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
        """Yield each point with what is known of it, in the order of the wire."""
        declared: Field[Any]
        for declared in fields(self):
            yield OpenPoint(declared.name, getattr(self, declared.name), **declared.metadata)
