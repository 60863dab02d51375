"""Two views that differ only in whether a call counts as use, beside the pages of sign-in."""

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from backoffice.accounts.access import does_not_extend_session


def opened(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("opened by a person")


@does_not_extend_session
def refreshed(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("asked by the page itself")


urlpatterns = [
    path("opened/", opened),
    path("refreshed/", refreshed),
    path("account/", include("backoffice.accounts.urls")),
]
