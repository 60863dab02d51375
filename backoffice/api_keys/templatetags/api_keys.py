"""What other pages show of API keys."""

from django import template

from backoffice.api_keys import key_list

register = template.Library()
register.simple_tag(key_list.expiring_keys)
