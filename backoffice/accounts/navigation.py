"""Where to go next: to the step of sign-in that is missing, and afterwards to where the person wanted to be."""

from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

NEXT = "next"


def step(request: HttpRequest, name: str) -> HttpResponse:
    """Send the browser to a step of sign-in, which leads back to the page it is on now.

    A request by htmx is answered with an order to load the whole page, so that no sign-in form ends up
    inside another page.
    """
    address = with_next(name, _page_of(request))
    if request.headers.get("HX-Request") == "true":
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address)


def with_next(name: str, wanted: str) -> str:
    """The address of a step, which remembers the page wanted after it."""
    return f"{reverse(name)}?{urlencode({NEXT: wanted})}" if wanted else reverse(name)


def wanted_page(request: HttpRequest) -> str:
    """The page that was asked for before sign-in, if it is one of ours; otherwise the empty string."""
    wanted = request.POST.get(NEXT) or request.GET.get(NEXT, "")
    return wanted if _is_ours(request, wanted) else ""


def page_after_sign_in(request: HttpRequest) -> str:
    """The page that was asked for before sign-in, or the overview."""
    return wanted_page(request) or resolve_url(settings.LOGIN_REDIRECT_URL)


def _page_of(request: HttpRequest) -> str:
    """The page that the person looks at. A form's target is none: it cannot be opened by its address."""
    if request.method == "GET" and "HX-Request" not in request.headers:
        return request.get_full_path()
    shown = request.headers.get("HX-Current-URL") or request.headers.get("Referer", "")
    parts = urlsplit(shown)
    return parts._replace(scheme="", netloc="", fragment="").geturl() if _is_ours(request, shown) else ""


def _is_ours(request: HttpRequest, address: str) -> bool:
    return url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
