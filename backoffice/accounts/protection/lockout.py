"""Lock-out after wrong passwords or links, its entries in the audit log, and a limit on passwords checked at once.

Wrong ones are counted by account and address together, by account, and by address.

Refusals are counted in rows that are deleted after half an hour, not in the audit log: strangers could fill it, and
each entry locks the head of the log. Jobs of the sweeper record them there at intervals: one entry for ten minutes of
refusals, and one for each person who is locked out. Accounts are counted under a keyed hash of what was typed, the same
way whether they exist or not.

Each check of a password costs a processor a tenth of a second, on purpose, and strangers can request any number of
them. So one check runs at a time in a process and few wait: the other threads and processors serve the people who are
signed in, however many strangers try, from however many addresses.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Case, F, Q, QuerySet, Sum, When
from django.utils.crypto import salted_hmac

from backoffice.accounts.models import RefusedSignIns, User
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core import clock
from backoffice.core.leases import acquire_lease
from backoffice.core.web.request_context import network_of

LOCKED_FOR = timedelta(minutes=30)
WRONG_FOR_ACCOUNT_AND_ADDRESS = 5
WRONG_FOR_ACCOUNT = 30  # from all addresses: someone else must not lock a person out by five wrong passwords
WRONG_FOR_ADDRESS = 50  # for all accounts: an office has one address
_ANY_LINK = "one-time link"  # counted like an account; it is no email address
REFUSALS_INTERVAL = timedelta(minutes=10)
LOCKOUTS_INTERVAL = timedelta(minutes=1)
_NAMED = 20  # accounts and addresses that an entry names, those with the most refusals first
MAX_WAITING = 2  # requests of a process that may wait for a check; each holds a thread
WAIT_SECONDS = 3.0
_check = threading.Lock()
_places = threading.BoundedSemaphore(1 + MAX_WAITING)


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


def count_refused_while_locked(address: str | None) -> None:
    """Count an attempt during a lock-out, which it does not extend: one row for each address, whatever is tried."""
    _count("", network_of(address), wrong=0)


def reset_wrong_passwords(account: str, address: str | None) -> None:
    """Reset the count after the correct password; the refusals stay counted."""
    RefusedSignIns.objects.filter(account=account_key(account), address=network_of(address)).update(wrong=0)


def reset_account(account: str) -> int:
    """End the lock-out of an account for every address; the refusals stay counted. Returns how many counts it had.

    For the operator: docs/operator/runbook.md, Someone tries passwords.
    """
    return RefusedSignIns.objects.filter(account=account_key(account)).update(wrong=0)


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


def record_refusals_due() -> int:
    """Record how many sign-ins were refused since the last entry, and delete rows that no longer count."""
    if not acquire_lease("refused-sign-ins", REFUSALS_INTERVAL):
        return 0
    with transaction.atomic():
        rows = list(RefusedSignIns.objects.select_for_update().filter(refused__gt=F("reported")))
        for row in rows:
            RefusedSignIns.objects.filter(pk=row.pk).update(reported=row.refused)
        _ended().delete()
        if rows:
            _record(rows)
    return len(rows)


def _ended() -> "QuerySet[RefusedSignIns]":
    return RefusedSignIns.objects.filter(since__lte=clock.now() - LOCKED_FOR, refused=F("reported"))


def _record(rows: list[RefusedSignIns]) -> None:
    by_address, by_account = Counter[str](), Counter[str]()
    for row in rows:
        by_address[row.address] += row.refused - row.reported
        by_account[row.account] += row.refused - row.reported
    accounts = _names()
    of_people = Counter({accounts[key]: count for key, count in by_account.items() if key in accounts})
    record(
        Action.SIGN_INS_REFUSED,
        actor=None,
        refused=by_address.total(),
        addresses=len(by_address),
        most_refused_addresses=dict(by_address.most_common(_NAMED)),
        most_refused_accounts=dict(of_people.most_common(_NAMED)),
    )


def _names() -> dict[str, str]:
    """The email addresses of real accounts, by the keys under which they are counted."""
    return {account_key(email): email for email in User.objects.values_list("email", flat=True)}


def record_lockouts_due() -> int:
    """Record each person who is locked out, once for each lock-out; the person is notified of the entry."""
    if not acquire_lease("locked-out-people", LOCKOUTS_INTERVAL):
        return 0
    keys = set(_locked_accounts(clock.now()))
    if not keys:
        return 0
    people = [person for person in User.objects.all() if account_key(person.email) in keys]
    with transaction.atomic():
        RefusedSignIns.objects.filter(account__in=keys).update(is_lock_recorded=True)
        for person in people:
            record(Action.SIGN_IN_LOCKED, actor=None, target=person)
    return len(people)


def _locked_accounts(now: datetime) -> "QuerySet[RefusedSignIns, str]":
    """The keys of accounts that are locked, for one address or for all, and not yet on record."""
    counted = RefusedSignIns.objects.filter(since__gt=now - LOCKED_FOR).exclude(account="")
    totals = (
        counted.order_by()
        .values("account")
        .annotate(total=Sum("wrong"), recorded=Sum("wrong", filter=Q(is_lock_recorded=True), default=0))
    )
    everywhere = totals.filter(total__gte=WRONG_FOR_ACCOUNT, recorded=0).values("account")
    here = Q(wrong__gte=WRONG_FOR_ACCOUNT_AND_ADDRESS, is_lock_recorded=False)
    return counted.filter(here | Q(account__in=everywhere)).values_list("account", flat=True)


class TooManyChecksError(Exception):
    """The password was not checked, because too many are being checked."""


@contextmanager
def password_check() -> Iterator[None]:
    """Runs the block alone. Raises TooManyChecksError at once if too many wait, or after `WAIT_SECONDS`."""
    if not _places.acquire(blocking=False):
        raise TooManyChecksError
    try:
        if not _check.acquire(timeout=WAIT_SECONDS):
            raise TooManyChecksError
        try:
            yield
        finally:
            _check.release()
    finally:
        _places.release()
