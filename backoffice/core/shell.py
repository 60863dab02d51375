"""What the frame of every page shows: where this deployment stands, in words and colour."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest

_WORDS = {
    "sandbox": "SANDBOX · NO REAL MONEY",
    "staging": "STAGING · TEST MONEY",
    "production": "PRODUCTION · REAL MONEY",
}


@dataclass(frozen=True)
class Environment:
    """The name is the class on <body>, which carries the colour; the words stand in the top bar."""

    name: str
    words: str


def shell(_request: HttpRequest) -> dict[str, Environment]:
    """Context processor: `environment` in every template."""
    return {"environment": Environment(settings.ENVIRONMENT, _WORDS[settings.ENVIRONMENT])}
