"""Random documents and operations, from few values, so that conditions often meet."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from backoffice.policies.document import (
    EVERYONE,
    AmountBand,
    Conditions,
    Currencies,
    Hours,
    Level,
    Levels,
    Named,
    People,
    PolicyDocument,
    RecipientIs,
    RecipientList,
    Rule,
    TotalAbove,
    TotalOf,
    Window,
)
from backoffice.policies.evaluator import DescribedOperation, Person, RecipientFacts

KINDS = ("withdrawal", "transfer", "callback_url")
CURRENCIES = ("NGN", "USD", "USDT")
KEYS = ("bank:1", "user:ada", "address:T9")
ROLES = ("Preparer", "Approver")
LIST = RecipientList(name="Banks", keys=("bank:1", "bank:2"))
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)


def _maybe(random: Random, make: Callable[[], Any], *, often: float = 0.25) -> Any:
    return make() if random.random() < often else None


def people_named(random: Random) -> People:
    ids = random.sample(range(1, 8), random.randint(1, 3))
    return random.choice(
        (
            People(role=random.choice(ROLES)),
            People(group=Named(id=random.randint(1, 3), name="Group")),
            People(named=tuple(Named(id=one, name=f"P{one}") for one in ids)),
        )
    )


def level(random: Random) -> Level:
    of = random.choice((EVERYONE, people_named(random)))
    return Level(needed=random.randint(1, min(3, len(of.named) or 3)), of=of)


def levels(random: Random) -> Levels:
    return tuple(level(random) for _ in range(random.randint(1, 3)))


def rule(random: Random) -> Rule:
    one_currency = Currencies(codes=(random.choice(CURRENCIES),))
    several = Currencies(codes=tuple(random.sample(CURRENCIES, 2)), other_than=random.random() < 0.5)
    needs_amount = random.random() < 0.3
    amount = random.choice((AmountBand(above=100), AmountBand(up_to=200), AmountBand(above=100, up_to=300)))
    total = TotalAbove(
        window=random.choice(list(Window)), of=random.choice(list(TotalOf)), above=Decimal(400)
    )
    when = Conditions(
        kinds=tuple(random.sample(KINDS, 2)) if random.random() < 0.4 else (),
        currencies=one_currency if needs_amount else _maybe(random, lambda: several),
        amount=amount if needs_amount and random.random() < 0.7 else None,
        total=total if needs_amount and random.random() < 0.5 else None,
        recipient=_maybe(random, lambda: random.choice(list(RecipientIs))),
        on_list=LIST.name if random.random() < 0.15 else "",
        networks=("TRON",) if random.random() < 0.15 else (),
        preparer=_maybe(random, lambda: people_named(random)),
        hours=_maybe(random, lambda: _hours(random)),
        more_rows_than=_maybe(random, lambda: random.choice((0, 10)), often=0.15),
    )
    refuses = random.random() < 0.2
    return Rule(when=when, refuse="Not now" if refuses else "", levels=() if refuses else levels(random))


def _hours(random: Random) -> Hours:
    is_by_day = random.random() < 0.5
    return Hours(
        weekdays=tuple(random.sample(range(7), random.randint(1, 7))),
        start=time(random.randint(0, 11)) if is_by_day else time(random.randint(12, 23)),
        end=random.choice((None, time(random.randint(12, 23)))) if is_by_day else time(random.randint(0, 11)),
        outside=random.random() < 0.5,
    )


def document(random: Random) -> PolicyDocument:
    return PolicyDocument(
        rules=tuple(rule(random) for _ in range(random.randint(0, 6))),
        lists=(LIST,),
        time_zone=random.choice(("UTC", "Africa/Lagos", "Europe/Berlin")),
    )


def person(random: Random) -> Person:
    return Person(
        id=random.randint(1, 7),
        name="Somebody",
        roles=frozenset(random.sample(ROLES, random.randint(0, 2))),
        groups=frozenset(random.sample(range(1, 4), random.randint(0, 2))),
    )


def operation(random: Random) -> DescribedOperation:
    amount = random.choice((None, *map(Decimal, (50, 100, 101, 200, 300, 500))))
    facts = RecipientFacts(
        key=random.choice(KEYS),
        is_new=random.random() < 0.5,
        is_saved=random.random() < 0.5,
        is_provider_user=random.random() < 0.3,
        is_look_alike=random.random() < 0.3,
        network=random.choice(("", "TRON")),
    )
    totals = {
        (window, of): amount + random.choice((0, 200, 350))
        for window in Window
        for of in TotalOf
        if amount is not None
    }
    return DescribedOperation(
        kind=random.choice(KINDS),
        preparer=person(random),
        at=NOON + timedelta(minutes=random.randrange(7 * 24 * 60)),
        currency="" if amount is None else random.choice(CURRENCIES),
        amount=amount,
        recipient=random.choice((None, facts)),
        rows=random.choice((1, 1, 10, 11)),
        totals=totals,
        refusable=random.random() < 0.8,
    )
