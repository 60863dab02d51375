"""QR codes in templates: `{% qr_code address %}`."""

import segno
from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()
_LONGEST = 500  # what no longer fits a code that a phone can read off a screen
_SIDE = 180


@register.simple_tag
def qr_code(text: str) -> SafeString | str:
    """An image that a phone reads as exactly this text; nothing for no text, and for one that is too long."""
    if not 0 < len(text) <= _LONGEST:
        return ""
    source = segno.make_qr(text).svg_data_uri(scale=4, border=3, light="#fff")
    return format_html(
        '<img src="{}" width="{}" height="{}" alt="QR code of {}">', source, _SIDE, _SIDE, text
    )
