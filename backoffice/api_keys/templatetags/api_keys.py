"""Template tags of API keys for other apps' pages."""

from django import template

from backoffice.api_keys import key_list

register = template.Library()
register.simple_tag(key_list.expiring_keys)
