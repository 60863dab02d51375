"""Words for operations in templates."""

from django import template

from backoffice.operations.kinds import KINDS

register = template.Library()


@register.filter
def kind_label(name: str) -> str:
    """`Withdrawal` for `withdrawal`; the bare name of a kind that a later release no longer knows."""
    return KINDS[name].label if name in KINDS else name
