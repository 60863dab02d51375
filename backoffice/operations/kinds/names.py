"""Compares the name a person typed with the name the bank gives."""

import re
import unicodedata
from enum import Enum

_TITLES = {"MR", "MRS", "MS", "MISS", "DR", "CHIEF", "ENGR", "ALHAJI", "ALHAJA"}
_LEGAL_FORMS = {"LTD", "LIMITED", "PLC", "INC", "CO", "COMPANY", "ENTERPRISES", "VENTURES"}


class Match(Enum):
    """How two names compare."""

    EXACT = "exact"
    CLOSE = "close"
    DIFFERENT = "different"


def compare_names(typed: str, held: str) -> Match:
    """Exact: the same words in any order. Close: every word of the shorter name stands in the longer one.

    Case, accents, punctuation, titles and the legal form do not count.
    """
    first, second = _words(typed), _words(held)
    if first == second and first:
        return Match.EXACT
    shorter, longer = sorted((first, second), key=len)
    return Match.CLOSE if shorter and shorter <= longer else Match.DIFFERENT


def _words(name: str) -> frozenset[str]:
    ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.findall(r"[A-Z0-9]+", ascii_only.upper().replace("'", ""))
    return frozenset(words) - _TITLES - _LEGAL_FORMS or frozenset(words)
