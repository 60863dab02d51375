"""The provider profile: every point that the specification leaves open, in one validated object.

`PROFILES` has the two named ones. A deployment overrides single points with `overridden({...})` and changes no
code. An invalid profile is rejected at start-up, because in the middle of a call it could lose the outcome of a
transfer. Not part of the profile: the `X-User-Version` header (`GatewayConfig.user_version`) and the webhook
signature scheme (`payments_gateway.webhooks`). Where the specification is explicit, it takes precedence.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, model_validator

from payments_gateway.errors import gettext_noop as _
from payments_gateway.profile.values import (
    CAPABILITIES,
    REJECTION_PATTERNS,
    REPEAT_PATTERN,
    AtLeastOne,
    Capability,
    ClientErrorStatus,
    Duration,
    ErrorStatus,
    EventKind,
    LowerCase,
    Name,
    Names,
    NonEmpty,
    ObjectPaths,
    ObjectPathsOrData,
    OtpType,
    Pattern,
    RejectionKind,
    SuccessStatus,
    Table,
    UrlPath,
    UrlPathWithId,
)


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


def _point(default: Any, confidence: str, where: str, why: str) -> Any:
    return Field(
        default=default, description=why, json_schema_extra={"confidence": confidence, "where": where}
    )


_TRANSACTION_SECTION = "Endpoints, GET /transaction"
_WALLET_SECTION = "Endpoints, GET /wallet"
_ACCOUNT_SECTION = "Endpoints, GET {base_url_v4}/account"
_OTP_SECTION = "Authentication, 7: OTP token"
_BEYOND_SPECIFICATION = "nowhere: beyond the specification"
_KEYS_SECTION = "Authentication, 8: key management"
_WALLET_RESOURCE = "Resources, Wallet"
_BANK_RESOURCE = "Resources, Bank account resolution result"
_ERRORS_SECTION = "Errors"
_EVENTS_SECTION = "Events"

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


class ProviderProfile(BaseModel):
    """The names and values of requests, responses and webhooks that the specification does not define."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_default=True, hide_input_in_errors=True
    )

    balance_currency_query: Name = _point(
        "currency", "sure", "Endpoints, GET /balance", "Query name: the currency."
    )
    transaction_currency_query: Name = _point(
        "currency", "sure", _TRANSACTION_SECTION, "Query name: the currency."
    )
    transaction_type_query: Name = _point("type", "sure", _TRANSACTION_SECTION, "Query name: the type.")
    transaction_duration_query: Name = _point(
        "duration", "sure", _TRANSACTION_SECTION, "Query name: the duration."
    )
    transaction_page_query: Name = _point("page", "sure", _TRANSACTION_SECTION, "Query name: the page.")
    transaction_per_page_query: Name = _point(
        "limit", "sure", _TRANSACTION_SECTION, "Query name: records per page."
    )
    first_page: NonNegativeInt = _point(1, "hint", _WALLET_SECTION, "Number of the first page of any list.")
    durations: Table[Duration, NonEmpty] = _point(
        {phrase: phrase for phrase in get_args(Duration)},
        "likely",
        "Endpoints, GET /transaction/summary",
        "Durations of the specification -> value sent. By default the same phrases, percent-encoded.",
    )
    wallet_currency_query: Name = _point(
        "currency", "sure", _WALLET_SECTION, "Query name: the cryptocurrency (free text)."
    )
    wallet_network_query: Name = _point(
        "network", "sure", _WALLET_SECTION, "Query name: the crypto network (free text)."
    )
    otp_type_member: Name = _point(
        "otpType",
        "sure",
        "Endpoints, POST /balance/withdraw",
        "Member: the type of one-time code, also in a transfer.",
    )
    otp_type: OtpType = _point(
        "totp",
        "hint",
        _OTP_SECTION,
        "Type of one-time code: totp from an authenticator app, or otp sent by the provider.",
    )
    otp_required: bool = _point(
        True,
        "hint",
        _OTP_SECTION,
        "Whether calls need a one-time code. Some merchants are exempt; others are rejected without one.",
    )
    otp_tolerance_seconds: int = _point(
        30,
        "hint",
        _OTP_SECTION,
        "How long after its step of 30 seconds a code of an authenticator app is still accepted.",
    )
    otp_single_use: bool = _point(
        True, "hint", _OTP_SECTION, "Whether a code is accepted once, or repeatedly while it is valid."
    )
    transfer_currency_member: Name = _point(
        "currency",
        "sure",
        "Endpoints, POST /balance/transfer",
        "Member: the currency of a transfer, NGN or USD.",
    )
    service_username_member: Name = _point(
        "serviceUsername",
        "likely",
        "Endpoints, POST /payment",
        "Member: the username that a payment is paid out to, as in the specification; may differ in practice.",
    )
    payment_types: tuple[Name, ...] = _point(
        ("profile", "bank"),
        "hint",
        "Resources, Payment",
        "Payment types offered in forms; any other text is sent unchanged.",
    )
    payment_countries: AtLeastOne[Name] = _point(
        ("NG",),
        "hint",
        "Endpoints, POST /payment",
        "Countries of bank accounts that forms offer, as sent. ISO 3166 codes are shown by name.",
    )
    transfer_networks: AtLeastOne[Name] = _point(
        ("TRC20", "ERC20", "BEP20", "POLYGON"),
        "unknown",
        "Endpoints, POST /wallet/transfer",
        "Networks of crypto transfers that forms offer, unless `wallet_config` is among the capabilities.",
    )
    wallet_types: tuple[Name, ...] = _point(
        (), "unknown", "Endpoints, POST /wallet/transfer", "Wallet types that forms offer; typed if none."
    )
    account_name_query: Name = _point(
        "accountName", "likely", _ACCOUNT_SECTION, "Query name: the name of the account."
    )
    account_page_query: Name = _point("page", "likely", _ACCOUNT_SECTION, "Query name: the page.")
    account_per_page_query: Name = _point(
        "perPage", "likely", _ACCOUNT_SECTION, "Query name: accounts per page."
    )
    account_currencies: AtLeastOne[Name] = _point(
        ("NGN", "USD"),
        "likely",
        "Endpoints, PUT {base_url_v4}/account",
        "Currencies in which the provider opens bank accounts.",
    )
    capabilities: tuple[Capability, ...] = _point(
        (),
        "hint",
        _BEYOND_SPECIFICATION,
        f"Which of these optional reads the provider has: {', '.join(CAPABILITIES)}. None is required.",
    )
    extra_banks_path: UrlPath = _point(
        "/bank/supported", "hint", _BEYOND_SPECIFICATION, "Path of: the banks."
    )
    extra_rates_path: UrlPath = _point("/currency/rate", "hint", _BEYOND_SPECIFICATION, "Path of: the rates.")
    extra_currencies_path: UrlPath = _point(
        "/currency/supported", "hint", _BEYOND_SPECIFICATION, "Path of: the currencies."
    )
    extra_minimums_path: UrlPath = _point(
        "/currency/minimum-allowed", "hint", _BEYOND_SPECIFICATION, "Path of: the minimum amounts."
    )
    extra_wallet_config_path: UrlPath = _point(
        "/wallet/supported/config", "hint", _BEYOND_SPECIFICATION, "Path of: the networks of wallets."
    )
    extra_transaction_path: UrlPathWithId = _point(
        "/transaction/{transactionId}",
        "hint",
        _BEYOND_SPECIFICATION,
        "Path of: one transaction; its id replaces the segment in braces.",
    )
    extra_payment_path: UrlPathWithId = _point(
        "/payment/{paymentId}",
        "hint",
        _BEYOND_SPECIFICATION,
        "Path of: one payment; its id replaces the segment in braces.",
    )
    extra_country_query: Name = _point(
        "country", "hint", _BEYOND_SPECIFICATION, "Banks: query name of the country."
    )
    extra_credentials: bool = _point(
        True,
        "hint",
        _BEYOND_SPECIFICATION,
        "Whether banks, rates, currencies, minimums and wallet_config are read with the credential headers.",
    )
    key_base: Literal["v2", "v4"] = _point(
        "v4", "likely", _KEYS_SECTION, "Base address of the five operations: v2 or v4."
    )
    key_generate_path: UrlPath = _point(
        "/user/api-key", "sure", _KEYS_SECTION, "Path of: generate. Also in use: /user/apikey."
    )
    key_list_path: UrlPath = _point(
        "/user/api-keys", "sure", _KEYS_SECTION, "Path of: list. Also in use: /user/apikeys."
    )
    key_scopes_path: UrlPath = _point(
        "/user/api-key/scopes",
        "sure",
        _KEYS_SECTION,
        "Path of: view scopes. Also in use: /user/apikey-scope.",
    )
    key_invalidate_path: UrlPath = _point(
        "/user/api-key/invalidate",
        "sure",
        _KEYS_SECTION,
        "Path of: invalidate. Also in use: /user/invalidate-apikey.",
    )
    key_delete_path: UrlPath = _point(
        "/user/api-key", "sure", _KEYS_SECTION, "Path of: delete. Also in use: /user/apikey."
    )
    key_name_member: Name = _point("keyname", "likely", _KEYS_SECTION, "Generate: the name of the new key.")
    key_scope_member: Name = _point(
        "scope", "likely", _KEYS_SECTION, "Generate: the scope of the new key, a code of the scopes."
    )
    key_replaced_member: Name = _point(
        "apikey", "likely", _KEYS_SECTION, "Generate: the old key that the new one replaces."
    )
    key_days_member: Name = _point(
        "expirationInDays", "likely", _KEYS_SECTION, "Generate: the lifetime of the new key in days."
    )
    key_months_member: Name = _point(
        "expirationInMonths", "likely", _KEYS_SECTION, "Generate: the lifetime of the new key in months."
    )
    key_otp_member: Name = _point("otp", "likely", _KEYS_SECTION, "Generate: the one-time code.")
    key_invalidate_member: Name = _point(
        "apikey", "likely", _KEYS_SECTION, "Invalidate: the key to invalidate."
    )
    key_hash_query: Name = _point(
        "apikeyHash", "likely", _KEYS_SECTION, "Delete: query name of the short hash of the key."
    )
    created_key_paths: ObjectPaths = _point(
        (("key",), ("apikey",)),
        "likely",
        _KEYS_SECTION,
        "Path in `data` to a new key, which is shown only once.",
    )
    created_key_expiry_paths: ObjectPaths = _point(
        (("expires",), ("expiration",), ("Expiration",)),
        "hint",
        _KEYS_SECTION,
        "Path in `data` to the expiry of a new key.",
    )
    key_list_paths: ObjectPathsOrData = _point(
        (("Apikeys",), ("apikeys",), ()),
        "likely",
        _KEYS_SECTION,
        "Path in `data` to the list of keys: a member, or `data` itself.",
    )
    listed_key_hash_members: Names = _point(
        ("Apikey",), "likely", _KEYS_SECTION, "List: member with the short hash of a key (required)."
    )
    listed_key_name_members: Names = _point(
        ("Keyname",), "likely", _KEYS_SECTION, "List: member with the name of a key."
    )
    listed_key_username_members: Names = _point(
        ("Username",), "likely", _KEYS_SECTION, "List: member with the username of the owner."
    )
    listed_key_expirable_members: Names = _point(
        ("Expirable",), "likely", _KEYS_SECTION, "List: member that says whether a key expires."
    )
    listed_key_expiry_members: Names = _point(
        ("Expiration",), "likely", _KEYS_SECTION, "List: member with the expiry of a key."
    )
    listed_key_deletion_members: Names = _point(
        ("DeletedAt",),
        "likely",
        _KEYS_SECTION,
        "List: member with the time at which a key was deleted, if it was.",
    )
    success_statuses: AtLeastOne[SuccessStatus] = _point(
        (200, 201),
        "sure",
        "Endpoints",
        "HTTP statuses of a success. The specification shows 200; 201 is tolerated; no other is trusted.",
    )
    balances_members: Names = _point(
        ("balances", "balance"), "likely", "Resources, Balance entry", "Member of `data` with the balances."
    )
    balance_currency_members: Names = _point(
        ("toCurrency", "currency"),
        "likely",
        "Resources, Balance entry",
        "Member with the currency of a balance.",
    )
    withdrawal_id_paths: ObjectPaths = _point(
        (("withdrawal", "transactionId"), ("transferDetail", "transactionId"), ("transactionId",)),
        "hint",
        "Endpoints, POST /balance/withdraw",
        "Path in `data` to the transaction id of a withdrawal. It is often missing.",
    )
    withdrawal_status_paths: ObjectPaths = _point(
        (("withdrawal", "status"), ("transferDetail", "status"), ("status",)),
        "hint",
        "Endpoints, POST /balance/withdraw",
        "Path in `data` to the status of a withdrawal, next to its transaction id.",
    )
    holder_name_paths: ObjectPaths = _point(
        (("accountname",), ("accountName",)),
        "likely",
        _BANK_RESOURCE,
        "Path to the name of the account holder (required).",
    )
    bank_code_paths: ObjectPaths = _point(
        (("code",), ("data", "code")),
        "hint",
        _BANK_RESOURCE,
        "Path to the bank code: top-level as in the specification, or nested.",
    )
    bank_name_paths: ObjectPaths = _point(
        (("name",), ("data", "name")),
        "hint",
        _BANK_RESOURCE,
        "Path to the bank name: top-level as in the specification, or nested.",
    )
    wallet_address_members: Names = _point(
        ("address", "id"),
        "unknown",
        _WALLET_RESOURCE,
        "Member with the address in an element of `addresses`.",
    )
    wallet_network_members: Names = _point(
        ("network", "type"),
        "unknown",
        _WALLET_RESOURCE,
        "Member with the network in an element of `addresses`.",
    )
    wallet_address_currency_members: Names = _point(
        ("currency",), "unknown", _WALLET_RESOURCE, "Member with the currency in an element of `addresses`."
    )
    account_list_paths: ObjectPathsOrData = _point(
        (("accounts",), ()),
        "likely",
        _ACCOUNT_SECTION,
        "Path in `data` to the list of accounts: a member, or `data` itself.",
    )
    accounts_by_currency: bool = _point(
        False,
        "likely",
        _ACCOUNT_SECTION,
        "Whether `data` is a map by currency, so that an empty object means no account. Both shapes are read.",
    )
    account_assets_members: Names = _point(
        ("assets", "asset"),
        "likely",
        _ACCOUNT_SECTION,
        "Member with the assets of an account, or of a currency: a list or a map.",
    )
    asset_number_members: Names = _point(
        ("id", "accountNumber", "account_number"),
        "likely",
        _ACCOUNT_SECTION,
        "Member of an asset with the account number or address (required).",
    )
    statuses: Table[LowerCase, Literal["fulfilled", "processing", "failed"]] = _point(
        {"fullfiled": "fulfilled", "fulfilled": "fulfilled", "processing": "processing", "failed": "failed"},
        "likely",
        "States and transitions",
        "Status of a transaction in the API -> ours, compared without case. Any other text is kept unchanged.",
    )
    message_members: Names = _point(
        ("message",), "likely", _ERRORS_SECTION, "Member with the message of an error."
    )
    detail_members: tuple[Name, ...] = _point(
        ("errors",), "likely", _ERRORS_SECTION, "Member with the details of an error."
    )
    retry_statuses: tuple[ErrorStatus, ...] = _point(
        (429, 502, 503, 504), "likely", _ERRORS_SECTION, "HTTP statuses after which a read is retried."
    )
    uncertain_statuses: Table[ClientErrorStatus, str] = _point(
        {
            408: _("the provider timed out and may have read the whole request"),
            409: _("the conflict may be with this very request, already executed"),
            424: _("another system of the provider failed, perhaps after the money moved"),
            425: _("the request arrived too early, and a proxy may send it again"),
            499: _("a proxy closed the connection while the provider was still processing the request"),
        },
        "unknown",
        _ERRORS_SECTION,
        "4xx statuses that do not prove that nothing was executed -> reason. A money call then has an unknown outcome.",
    )
    rejection_patterns: Table[RejectionKind, Pattern] = _point(
        REJECTION_PATTERNS,
        "likely",
        _ERRORS_SECTION,
        "Kind of rejection -> pattern of its message, tried in this order, before the HTTP status (the same rejection "
        "occurs with several statuses).",
    )
    repeat_pattern: Pattern = _point(
        REPEAT_PATTERN,
        "unknown",
        _ERRORS_SECTION,
        "Pattern of a rejection that says that the request, its reference or its one-time code arrived before. A proxy "
        "may then have sent the request twice, and the first one was executed: the outcome is unknown. Not of typed "
        "codes, which a person may have used elsewhere, nor of those accepted repeatedly (`otp_single_use`).",
    )
    rejection_statuses: Table[ClientErrorStatus, RejectionKind] = _point(
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
    delivery_event_member: Name = _point("event", "likely", _EVENTS_SECTION, "Member with the kind of event.")
    delivery_data_member: Name = _point(
        "data", "likely", _EVENTS_SECTION, "Member with the data, which is what the signature covers."
    )
    delivery_signature_member: Name = _point(
        "signature", "likely", _EVENTS_SECTION, "Member with the signature of the data, in base64."
    )
    event_kinds: Table[LowerCase, EventKind] = _point(
        {kind.value: kind for kind in EventKind},
        "likely",
        _EVENTS_SECTION,
        "Kind of event in the webhook -> ours, compared without case. Any other text is kept unchanged.",
    )
    delivery_session_members: Names = _point(
        ("sessionId",),
        "likely",
        _EVENTS_SECTION,
        "Data of a transaction event: the session id of the bank transfer.",
    )
    delivery_reference_members: Names = _point(
        ("reference",),
        "likely",
        _EVENTS_SECTION,
        "Data of an event: the merchant's reference, by which a payment is found.",
    )
    delivery_failure_members: Names = _point(
        ("failureReason",), "likely", _EVENTS_SECTION, "Data of a transaction event: the reason of a failure."
    )
    delivery_resolution_members: Names = _point(
        ("resolveId",), "likely", _EVENTS_SECTION, "Data of a payment event: the id by which it is resolved."
    )

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        for points, taken in _NAMES_USED_TOGETHER:
            used: dict[str, str] = dict.fromkeys(taken, "the specification")
            for name in points:
                spelling = getattr(self, name)
                if spelling in used:
                    raise ValueError(f"{name}: {spelling} is taken, in the same place, by {used[spelling]}.")
                used[spelling] = name
        return self

    def status(self, text: str | None) -> str:
        """Translate a status of the API to ours; an unknown one is returned unchanged."""
        text = (text or "").strip()
        return self.statuses.get(text.lower(), text)

    def event_kind(self, text: str) -> EventKind | None:
        """Return the kind of event for the text in a webhook, or None for an unknown one."""
        return self.event_kinds.get(text.strip().lower())

    def overridden(self, points: Mapping[str, Any]) -> Self:
        """Return a copy with some points replaced, given as a deployment writes them (types of JSON or TOML).

        Raises ValueError, which names the point, for an unknown point or a value of another shape.
        """
        unknown = sorted(set(points) - set(type(self).model_fields))
        if unknown:
            raise ValueError(f"No such point in the profile: {', '.join(unknown)}.")
        # A type that JSON does not have, such as the dates of TOML, becomes null, which no point accepts.
        written = json.dumps(
            dict(self) | dict(points),
            default=lambda value: dict(value) if isinstance(value, Mapping) else None,
        )
        try:
            return self.model_validate_json(written)
        except ValidationError as exc:
            problem = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, problem["loc"]))
        message = problem["msg"].removeprefix("Value error, ")
        raise ValueError(f"{place}: {message}" if place else message)

    def open_points(self) -> Iterator[OpenPoint]:
        """Yield each point with its documentation: requests first, webhooks last.

        The version header is not among them: it is a setting, `GatewayConfig.user_version`.
        """
        for name, field in type(self).model_fields.items():
            documented: Any = field.json_schema_extra
            yield OpenPoint(name, getattr(self, name), why=field.description or "", **documented)


ProfileName = Literal["specification", "published"]

#: What the published API of the provider behind the specification does differently.
_PUBLISHED: Mapping[str, Any] = {
    "key_generate_path": "/user/apikey",
    "key_list_path": "/user/apikeys",
    "key_scopes_path": "/user/apikey-scope",
    "key_invalidate_path": "/user/invalidate-apikey",
    "key_delete_path": "/user/apikey",
    "service_username_member": "coinprofileUsername",
    "account_currencies": ["NGN", "KES"],
    "accounts_by_currency": True,
    "capabilities": ["banks", "rates", "currencies", "minimums", "wallet_config"],
    "extra_credentials": False,
    "otp_required": False,
}

PROFILES: Mapping[ProfileName, ProviderProfile] = {
    "specification": ProviderProfile(),
    "published": ProviderProfile().overridden(_PUBLISHED),
}
"""The named profiles. The shapes of their responses are in `openapi.yaml`; the client reads both in either profile."""
