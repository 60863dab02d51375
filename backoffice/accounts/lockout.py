"""What django-axes asks us while it counts wrong passwords."""

from typing import Any

from django.http import HttpRequest, HttpResponse


def keep_answer(
    _request: HttpRequest, answer: HttpResponse, _credentials: dict[str, Any] | None
) -> HttpResponse:
    """The sign-in page has said already, in our words and with status 429, that the person is locked out."""
    return answer
