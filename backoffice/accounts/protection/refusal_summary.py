"""Record refused sign-ins in the audit log: one entry for ten minutes of them, and one for each person who is locked
out. Jobs of the sweeper.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet, Sum

from backoffice.accounts.models import RefusedSignIns, User
from backoffice.accounts.protection import lockout
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core import clock
from backoffice.core.leases import acquire_lease

PERIOD = timedelta(minutes=10)
LOCKS_EVERY = timedelta(minutes=1)
_NAMED = 20  # accounts and addresses that an entry names, those with the most refusals first


def record_refusals_due() -> int:
    """Record how many sign-ins were refused since the last entry, and delete rows that no longer count."""
    if not acquire_lease("refused-sign-ins", PERIOD):
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
    return RefusedSignIns.objects.filter(since__lte=clock.now() - lockout.LOCKED_FOR, refused=F("reported"))


def _record(rows: list[RefusedSignIns]) -> None:
    by_address: dict[str, int] = {}
    by_account: dict[str, int] = {}
    for row in rows:
        new = row.refused - row.reported
        by_address[row.address] = by_address.get(row.address, 0) + new
        by_account[row.account] = by_account.get(row.account, 0) + new
    accounts = _names()
    record(
        Action.SIGN_INS_REFUSED,
        actor=None,
        refused=sum(by_address.values()),
        addresses=len(by_address),
        most_refused_addresses=_most(by_address),
        most_refused_accounts=_most({accounts[key]: n for key, n in by_account.items() if key in accounts}),
    )


def _most(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: -item[1])[:_NAMED])


def _names() -> dict[str, str]:
    """The email addresses of real accounts, by the keys under which they are counted."""
    return {lockout.account_key(email): email for email in User.objects.values_list("email", flat=True)}


def record_lockouts_due() -> int:
    """Record each person who is locked out, once for each lock-out; the person is notified of the entry."""
    if not acquire_lease("locked-out-people", LOCKS_EVERY):
        return 0
    keys = set(_locked_accounts(clock.now()))
    if not keys:
        return 0
    people = [person for person in User.objects.all() if lockout.account_key(person.email) in keys]
    with transaction.atomic():
        RefusedSignIns.objects.filter(account__in=keys).update(is_lock_recorded=True)
        for person in people:
            record(Action.SIGN_IN_LOCKED, actor=None, target=person)
    return len(people)


def _locked_accounts(now: datetime) -> "QuerySet[RefusedSignIns, str]":
    """The keys of accounts that are locked, for one address or for all, and not yet on record."""
    counted = RefusedSignIns.objects.filter(since__gt=now - lockout.LOCKED_FOR).exclude(account="")
    totals = (
        counted.order_by()
        .values("account")
        .annotate(total=Sum("wrong"), recorded=Sum("wrong", filter=Q(is_lock_recorded=True), default=0))
    )
    everywhere = totals.filter(total__gte=lockout.WRONG_FOR_ACCOUNT, recorded=0).values("account")
    here = Q(wrong__gte=lockout.WRONG_FOR_ACCOUNT_AND_ADDRESS, is_lock_recorded=False)
    return counted.filter(here | Q(account__in=everywhere)).values_list("account", flat=True)
