"""Marks on views that the middleware reads, and the demand for a fresh second factor."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.http import HttpResponseBase

from backoffice.accounts.http import StaffRequest
from backoffice.accounts.navigation import step
from backoffice.accounts.services import has_fresh_second_factor

_View = TypeVar("_View", bound=Callable[..., HttpResponseBase])


def second_factor_not_required(view: _View) -> _View:
    """The password is enough: for the steps of sign-in themselves, and for signing out."""
    return _marked(view, second_factor_required=False)


def recovery_codes_not_required(view: _View) -> _View:
    """Open to people who have given the second factor but not yet stored their recovery codes."""
    return _marked(view, recovery_codes_required=False)


def polled(view: _View) -> _View:
    """The page calls this view by itself, so a call is no sign of a person and does not keep the session alive."""
    return _marked(view, counts_as_use=False)


def fresh_second_factor_required(view: _View) -> _View:
    """Ask for a code first unless one was given within the last five minutes; then come back here."""

    @wraps(view)
    def guarded(request: StaffRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not has_fresh_second_factor(request):
            return step(request, "accounts:second_factor")
        return view(request, *args, **kwargs)

    return cast(_View, guarded)


def _marked(view: _View, **marks: Any) -> _View:
    @wraps(view)
    def marked(*args: Any, **kwargs: Any) -> HttpResponseBase:
        return view(*args, **kwargs)

    for name, value in marks.items():
        setattr(marked, name, value)
    return cast(_View, marked)
