"""The answer to a form that does not belong to the session."""

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.services import record


def form_out_of_date(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's check against forged forms has refused this one: a page left open over a sign-in, or an attack.

    It is on record where somebody is signed in. Strangers leave no entry: they could fill the log with them.
    """
    if isinstance(request.user, User):
        with transaction.atomic():
            record(Action.ACCESS_REFUSED, actor=request.user, target=request.path, reason=reason)
    return render(request, "403_csrf.html", status=403)
