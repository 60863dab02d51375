"""The request as views behind sign-in see it."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from backoffice.accounts.models import User
from backoffice.accounts.sessions import SessionStore


class StaffRequest(HttpRequest):
    """A request of a person who is signed in. The middleware sees to it; views need not ask."""

    user: User
    session: SessionStore
    htmx: HtmxDetails
