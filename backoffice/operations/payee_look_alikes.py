"""Recipients of the register whose account is similar to that of a payee who is not an approved recipient.

A person who asks to be paid at an account like that of a known supplier may not be that supplier.
"""

from collections.abc import Collection

from django.utils.translation import gettext

from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.registry import AnyKind
from backoffice.recipients.look_alikes import (
    ComparedAccount,
    SimilarAccount,
    account_of,
    mark_differences,
    similar_in_register,
    similar_recipients,
)
from backoffice.recipients.models import RecipientState, RecipientVersion
from backoffice.recipients.register import newest_versions, version_in_effect

_AT_ONCE = 500


def look_alike_warnings(kind: AnyKind, payload: Payload, state: str | None = None) -> list[str]:
    """Warnings about recipients with a similar account; none if nobody, or an approved recipient, is paid.

    `state` is the state of the payee in the register, if it was read already; empty if it is not in the register.
    """
    key = kind.recipient(payload).key
    if key and state is None:
        version = version_in_effect(key)
        state = version.state if version else ""
    if not key or state == RecipientState.APPROVED:
        return []
    compared = account_of(key)
    if compared is None:
        return []
    found = similar_recipients(compared.type, compared.account, key)
    return [_warning(compared, other) for other in found]


def look_alikes_of_payees(keys: Collection[str]) -> dict[str, list[SimilarAccount]]:
    """The recipients with a similar account, by key, of each key that is no approved recipient. One pass over all."""
    approved: set[str] = set()
    wanted = sorted(set(keys) - {""})
    for start in range(0, len(wanted), _AT_ONCE):
        known = newest_versions().filter(key__in=wanted[start : start + _AT_ONCE])
        approved.update(known.filter(state=RecipientState.APPROVED).values_list("key", flat=True))
    others = [account for key in wanted if key not in approved and (account := account_of(key)) is not None]
    if not others:
        return {}
    found = similar_in_register(dict(enumerate(others)))
    return {others[number].key: alike.accounts for number, alike in found.items() if alike.accounts}


def _warning(compared: ComparedAccount, other: RecipientVersion) -> str:
    if other.account == compared.account:
        text = gettext("The recipient {recipient} has the same account number at another bank: {bank}.")
        return text.format(recipient=other.title, bank=other.bank)
    return gettext(
        "Similar to the account of the recipient {recipient}, but not the same. Known account: {earlier} · This "
        "account: {current} (differences in brackets). Confirm the account with the recipient before you continue."
    ).format(
        recipient=other.title,
        earlier=mark_differences(other.account, compared.account),
        current=mark_differences(compared.account, other.account),
    )
