"""Lock-out after wrong passwords or links: by account and address together, by account, and by address.

Refusals are counted in rows that are deleted after half an hour, not in the audit log: strangers could fill it, and
each entry locks the head of the log. `refusal_summary` records them there at intervals. Accounts are counted under a
keyed hash of what was typed, the same way whether they exist or not.
"""

from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Case, F, Q, Sum, When
from django.utils.crypto import salted_hmac

from backoffice.accounts.models import RefusedSignIns
from backoffice.core import clock
from backoffice.core.web.request_context import network_of

LOCKED_FOR = timedelta(minutes=30)
WRONG_FOR_ACCOUNT_AND_ADDRESS = 5
WRONG_FOR_ACCOUNT = 30  # from all addresses: someone else must not lock a person out by five wrong passwords
WRONG_FOR_ADDRESS = 50  # for all accounts: an office has one address
_ANY_LINK = "one-time link"  # counted like an account; it is no email address


def is_locked_out(account: str, address: str | None) -> bool:
    """Whether passwords for this account from this address are refused, without being checked."""
    return _is_locked(account_key(account), network_of(address))


def are_links_locked_out(address: str | None) -> bool:
    """Whether one-time links from this address are refused, without being checked."""
    return _is_locked(account_key(_ANY_LINK), network_of(address), is_person=False)


def count_wrong_password(account: str, address: str | None) -> bool:
    """Count one; returns whether further ones are refused from now on."""
    _count(account_key(account), network_of(address), wrong=1)
    return is_locked_out(account, address)


def count_wrong_link(address: str | None) -> bool:
    """Count one; returns whether further ones are refused from now on."""
    _count(account_key(_ANY_LINK), network_of(address), wrong=1)
    return are_links_locked_out(address)


def count_turned_away(address: str | None) -> None:
    """Count an attempt during a lock-out, which it does not extend: one row for each address, whatever is tried."""
    _count("", network_of(address), wrong=0)


def forget_wrong_passwords(account: str, address: str | None) -> None:
    """Begin anew after the correct password."""
    RefusedSignIns.objects.filter(account=account_key(account), address=network_of(address)).update(wrong=0)


def account_key(account: str) -> str:
    """The keyed hash under which an account is counted, since people type passwords into the wrong field."""
    return salted_hmac("accounts.refused", account.strip().lower(), algorithm="sha256").hexdigest()


def _is_locked(key: str, network: str, *, is_person: bool = True) -> bool:
    counted = RefusedSignIns.objects.filter(since__gt=clock.now() - LOCKED_FOR)
    found = counted.filter(Q(account=key) | Q(address=network)).aggregate(
        both=Sum("wrong", filter=Q(account=key, address=network), default=0),
        account=Sum("wrong", filter=Q(account=key), default=0),
        address=Sum("wrong", filter=Q(address=network), default=0),
    )
    return bool(
        found["both"] >= WRONG_FOR_ACCOUNT_AND_ADDRESS
        or (is_person and found["account"] >= WRONG_FOR_ACCOUNT)
        or found["address"] >= WRONG_FOR_ADDRESS
    )


def _count(key: str, network: str, *, wrong: int) -> None:
    if _add(key, network, wrong):
        return
    try:
        with transaction.atomic():
            RefusedSignIns.objects.create(
                account=key, address=network, since=clock.now(), wrong=wrong, refused=1
            )
    except IntegrityError:  # another request created it meanwhile
        _add(key, network, wrong)


def _add(key: str, network: str, wrong: int) -> int:
    """Add to the row, or begin its next half hour, in one statement; returns 0 if there is no row."""
    now = clock.now()
    has_ended = Q(since__lte=now - LOCKED_FOR)
    return RefusedSignIns.objects.filter(account=key, address=network).update(
        wrong=Case(When(has_ended, then=wrong), default=F("wrong") + wrong),
        since=Case(When(has_ended, then=now), default=F("since")),
        is_lock_recorded=Case(When(has_ended, then=False), default=F("is_lock_recorded")),
        refused=F("refused") + 1,
    )
