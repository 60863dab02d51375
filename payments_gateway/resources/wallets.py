"""Crypto wallets: deposit addresses, and transfers out of the wallet."""

from functools import partial

from payments_gateway.money import UnreadableError
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.responses import ParsedResponse, first_object, first_text, transfer_detail
from payments_gateway.schemas.wallets import Wallet, WalletAddress, WalletTransfer, WalletTransferDetail
from payments_gateway.transport import Resource

_WALLET_PATHS = (("wallet",), ("data", "wallet"), ("data",))
_WALLET_MEMBERS = {field.alias or name for name, field in Wallet.model_fields.items()}


class Wallets(Resource):
    """The operations under /wallet."""

    def get(self, *, currency: str | None = None, network: str | None = None) -> Wallet:
        """Return the merchant's wallet with its addresses (GET /wallet), of all or one currency and network.

        Both are free text. An address may lack the network or currency it is for. A wallet without addresses
        is valid; a response without any member of a wallet is a failed read. Changes nothing and is retried.
        Raises RejectedError, ReadFailedError. Specification: Endpoints, GET /wallet; Wallet (the shape of
        `addresses` is not shown).
        """
        profile = self._profile
        query = {profile.wallet_currency_query: currency, profile.wallet_network_query: network}
        return self._transport.read("GET", "/wallet", query=query, into=partial(_parse_wallet, profile))

    def transfer(self, request: WalletTransfer) -> WalletTransferDetail:
        """Send crypto from the merchant's wallet to an address (POST /wallet/transfer).

        Network, currency, address, wallet type and memo are free text; the amount is sent as a number.
        Whether the address is valid on the network is not checked here, and perhaps not by the provider
        either. Takes no one-time code.

        Not repeatable, and final: the API has no idempotency key. Raises RejectedError when the provider
        rejected the request, NotSentError when nothing was sent, OutcomeUnknownError otherwise.
        Specification: Endpoints, POST /wallet/transfer; Wallet transfer detail.
        """
        into = partial(_parse_transfer_detail, self._profile)
        return self._transport.send_once("POST", "/wallet/transfer", request.wire(), into=into)


def _parse_transfer_detail(profile: ProviderProfile, response: ParsedResponse) -> WalletTransferDetail:
    found = transfer_detail(response)
    detail = WalletTransferDetail.model_validate(found | {"raw": response.data})
    return detail.model_copy(update={"status": profile.status(detail.status)})


def _parse_wallet(profile: ProviderProfile, response: ParsedResponse) -> Wallet:
    wallet = first_object(response.members, _WALLET_PATHS)
    if not _WALLET_MEMBERS & wallet.keys():
        raise UnreadableError("it says nothing of a wallet")
    elements = wallet.get("addresses") or []
    if not isinstance(elements, list):
        raise UnreadableError("its addresses are no list")
    return Wallet.model_validate(
        wallet | {"addresses": [_parse_address(profile, element) for element in elements]}
    )


def _parse_address(profile: ProviderProfile, element: object) -> WalletAddress:
    """Read an element of `addresses`: the address as a text, or an object with more members."""
    if isinstance(element, str):
        return WalletAddress(address=element)
    if not isinstance(element, dict):
        raise UnreadableError("one of its addresses is neither a text nor an object")
    named = {
        "address": profile.wallet_address_members,
        "network": profile.wallet_network_members,
        "currency": profile.wallet_address_currency_members,
    }
    found = {ours: first_text(element, [(name,) for name in names]) for ours, names in named.items()}
    return WalletAddress.model_validate({**element, **found})
