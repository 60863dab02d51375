"""What the demo adds to the pages before sign-in."""

from django.http import HttpRequest


def sign_in_aids(_request: HttpRequest) -> dict[str, str]:
    """`sign_in_aids`: the template with everybody's current code. The demo's settings list this processor,
    no others do, and without it the sign-in pages have nothing to include.
    """
    return {"sign_in_aids": "demo/_sign_in_codes.html"}
