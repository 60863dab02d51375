"""Open points of what is asked: names in queries and bodies, and the words that are sent."""

from collections.abc import Mapping
from dataclasses import dataclass

from payments_gateway.dialect.points import point
from payments_gateway.dialect.words import DURATIONS

_TRANSACTION = "Endpoints, GET /transaction"
_WALLET = "Endpoints, GET /wallet"
_ACCOUNT = "Endpoints, GET {base_url_v4}/account"
_SECOND_FACTOR = "Authentication, 7: OTP token"


@dataclass(frozen=True, kw_only=True)
class RequestPoints:
    """The names and values of requests that the specification does not show."""

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
        {phrase: phrase for phrase in DURATIONS},
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
