"""Formats of the English pages."""

from backoffice.core.formats.common import *  # noqa: F403 - Django reads the names of this module
