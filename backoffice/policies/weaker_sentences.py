"""In words, in the reader's language, what a version of the policies requires less than another one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext, ngettext

from backoffice.policies.document import (
    AmountBand,
    Conditions,
    Currencies,
    PolicyDocument,
    RecipientRequirements,
)
from backoffice.policies.sentences import (
    amount_text,
    currencies_text,
    further_texts,
    joined,
    kind_name,
    levels_text,
)
from backoffice.policies.weakening import OTHER_CURRENCY, Band, KindFacts, Weaker, weakening

MOST_SENTENCES = 10
_MOST_NAMED = 6


@dataclass(frozen=True)
class RequiresLess:
    """Sentences, how many more there are, and whether the versions were too large to compare all of them."""

    sentences: tuple[str, ...] = ()
    more: int = 0
    is_cut: bool = False

    def __bool__(self) -> bool:
        return bool(self.sentences) or self.is_cut

    @property
    def title(self) -> str:
        return gettext("This version requires less than the rules in effect:") if self.sentences else ""

    @property
    def rest(self) -> list[str]:
        """What is not among the sentences."""
        texts = (
            [ngettext("And {count} more.", "And {count} more.", self.more).format(count=self.more)]
            if self.more
            else []
        )
        if self.is_cut:
            texts.append(
                gettext(
                    "This comparison is incomplete: there are too many rules. Check all changes yourself before you "
                    "submit or approve."
                )
            )
        return texts


def requires_less_texts(old: PolicyDocument, new: PolicyDocument, kinds: Sequence[KindFacts]) -> RequiresLess:
    """What the new version requires less than the old one; no sentence if it is nothing."""
    found = weakening(old, new, kinds)
    sentences = [
        *_sentences(found.found, old, new, kinds),
        *_recipient_sentences(old.recipients, new.recipients),
    ]
    return RequiresLess(
        tuple(sentences[:MOST_SENTENCES]), max(len(sentences) - MOST_SENTENCES, 0), found.is_cut
    )


def _sentences(
    found: Sequence[Weaker], old: PolicyDocument, new: PolicyDocument, kinds: Sequence[KindFacts]
) -> list[str]:
    """One sentence for all with the same kinds, conditions and outcomes; the amounts are put together."""
    codes = {code for each in (old, new) for code in _codes(each)}
    bands: dict[tuple[str, str, _Outcome], list[Band]] = {}
    for one in found:
        conditions = dict.fromkeys(
            [
                *further_texts(one.old.rule.when, old.time_zone),
                *further_texts(one.new.rule.when, new.time_zone),
            ]
        )
        number = one.new.number if one.new.number <= len(new.rules) else 0
        outcome = _Outcome(
            number,
            levels_text(one.new.rule.levels),
            "" if one.old.rule.refuse else levels_text(one.old.rule.levels),
        )
        bands.setdefault((_kinds_text(one, kinds), " ".join(conditions), outcome), []).extend(one.bands)
    return [
        outcome.sentence(" ".join(filter(None, (names, _bands_text(each, codes), conditions))))
        for (names, conditions, outcome), each in bands.items()
    ]


@dataclass(frozen=True)
class _Outcome:
    """What the new version requires: the number of its rule, 0 for the last one, and the approvals.

    `before` are the approvals that the old version requires; empty if it refuses.
    """

    number: int
    approvals: str
    before: str

    def sentence(self, what: str) -> str:
        if not self.before:
            template = (
                gettext("{what}: {approvals} under rule {number}, currently refused.")
                if self.number
                else gettext("{what}: {approvals} under the last rule, currently refused.")
            )
        else:
            template = (
                gettext("{what}: {approvals} under rule {number}, currently {before}.")
                if self.number
                else gettext("{what}: {approvals} under the last rule, currently {before}.")
            )
        return template.format(what=what, approvals=self.approvals, number=self.number, before=self.before)


def _kinds_text(one: Weaker, kinds: Sequence[KindFacts]) -> str:
    found = set(one.kinds)
    if found == {kind.name for kind in kinds}:
        return gettext("All operations")
    if found == {kind.name for kind in kinds if kind.has_amount}:
        return gettext("All payments")
    names = [kind_name(kind) for kind in one.kinds]
    if len(names) <= _MOST_NAMED:
        return joined(names)
    more = len(names) - _MOST_NAMED
    others = ngettext("{count} other kind", "{count} other kinds", more).format(count=more)
    return joined([*names[:_MOST_NAMED], others])


def _codes(document: PolicyDocument) -> set[str]:
    return {code for rule in document.rules if rule.when.currencies for code in rule.when.currencies.codes}


def _bands_text(bands: Sequence[Band], codes: Collection[str]) -> str:
    """The amounts in words; empty if they are all amounts."""
    if any(not band.currency for band in bands):
        return ""
    bands = _neighbours_as_one(bands)
    whole = {band.currency for band in bands if band.above is None and band.up_to is None}
    if whole > set(codes):
        return ""
    texts = [amount_text(_conditions_of(band)) for band in bands if band.currency not in whole]
    if whole - {OTHER_CURRENCY}:
        texts.append(
            currencies_text(Conditions(currencies=Currencies(codes=tuple(sorted(whole - {OTHER_CURRENCY})))))
        )
    if OTHER_CURRENCY in whole:
        others = Currencies(codes=tuple(sorted(codes)), other_than=True)
        texts.append(currencies_text(Conditions(currencies=others)))
    if len(texts) < 2:
        return "".join(texts)
    return gettext("{texts} or {last}").format(texts=", ".join(texts[:-1]), last=texts[-1])


def _neighbours_as_one(bands: Sequence[Band]) -> list[Band]:
    found: list[Band] = []
    for band in sorted(bands, key=lambda one: (one.currency, one.above or 0)):
        if found and found[-1].currency == band.currency and found[-1].up_to == band.above is not None:
            found[-1] = replace(found[-1], up_to=band.up_to)
        else:
            found.append(band)
    return found


def _conditions_of(band: Band) -> Conditions:
    return Conditions(
        currencies=Currencies(codes=(band.currency,)), amount=AmountBand(above=band.above, up_to=band.up_to)
    )


def _recipient_sentences(old: RecipientRequirements, new: RecipientRequirements) -> list[str]:
    texts = []
    dropped = [kind for kind in old.approved_only if kind not in new.approved_only]
    if dropped:
        text = gettext("This version no longer requires approved recipients for {kinds}.")
        texts.append(text.format(kinds=joined([kind_name(kind) for kind in dropped])))
    if old.cooling and new.cooling is None:
        texts.append(gettext("This version no longer requires a cooling-off period for recipients."))
    elif old.cooling and new.cooling and old.cooling.stricter(new.cooling) != new.cooling:
        texts.append(
            gettext(
                "This version permits more during the cooling-off period for recipients, or makes it shorter."
            )
        )
    return texts
