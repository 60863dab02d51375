"""Accounts, users and addresses to try, each with the outcome of a payment by the rules of the simulation.

Other accounts of ten digits exist unless they end in 0000, other users unless their name begins with "nobody".
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from payments_gateway import BANKS
from payments_gateway.sandbox.books.counterparties import NETWORKS, account_holder, address_on
from payments_gateway.sandbox.books.orders import fails_at_settlement, is_user, settles_slowly

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_BANK_CODES = ("058", "057")
_ACCOUNTS = ("0123456789", "2045678901", "0123456788", "0123456799", "0123450000")
_USERNAMES = ("ada.obi", "slow.88", "fails.99", "nobody.here")
_OWNER = "Ada Obi"


@dataclass(frozen=True, slots=True)
class Destination:
    """`place` is the bank or network; `holder` is empty if the account does not exist or its holder is unknown."""

    place: str
    account: str
    holder: str
    outcome: "StrOrPromise"


@cache
def destinations() -> list[Destination]:
    """Bank accounts, then usernames, then an address on each network."""
    return [*_bank_accounts(), *_usernames(), *_addresses()]


def outcome_of(destination: str, *, exists: bool = True) -> "StrOrPromise":
    """The outcome of an order to this account, username or address."""
    if not exists:
        return _("does not exist")
    if fails_at_settlement(destination):
        return _("fails when it settles")
    return _("takes an hour") if settles_slowly(destination) else _("succeeds")


def _bank_accounts() -> list[Destination]:
    found = []
    for account, code in ((account, code) for account in _ACCOUNTS for code in _BANK_CODES):
        holder = account_holder(account, code)
        outcome = outcome_of(account, exists=holder is not None)
        found.append(Destination(f"{BANKS[code]} ({code})", account, holder or "", outcome))
    return found


def _usernames() -> list[Destination]:
    return [Destination("", name, "", outcome_of(name, exists=is_user(name))) for name in _USERNAMES]


def _addresses() -> list[Destination]:
    found = [(network, address_on(network, _OWNER)) for network in NETWORKS]
    return [Destination(network, address, "", outcome_of(address)) for network, address in found]
