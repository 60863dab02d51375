"""The sweeper's job of API keys: refresh the list of keys."""

from backoffice.api_keys.key_list import refresh_keys_if_due

JOBS = {"refresh_keys_if_due": refresh_keys_if_due}
