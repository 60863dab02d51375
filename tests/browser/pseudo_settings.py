"""The product's settings with one more language, in which every text is in brackets and longer.

Its catalogue (`tests.pseudo_language`) is in the folder of the data.
"""

from backoffice import settings
from backoffice.settings import *  # noqa: F403 - Django reads the settings from one module

LANGUAGES = [*settings.LANGUAGES, ("eo", "Pseudo")]
LOCALE_PATHS = [settings.DATA_DIR / "locale", *settings.LOCALE_PATHS]
