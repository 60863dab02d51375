"""Open points of answers: where in them things are, and the words for a status."""

from collections.abc import Mapping
from dataclasses import dataclass

from payments_gateway.dialect.points import point

_ADDRESSES = "Resources, Wallet"
_BANK = "Resources, Bank account resolution result"
_ACCOUNT = "Endpoints, GET {base_url_v4}/account"


@dataclass(frozen=True, kw_only=True)
class AnswerPoints:
    """The places and words of answers that the specification does not show."""

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
    statuses: Mapping[str, str] = point(
        {"fullfiled": "fulfilled", "fulfilled": "fulfilled", "processing": "processing", "failed": "failed"},
        "likely",
        "States and transitions",
        "Status of a transaction on the wire -> ours, compared without case. Any other text is kept as it is.",
    )
