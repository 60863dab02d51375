"""What other pages say of API keys."""

from django import template

from backoffice.integration import selectors

register = template.Library()
register.simple_tag(selectors.keys_that_end)
