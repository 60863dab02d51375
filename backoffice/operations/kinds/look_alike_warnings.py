"""Warnings about recipients of the register whose account can be mistaken for the one that is paid or added."""

from django.utils.translation import gettext

from backoffice.operations.kinds.base import Recipient
from backoffice.recipients.look_alikes import mark_differences, similar_recipients
from backoffice.recipients.models import RecipientState, RecipientType
from backoffice.recipients.register import version_in_effect


def look_alike_warnings(kind: RecipientType, account: str, key: str) -> list[str]:
    """One warning for each such recipient, the differences in brackets."""
    return [
        gettext(
            "Similar to the account of {recipient}, but different. In the register: {earlier} · Now: {current} "
            "(differences in brackets). Confirm the account with the recipient before you continue."
        ).format(
            recipient=other.title,
            earlier=mark_differences(other.account, account),
            current=mark_differences(account, other.account),
        )
        if other.account != account
        else gettext("{recipient} has the same account number at another bank, {bank}.").format(
            recipient=other.title, bank=other.bank
        )
        for other in similar_recipients(kind, account, key)
    ]


def warnings_of_payment(paid: Recipient) -> list[str]:
    """The same of whoever is paid; none for an approved recipient, which was compared when it was added."""
    prefix, _, account = paid.key.partition(":")
    if prefix not in RecipientType.values:
        return []
    found = version_in_effect(paid.key)
    if found is not None and found.state == RecipientState.APPROVED:
        return []
    return look_alike_warnings(RecipientType(prefix), account.rpartition(":")[2], paid.key)
