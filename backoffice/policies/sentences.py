"""Rules, levels, what is required of recipients, and the comparison of two versions in words, in the reader's language.

`name_kinds` has to be called once with the names of the kinds of operations; roles have names of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils.translation import gettext, ngettext, pgettext

from backoffice.accounts.roles import Role
from backoffice.core.web.formatting import format_amount, quoted
from backoffice.policies.document import (
    Conditions,
    Cooling,
    Hours,
    Level,
    Levels,
    People,
    PolicyDocument,
    RecipientIs,
    RecipientRequirements,
    Rule,
    TotalAbove,
    TotalOf,
    Window,
)

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_KIND_NAMES: "dict[str, StrOrPromise]" = {}


def name_kinds(plurals: "Mapping[str, StrOrPromise]") -> None:
    """Make the names of these kinds known, such as "Withdrawals"."""
    _KIND_NAMES.update(plurals)


def kind_name(kind: str) -> str:
    """The name of the operations of this kind; the bare code if it has none here."""
    return str(_KIND_NAMES.get(kind, kind))


def kind_names() -> dict[str, str]:
    """The names of all kinds, by kind."""
    return {kind: str(name) for kind, name in _KIND_NAMES.items()}


def rule_sentence(rule: Rule, time_zone: str) -> str:
    """`Withdrawals above NGN 5,000,000.00 to new recipients need 1 of Treasury, then 2 of Directors`.

    `time_zone` is that of its document, in which its hours are; empty if it is not known.
    """
    what = " ".join([_kinds(rule), *condition_texts(rule.when, time_zone)])
    if rule.refuse:
        return gettext("{what} are refused: {reason}").format(what=what, reason=quoted(rule.refuse))
    template = (
        pgettext("one other person first", "{what} need {approvals}")
        if _begin_with_one_other(rule.levels)
        else gettext("{what} need {approvals}")
    )
    return template.format(what=what, approvals=levels_text(rule.levels))


def last_rule_sentence(levels: Levels) -> str:
    """The last rule, which fits what no other rule fits."""
    template = (
        pgettext("one other person first", "Everything else needs {approvals}")
        if _begin_with_one_other(levels)
        else gettext("Everything else needs {approvals}")
    )
    return template.format(approvals=levels_text(levels))


def _begin_with_one_other(levels: Levels) -> bool:
    """Whether they begin with `1 other person`, before which some languages have another word."""
    return levels[0].of.is_everyone and levels[0].needed == 1


def levels_text(levels: Levels) -> str:
    """`1 of Treasury, then 2 of Directors`: in the order in which they approve."""
    return pgettext("between approvals, in their order", ", then ").join(map(level_text, levels))


def level_text(level: Level) -> str:
    """`2 of Directors`, or `1 other person`."""
    if level.of.is_everyone:
        return ngettext("{count} other person", "{count} other people", level.needed).format(
            count=level.needed
        )
    return gettext("{count} of {people}").format(count=level.needed, people=people_text(level.of))


def people_text(people: People) -> str:
    """A role by its label, a group by its name, people by theirs."""
    if people.role:
        labels = {role.value: str(role.label) for role in Role}
        return gettext("role {role}").format(role=labels.get(people.role, people.role))
    if people.group:
        return people.group.name
    return ", ".join(one.name for one in people.named)


def _kinds(rule: Rule) -> str:
    """The kinds of the rule; without any, what it can decide. Changes to Countersign itself are never refused."""
    when = rule.when
    if when.kinds:
        return joined([kind_name(kind) for kind in when.kinds])
    if not rule.refuse:
        return gettext("All operations")
    if when.currencies or when.recipient or when.on_list or when.networks:
        return gettext("All payments")
    return gettext("All payments and changes at the provider")


def condition_texts(when: Conditions, time_zone: str) -> list[str]:
    """Each condition but the kind, in reading order."""
    money = amount_text(when) if when.amount else currencies_text(when)
    return [text for text in (money, *further_texts(when, time_zone)) if text]


def further_texts(when: Conditions, time_zone: str) -> list[str]:
    """Each condition but the kind, the currency and the amount."""
    texts = [
        _recipient_text(when.recipient) if when.recipient else "",
        gettext("to the list {name}").format(name=quoted(when.on_list)) if when.on_list else "",
        gettext("on the network {names}").format(names=joined(when.networks)) if when.networks else "",
        gettext("prepared by {people}").format(people=people_text(when.preparer)) if when.preparer else "",
        _total_text(when.total, _currency(when)) if when.total else "",
        _hours_text(when.hours, time_zone) if when.hours else "",
    ]
    if when.more_rows_than is not None:
        texts.append(gettext("in batches of more than {count} rows").format(count=when.more_rows_than))
    return [text for text in texts if text]


def _currency(when: Conditions) -> str:
    return when.currencies.codes[0] if when.currencies else ""


def currencies_text(when: Conditions) -> str:
    if when.currencies is None:
        return ""
    names = joined(when.currencies.codes)
    if not when.currencies.other_than:
        return gettext("in {currencies}").format(currencies=names)
    if not names:
        return gettext("in any currency")
    return gettext("in currencies other than {currencies}").format(currencies=names)


def amount_text(when: Conditions) -> str:
    band, code = when.amount, _currency(when)
    above = f"{code} {format_amount(band.above, code)}" if band and band.above is not None else ""
    up_to = f"{code} {format_amount(band.up_to, code)}" if band and band.up_to is not None else ""
    if above and up_to:
        return gettext("above {above} and up to {up_to}").format(above=above, up_to=up_to)
    if above:
        return gettext("above {above}").format(above=above)
    return gettext("up to {up_to}").format(up_to=up_to)


def _recipient_text(recipient: RecipientIs) -> str:
    return {
        RecipientIs.NEW: gettext("to new recipients"),
        RecipientIs.PAID_BEFORE: gettext("to recipients paid before"),
        RecipientIs.SAVED: gettext("to approved recipients"),
        RecipientIs.NOT_SAVED: gettext("to recipients that are not approved"),
        RecipientIs.PROVIDER_USER: gettext("to users of the provider"),
        RecipientIs.LOOK_ALIKE: gettext("to accounts similar to an approved recipient's"),
    }[recipient]


def _total_text(total: TotalAbove, code: str) -> str:
    template = {
        (Window.DAY, TotalOf.PREPARER): gettext("that bring their preparer's 24-hour total above {amount}"),
        (Window.DAY, TotalOf.RECIPIENT): gettext("that bring their recipient's 24-hour total above {amount}"),
        (Window.DAY, TotalOf.CURRENCY): gettext("that bring the 24-hour total above {amount}"),
        (Window.WEEK, TotalOf.PREPARER): gettext("that bring their preparer's 7-day total above {amount}"),
        (Window.WEEK, TotalOf.RECIPIENT): gettext("that bring their recipient's 7-day total above {amount}"),
        (Window.WEEK, TotalOf.CURRENCY): gettext("that bring the 7-day total above {amount}"),
    }[total.window, total.of]
    return template.format(amount=f"{code} {format_amount(total.above, code)}")


def _hours_text(hours: Hours, time_zone: str) -> str:
    template = (
        gettext("prepared outside {days}, {start} to {end}")
        if hours.outside
        else gettext("prepared on {days}, {start} to {end}")
    )
    end = f"{hours.end:%H:%M}" if hours.end else "24:00"
    if hours.are_over_midnight:
        end = gettext("{time} the next day").format(time=end)
    days = ", ".join(weekday_name(day) for day in sorted(hours.weekdays))
    text = template.format(days=days, start=f"{hours.start:%H:%M}", end=end)
    return f"{text} ({time_zone})" if time_zone else text


def weekday_name(day: int) -> str:
    """The short name of a weekday; Monday is 0."""
    return (
        *(pgettext("abbreviated weekday", "Mon"), pgettext("abbreviated weekday", "Tue")),
        *(pgettext("abbreviated weekday", "Wed"), pgettext("abbreviated weekday", "Thu")),
        *(pgettext("abbreviated weekday", "Fri"), pgettext("abbreviated weekday", "Sat")),
        pgettext("abbreviated weekday", "Sun"),
    )[day]


def joined(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return gettext("{names} and {last}").format(names=", ".join(names[:-1]), last=names[-1])


def recipient_texts(required: RecipientRequirements) -> dict[str, str]:
    """What is required of recipients, under the title of each part; empty where nothing is."""
    return {
        gettext("Approved recipients only"): approved_only_text(required),
        gettext("Cooling-off period for recipients"): _cooling_text(required.cooling)
        if required.cooling
        else "",
    }


def approved_only_text(required: RecipientRequirements) -> str:
    """Which kinds pay approved recipients only; empty if none does."""
    if not required.approved_only:
        return ""
    kinds = joined([kind_name(kind) for kind in required.approved_only])
    return gettext("{kinds} can be made to approved recipients only.").format(kinds=kinds)


def _cooling_text(cooling: Cooling) -> str:
    text = ngettext(
        "A recipient that is new or changed can be paid after {count} hour.",
        "A recipient that is new or changed can be paid after {count} hours.",
        cooling.hours,
    )
    texts = [text.format(count=cooling.hours)]
    if cooling.ceilings:
        amounts = [f"{one.currency} {format_amount(one.amount, one.currency)}" for one in cooling.ceilings]
        text = gettext("Before that, up to {amounts} in total can be paid.")
        texts.append(text.format(amounts=joined(amounts)))
    if cooling.extra_approval:
        texts.append(gettext("With one more approval it can be paid at once."))
    return " ".join(texts)


class Difference(StrEnum):
    """What became of a rule. The value is the CSS tone in which it is shown."""

    SAME = "quiet"
    CHANGED = "info"
    ADDED = "good"
    REMOVED = "bad"


@dataclass(frozen=True)
class ComparedRule:
    """A rule of the old version beside one of the new, each as number and sentence; empty where a version has none."""

    difference: Difference
    old: str
    new: str


def compare(old: PolicyDocument, new: PolicyDocument) -> list[ComparedRule]:
    """The rules of both versions in their order: the same, changed, added or removed."""
    before, after = ([rule.model_dump_json() for rule in each.rules] for each in (old, new))
    found: list[ComparedRule] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        left, right = _numbered(old, a, b), _numbered(new, c, d)
        for place in range(max(len(left), len(right))):
            one, other = (side[place] if place < len(side) else "" for side in (left, right))
            difference = Difference.SAME if tag == "equal" else _difference(one, other)
            found.append(ComparedRule(difference, one, other))
    return found


@dataclass(frozen=True)
class ComparedList:
    """A list of recipients that differs between two versions, with the keys that only one of them has."""

    name: str
    difference: Difference
    added: tuple[str, ...]
    removed: tuple[str, ...]


def compare_lists(old: PolicyDocument, new: PolicyDocument) -> list[ComparedList]:
    """The lists that were added, changed or removed, by name. The order of lists and of keys decides nothing."""
    before, after = ({each.name: each.keys for each in one.lists} for one in (old, new))
    found: list[ComparedList] = []
    for name in sorted({*before, *after}):
        left, right = set(before.get(name, ())), set(after.get(name, ()))
        is_in_both = name in before and name in after
        if is_in_both and left == right:
            continue
        of_one = Difference.ADDED if name in after else Difference.REMOVED
        difference = Difference.CHANGED if is_in_both else of_one
        found.append(ComparedList(name, difference, tuple(sorted(right - left)), tuple(sorted(left - right))))
    return found


def compare_recipients(old: RecipientRequirements, new: RecipientRequirements) -> dict[str, ComparedRule]:
    """What is required of recipients, where it differs, by the title of the part."""
    before, after = recipient_texts(old), recipient_texts(new)
    is_same = (old.approved_only == new.approved_only, old.cooling == new.cooling)
    return {
        title: ComparedRule(_difference(before[title], after[title]), before[title], after[title])
        for title, same in zip(before, is_same, strict=True)
        if not same
    }


def _difference(old: str, new: str) -> Difference:
    if old and new:
        return Difference.CHANGED
    return Difference.REMOVED if old else Difference.ADDED


def _numbered(document: PolicyDocument, start: int, end: int) -> list[str]:
    zone = document.time_zone
    return [f"{place + 1}. {rule_sentence(document.rules[place], zone)}" for place in range(start, end)]


def rule_sentences(document: PolicyDocument) -> list[str]:
    """The sentence of each rule, without the last one."""
    return [rule_sentence(rule, document.time_zone) for rule in document.rules]
