"""What the demo adds to the pages. The demo's settings list this processor, no others do."""

from urllib.parse import urljoin

from django.conf import settings
from django.http import HttpRequest


def demo(_request: HttpRequest) -> dict[str, str]:
    """`sign_in_aids`: the template with everybody's current code; without it the sign-in pages include nothing.

    `service_console`: where the simulated service shows the token that it asks for.
    """
    return {
        "sign_in_aids": "demo/_sign_in_codes.html",
        "service_console": urljoin(settings.GATEWAY_URL, "/_sandbox/"),
    }
