"""Words for operations in templates."""

from typing import Any

from django import template

from backoffice.audit.models import Entry
from backoffice.operations.kinds import KINDS, Kind

register = template.Library()
_SAID = ("comment", "reason", "answer", "seen")


@register.simple_tag
def kinds() -> list[Kind[Any]]:
    """Every kind of operation, in the order of the registry."""
    return list(KINDS.values())


@register.filter
def kind_label(name: str) -> str:
    """`Withdrawal` for `withdrawal`; the bare name of a kind that a later release no longer knows."""
    return KINDS[name].label if name in KINDS else name


@register.filter
def words(entry: Entry) -> str:
    """What was said with it: the comment, the reason, or what the service answered."""
    return next((str(entry.detail[name]) for name in _SAID if entry.detail.get(name)), "")
