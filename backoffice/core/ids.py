"""Long ids among the words of a text."""

import re
from html import escape

from django.utils.safestring import SafeString

_LONG_ID = re.compile(
    r"(?=\w*\d)\w{20,}", re.ASCII
)  # no word of any language has a digit and so many letters


def whole_ids(text: str) -> SafeString:
    """The text as HTML in which a long id goes to a line of its own rather than break in two."""
    return SafeString(_LONG_ID.sub(r'<span class="id">\g<0></span>', escape(text)))
