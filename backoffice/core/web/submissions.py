"""Post/redirect/get for every form: the page that answers a submitted form gets an address of its own.

Otherwise Back and Reload would ask the person to send the form again, and a confirmed reload would send it again. A
view renders its answer to a POST as usual; the middleware stores that page, encrypted, and redirects to it.
"""

import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.http import escape_leading_slashes, url_has_allowed_host_and_scheme

from backoffice.core.encryption import DecryptionError, decrypt, encrypt
from backoffice.core.models import AnsweredForm

PARAMETER = "answer"
KEPT = timedelta(hours=1)
MAX_BYTES = 500_000  # a larger page is answered directly

_View = TypeVar("_View", bound=Callable[..., HttpResponseBase])


def shown_once(view: _View) -> _View:
    """For a view whose answer holds a secret: it is answered directly and never stored."""

    @wraps(view)
    def answered_directly(*args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(*args, **kwargs)
        response.shown_once = True  # type: ignore[attr-defined]
        return response

    return cast(_View, answered_directly)


class PostRedirectGetMiddleware:
    """Stores the HTML answer to a browser's POST and redirects to it; answers the GET that follows.

    For signed-in people only, each seeing the answers of their own session. Requests by scripts (htmx) are left alone,
    since they make no entry in the browser's history. Browsers mark the others with `Sec-Fetch-Mode: navigate`.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method == "GET" and PARAMETER in request.GET:
            return _stored_answer(request) or HttpResponseRedirect(_without_parameter(request))
        response = self.get_response(request)
        is_submitted_form = (
            request.method == "POST" and is_navigation(request) and request.user.is_authenticated
        )
        if not is_submitted_form or not _can_be_stored(response):
            return response
        return HttpResponseRedirect(_store(request, response), status=303)


def submission_id(*sources: QueryDict) -> uuid.UUID:
    """The id of a form, from the first of these that has one; otherwise a new one.

    What a form creates has its id, so that submitting it twice creates one thing.
    """
    given = next(filter(None, (source.get("submission", "") for source in sources)), "")
    try:
        return uuid.UUID(given)
    except ValueError:
        return uuid.uuid4()


def is_navigation(request: HttpRequest) -> bool:
    """Whether a browser opens a page with it, so that the address enters its history."""
    return request.headers.get("Sec-Fetch-Mode") == "navigate"


def _can_be_stored(response: HttpResponseBase) -> bool:
    return (
        isinstance(response, HttpResponse)
        and (response.status_code == 200 or 400 <= response.status_code < 500)
        and response.get("Content-Type", "").startswith("text/html")
        and not getattr(response, "shown_once", False)
        and len(response.content) <= MAX_BYTES
    )


def _store(request: HttpRequest, response: HttpResponseBase) -> str:
    """Store the page. Its address is that of the page with the form, which opens once the answer has expired."""
    answer = AnsweredForm(pk=uuid.uuid4(), status=response.status_code)
    text = cast(HttpResponse, response).content.decode()
    answer.encrypted_page = encrypt(text, bound_to=_bound_to(request, answer.pk))
    AnsweredForm.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    answer.save(force_insert=True)
    form_page = urlsplit(_form_page(request))
    query = QueryDict(form_page.query, mutable=True)
    query[PARAMETER] = str(answer.pk)
    return escape_leading_slashes(f"{form_page.path}?{query.urlencode()}")


def _form_page(request: HttpRequest) -> str:
    """The page on which the form is; the form's own address without a usable Referer."""
    referrer = request.headers.get("Referer", "")
    allowed = url_has_allowed_host_and_scheme(
        referrer, {request.get_host()}, require_https=request.is_secure()
    )
    return referrer if referrer and allowed else request.get_full_path()


def _stored_answer(request: HttpRequest) -> HttpResponse | None:
    """The stored page; None if it has expired or belongs to another session."""
    if not request.user.is_authenticated:
        return None
    try:
        answer = AnsweredForm.objects.get(
            pk=uuid.UUID(request.GET[PARAMETER]), created_at__gte=timezone.now() - KEPT
        )
        page = decrypt(bytes(answer.encrypted_page), bound_to=_bound_to(request, answer.pk))
    except (ValueError, AnsweredForm.DoesNotExist, DecryptionError):
        return None
    return HttpResponse(page, status=answer.status)


def _bound_to(request: HttpRequest, pk: uuid.UUID) -> str:
    return f"answered-form:{request.session.session_key}:{pk}"


def _without_parameter(request: HttpRequest) -> str:
    query = request.GET.copy()
    del query[PARAMETER]
    return escape_leading_slashes(f"{request.path}?{query.urlencode()}" if query else request.path)
