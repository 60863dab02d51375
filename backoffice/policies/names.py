"""The names that the people and groups of rules have now. A document keeps those of the time when it was written."""

from collections.abc import Iterable
from dataclasses import dataclass

from backoffice.accounts.models import StaffGroup, User
from backoffice.policies.document import Levels, Named, People, PolicyDocument, Rule


@dataclass(frozen=True)
class CurrentNames:
    """Names by id, of groups that were retired and people who were deactivated too."""

    groups: dict[int, str]
    people: dict[int, str]

    @classmethod
    def of(cls, named: Iterable[People]) -> "CurrentNames":
        """The names that these people and groups have now. A query for groups and one for people, if there are any."""
        found = list(named)
        groups = {one.group.id for one in found if one.group}
        people = {each.id for one in found for each in one.named}
        return cls(
            dict(StaffGroup.objects.filter(pk__in=groups).values_list("pk", "name")) if groups else {},
            dict(User.objects.filter(pk__in=people).values_list("pk", "full_name")) if people else {},
        )

    def in_levels(self, levels: Levels) -> Levels:
        return tuple(level.model_copy(update={"of": self._in_people(level.of)}) for level in levels)

    def in_rule(self, rule: Rule) -> Rule:
        if rule.when.preparer is None:
            return rule.model_copy(update={"levels": self.in_levels(rule.levels)})
        when = rule.when.model_copy(update={"preparer": self._in_people(rule.when.preparer)})
        return rule.model_copy(update={"when": when, "levels": self.in_levels(rule.levels)})

    def _in_people(self, people: People) -> People:
        group = _renamed(people.group, self.groups) if people.group else None
        named = tuple(_renamed(one, self.people) for one in people.named)
        return people.model_copy(update={"group": group, "named": named})


def _renamed(one: Named, names: dict[int, str]) -> Named:
    return one.model_copy(update={"name": names.get(one.id, one.name)})


def people_of(rules: Iterable[Rule]) -> list[People]:
    """Everybody whom these rules name."""
    return [
        of
        for rule in rules
        for of in (rule.when.preparer, *(level.of for level in rule.levels))
        if of is not None
    ]


def with_current_names(document: PolicyDocument) -> PolicyDocument:
    """The same document with the names that its people and groups have now."""
    names = CurrentNames.of(people_of(document.rules))
    return document.model_copy(update={"rules": tuple(names.in_rule(rule) for rule in document.rules)})
