"""The policy document: ordered rules that say how many of whom must approve an operation, or that refuse it.

It also says what is required of recipients, whatever the rules.

The first rule that fits decides. After all of them comes `LAST_RULE`, which no document contains and so none can leave
out: one approver who is not the preparer. A document by which fewer would be enough cannot be constructed.
A rule may later require an invoice or a passkey as well: both would be members of `Rule` beside `levels`.
"""

import hashlib
import json
from datetime import time
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Self
from zoneinfo import available_timezones

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    TypeAdapter,
    field_validator,
    model_serializer,
    model_validator,
)

from backoffice.settings_values import KINDS_THAT_PAY, MOST_COOLING_HOURS

MOST_RULES = 500
MOST_LEVELS = 3
MOST_APPROVALS = 10
"""The most approvals that one level can require."""

Text = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
Amount = Annotated[Decimal, Field(ge=0, max_digits=30, decimal_places=18, allow_inf_nan=False)]


class Part(BaseModel):
    """A part of the document: immutable, and invalid with a member that this release does not define."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Named(Part):
    """A person or a group by id, with the name that the people who approve the document read."""

    id: int
    name: Text


class People(Part):
    """A role, a group or named people; everyone if none of them is given."""

    role: str = ""
    group: Named | None = None
    named: tuple[Named, ...] = ()

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if sum(map(bool, (self.role, self.group, self.named))) > 1:
            raise ValueError("a role, a group or named people, not several of them")
        if len({one.id for one in self.named}) < len(self.named):
            raise ValueError("a person is named twice")
        return self

    @property
    def is_everyone(self) -> bool:
        return not (self.role or self.group or self.named)


EVERYONE = People()


class Level(Part):
    """So many of these people must approve. The preparer never counts."""

    needed: int = Field(ge=1, le=MOST_APPROVALS)
    of: People = EVERYONE

    @model_validator(mode="after")
    def _can_be_reached(self) -> Self:
        if self.of.named and len(self.of.named) < self.needed:
            raise ValueError("fewer people are named than must approve")
        return self


Levels = tuple[Level, ...]


class Currencies(Part):
    """One of these currencies, or any other than these. Fits only what has a currency."""

    codes: tuple[Text, ...] = ()
    other_than: bool = False

    @model_validator(mode="after")
    def _names_some(self) -> Self:
        if not self.codes and not self.other_than:
            raise ValueError("at least one currency")
        return self


class AmountBand(Part):
    """More than `above` and at most `up_to`, in the one currency of the rule."""

    above: Amount | None = None
    up_to: Amount | None = None

    @model_validator(mode="after")
    def _is_a_band(self) -> Self:
        if self.above is None and self.up_to is None:
            raise ValueError("at least one end of the band")
        if self.above is not None and self.up_to is not None and self.above >= self.up_to:
            raise ValueError("the lower end is not below the upper end")
        return self


class RecipientIs(TextChoices):
    """What is known of a recipient."""

    NEW = "new", _("Not paid before")
    PAID_BEFORE = "paid_before", _("Paid before")
    SAVED = "saved", _("Approved in the register")
    NOT_SAVED = "not_saved", _("Not approved in the register")
    PROVIDER_USER = "provider_user", _("User of the provider")
    LOOK_ALIKE = "look_alike", _("Similar to an approved recipient, but not approved")


class Window(TextChoices):
    """The time before the preparation over which amounts are added."""

    DAY = "day", _("24 hours")
    WEEK = "week", _("7 days")


class TotalOf(TextChoices):
    """Whose operations are added: always those of the same currency, with those that wait."""

    PREPARER = "preparer", _("the same preparer")
    RECIPIENT = "recipient", _("the same recipient")
    CURRENCY = "currency", _("everyone")


class TotalAbove(Part):
    """The operation and those before it in the window come to more than this."""

    window: Window
    of: TotalOf
    above: Amount


class Hours(Part):
    """From `start` to before `end` on these weekdays (Monday is 0) in the zone of the document, or all other times.

    If `start` is after `end`, the hours are over midnight, and a night belongs to the weekday on which it begins: from
    22:00 to 06:00 on Friday ends on Saturday morning.
    """

    weekdays: tuple[Annotated[int, Field(ge=0, le=6)], ...] = (0, 1, 2, 3, 4, 5, 6)
    start: time = time(0)
    end: time | None = None  # midnight
    outside: bool = False

    @model_validator(mode="after")
    def _is_a_period(self) -> Self:
        if not self.weekdays or len(set(self.weekdays)) < len(self.weekdays):
            raise ValueError("at least one weekday, each once")
        if self.start == self.end:
            raise ValueError("the start is the end")
        return self

    @property
    def are_over_midnight(self) -> bool:
        return self.end is not None and self.end < self.start


class Conditions(Part):
    """What an operation must be for a rule to fit: all that is given. Without any, the rule fits every operation."""

    kinds: tuple[Text, ...] = ()
    currencies: Currencies | None = None
    amount: AmountBand | None = None
    recipient: RecipientIs | None = None
    on_list: str = ""
    networks: tuple[Text, ...] = ()
    preparer: People | None = None
    total: TotalAbove | None = None
    hours: Hours | None = None
    more_rows_than: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _has_a_currency_for_amounts(self) -> Self:
        one = (
            self.currencies is not None and not self.currencies.other_than and len(self.currencies.codes) == 1
        )
        if (self.amount or self.total) and not one:
            raise ValueError("an amount needs exactly one currency")
        if self.preparer is not None and self.preparer.is_everyone:
            raise ValueError("the preparer is a person, a role or a group")
        return self


class Rule(Part):
    """If the conditions fit: refuse with this reason, or require these levels, one after the other."""

    when: Conditions = Conditions()
    refuse: Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)] = ""
    levels: Annotated[Levels, Field(max_length=MOST_LEVELS)] = ()

    @model_validator(mode="after")
    def _has_one_outcome(self) -> Self:
        if bool(self.refuse) == bool(self.levels):
            raise ValueError("a rule refuses with a reason, or requires at least one approval")
        return self


LAST_RULE = Rule(levels=(Level(needed=1),))
"""One approver who is not the preparer: what decides where no other rule fits."""


class RecipientList(Part):
    """Recipients by their keys, such as `bank:044:0123456789`, under a name that rules use."""

    name: Text
    keys: tuple[Text, ...]


class Ceiling(Part):
    """What one recipient can be paid in total in a currency while it cools."""

    currency: Text
    amount: Annotated[Amount, Field(gt=0)]


class Cooling(Part):
    """For so many hours, an approved recipient that was added or changed is paid up to the ceilings only.

    Nothing in a currency without a ceiling. With `extra_approval`, one more approval takes the place of the time.
    """

    hours: int = Field(ge=1, le=MOST_COOLING_HOURS)
    ceilings: tuple[Ceiling, ...] = ()
    extra_approval: bool = False

    @field_validator("ceilings")
    @classmethod
    def _are_of_different_currencies(cls, ceilings: tuple[Ceiling, ...]) -> tuple[Ceiling, ...]:
        if len({one.currency for one in ceilings}) < len(ceilings):
            raise ValueError("a currency has two ceilings")
        return tuple(sorted(ceilings, key=lambda one: one.currency))

    def ceiling(self, currency: str) -> Decimal | None:
        return next((one.amount for one in self.ceilings if one.currency == currency), None)

    def stricter(self, other: "Cooling") -> "Cooling":
        """The longer time; of each currency the lower ceiling, none unless both have one; an approval takes the place
        of the time only if it does for both.
        """
        both = [(one.currency, one.amount, other.ceiling(one.currency)) for one in self.ceilings]
        return Cooling(
            hours=max(self.hours, other.hours),
            ceilings=tuple(
                Ceiling(currency=currency, amount=min(own, of_other))
                for currency, own, of_other in both
                if of_other is not None
            ),
            extra_approval=self.extra_approval and other.extra_approval,
        )


class RecipientRequirements(Part):
    """Who may be paid: by the kinds of `approved_only`, approved recipients of the register only; and the cooling of
    new and changed ones, by every kind.
    """

    approved_only: tuple[str, ...] = ()
    cooling: Cooling | None = None

    @field_validator("approved_only")
    @classmethod
    def _are_kinds_that_pay(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        if not set(kinds) <= set(KINDS_THAT_PAY):
            raise ValueError("a kind without payments to recipients")
        return tuple(sorted(set(kinds), key=KINDS_THAT_PAY.index))

    def stricter(self, other: "RecipientRequirements") -> "RecipientRequirements":
        """What both require together: the kinds of both, and the stricter cooling (`Cooling.stricter`)."""
        both = self.cooling.stricter(other.cooling) if self.cooling and other.cooling else None
        return RecipientRequirements(
            approved_only=(*self.approved_only, *other.approved_only),
            cooling=both or self.cooling or other.cooling,
        )


@cache
def _time_zones() -> frozenset[str]:
    return frozenset(available_timezones())  # reads files


class PolicyDocument(Part):
    """All rules in their order, the lists they name, the zone in which their hours are, and what is required of
    recipients.
    """

    rules: Annotated[tuple[Rule, ...], Field(max_length=MOST_RULES)] = ()
    lists: tuple[RecipientList, ...] = ()
    time_zone: str = "UTC"
    recipients: RecipientRequirements = RecipientRequirements()

    @model_validator(mode="after")
    def _names_what_exists(self) -> Self:
        names = [each.name for each in self.lists]
        if len(set(names)) < len(names):
            raise ValueError("two lists have the same name")
        if {rule.when.on_list for rule in self.rules} - {"", *names}:
            raise ValueError("a rule names a list that does not exist")
        if self.time_zone not in _time_zones():
            raise ValueError("the time zone is not known")
        return self

    @model_serializer(mode="wrap")
    def _without_empty_requirements(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Earlier versions have no `recipients`: while nothing is required of them, the digest is the same."""
        members: dict[str, Any] = serialize(self)
        if self.recipients == RecipientRequirements():
            del members["recipients"]
        return members

    def stored(self) -> dict[str, Any]:
        """JSON members, with amounts and times as text."""
        return self.model_dump(mode="json")

    @property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, over the canonical JSON."""
        canonical = json.dumps(self.stored(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """The rules and the last one."""
        return (*self.rules, LAST_RULE)

    @property
    def uses_totals(self) -> bool:
        return any(rule.when.total for rule in self.rules)


_LEVELS: TypeAdapter[Levels] = TypeAdapter(Annotated[Levels, Field(min_length=1)])


def read_levels(stored: list[dict[str, Any]]) -> Levels:
    """Stored levels, of which there may be more than in one rule. Raises ValidationError, also where there are none."""
    return _LEVELS.validate_python(stored)


def stored_levels(levels: Levels) -> list[dict[str, Any]]:
    return [level.model_dump(mode="json") for level in levels]


def approvals_in(levels: Levels) -> int:
    """How many approvals these levels require together."""
    return sum(level.needed for level in levels)
