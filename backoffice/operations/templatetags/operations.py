"""Words for operations in templates."""

from django import template

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.operations.kinds import KINDS, AnyKind, Section
from backoffice.operations.kinds.base import Code

register = template.Library()
_SAID = ("comment", "reason", "answer", "seen")


@register.simple_tag
def kinds_open_to(person: User) -> list[tuple[Section, list[AnyKind]]]:
    """The kinds that this person may prepare, in the order of the registry, by section of the menu."""
    open_to = [kind for kind in KINDS.values() if person.has_perm(kind.permission)]
    sections = [(section, [kind for kind in open_to if kind.section == section]) for section in Section]
    return [(section, kinds) for section, kinds in sections if kinds]


@register.filter
def kind_label(name: str) -> str:
    """`Withdrawal` for `withdrawal`; the bare name of a kind that a later release no longer knows."""
    return KINDS[name].label if name in KINDS else name


@register.filter
def in_groups(text: str) -> list[str]:
    """The text in pieces of four characters, for two people to compare."""
    return Code(text).groups


@register.filter
def words(entry: Entry) -> str:
    """What was said with it: the comment, the reason, or what the service answered."""
    return next((str(entry.detail[name]) for name in _SAID if entry.detail.get(name)), "")
