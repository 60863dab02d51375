"""The key that identifies whoever is paid, whatever the name: of a bank account, an address or a user."""

import re

from django.utils.translation import gettext

BANK_PREFIX = "bank:"
ADDRESS_PREFIX = "address:"
USER_PREFIX = "user:"


def bank_account_key(bank_code: str, account_number: str) -> str:
    """The key of a bank account; it does not depend on the holder's name."""
    return f"{BANK_PREFIX}{bank_code}:{account_number}"


def parse_bank_account_key(key: str) -> tuple[str, str]:
    """The bank code and the account number in such a key."""
    bank_code, _, account_number = key.removeprefix(BANK_PREFIX).partition(":")
    return bank_code, account_number


def normalised_address(address: str) -> str:
    """A canonical form of the address: lower case if its network ignores case (0x…, bc1…)."""
    return address.lower() if address.lower().startswith(("0x", "bc1", "tb1")) else address


def address_key(address: str) -> str:
    """The key of an address, whatever the network: on all networks like Ethereum it belongs to the same holder."""
    return f"{ADDRESS_PREFIX}{normalised_address(address)}"


def user_key(username: str) -> str:
    """The key of a user of the provider, whatever the case: usernames that differ only in case are look-alikes.

    The specification does not say whether they are one user, so the allow-list compares the username itself, too.
    """
    return f"{USER_PREFIX}{username.casefold()}"


_BANK_ACCOUNT = re.compile(r"([0-9A-Za-z-]{1,20}):([0-9]{10})")
_ADDRESS = re.compile(r"[\x21-\x7e]{1,128}")
_USERNAME = re.compile(r"[A-Za-z0-9._@+-]{1,64}")


def canonical_key(text: str) -> str:
    """A typed key as payments have it, such as `bank:044:0123456789`; empty if it cannot be that of anybody."""
    prefix, _, rest = text.partition(":")
    account = _BANK_ACCOUNT.fullmatch(rest) if f"{prefix}:" == BANK_PREFIX else None
    if account:
        return bank_account_key(account[1], account[2])
    if f"{prefix}:" == ADDRESS_PREFIX and _ADDRESS.fullmatch(rest):
        return address_key(rest)
    return user_key(rest) if f"{prefix}:" == USER_PREFIX and _USERNAME.fullmatch(rest) else ""


def key_text(key: str) -> str:
    """Such a key in words, in the reader's language."""
    if key.startswith(BANK_PREFIX):
        bank_code, number = parse_bank_account_key(key)
        return gettext("account {number} at bank {code}").format(number=number, code=bank_code)
    if key.startswith(ADDRESS_PREFIX):
        return gettext("address {address}").format(address=key.removeprefix(ADDRESS_PREFIX))
    if key.startswith(USER_PREFIX):
        return gettext("user {username}").format(username=key.removeprefix(USER_PREFIX))
    return key
