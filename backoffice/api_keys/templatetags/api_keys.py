"""`expiring_keys`: the API keys that expire soon, for the warnings on the overview."""

from django import template

from backoffice.api_keys import key_list

register = template.Library()
register.simple_tag(key_list.expiring_keys)
