"""My account: the preferences, and ending one's own sessions. Also the page of keyboard shortcuts.

The second factor and recovery codes are only shown here; `sign_in.py` has the pages that change them.
"""

from django import forms
from django.contrib import messages
from django.forms import model_to_dict
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from backoffice.accounts import second_factor, sessions, staff
from backoffice.accounts.access import fresh_second_factor_required, language_of
from backoffice.accounts.models import Language, Theme
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.forms import PageForm, time_zone_choices


class PreferencesForm(PageForm):
    time_zone = forms.ChoiceField(label=_("Time zone"), choices=time_zone_choices)
    theme = forms.ChoiceField(label=_("Theme"), choices=Theme.choices)
    language = forms.ChoiceField(label=_("Language"), choices=Language.choices)


@require_safe
def my_account(request: StaffRequest) -> HttpResponse:
    return _page(request, PreferencesForm(initial=model_to_dict(request.user, PreferencesForm.base_fields)))


@require_safe
def shortcuts(request: StaffRequest) -> HttpResponse:
    """The keys that pages understand. app.js shows this page's table in a dialog."""
    return render(request, "accounts/shortcuts.html")


@require_POST
def preferences(request: StaffRequest) -> HttpResponse:
    form = PreferencesForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    staff.save_preferences(request.user, **form.cleaned_data)
    with translation.override(language_of(request)):
        messages.success(request, gettext("Preferences saved."))
    return redirect("accounts:my_account")


@require_POST
@fresh_second_factor_required
def end_session(request: StaffRequest, reference: str) -> HttpResponse:
    if sessions.end_session(request.user, reference):
        messages.success(request, gettext("Session ended."))
    else:
        messages.info(request, gettext("This session had already ended."))
    return redirect("accounts:my_account")


@require_POST
@fresh_second_factor_required
def end_other_sessions(request: StaffRequest) -> HttpResponse:
    ended = sessions.end_other_sessions(request)
    messages.success(
        request,
        ngettext("{count} other session ended.", "{count} other sessions ended.", ended).format(count=ended),
    )
    return redirect("accounts:my_account")


def _page(request: StaffRequest, form: PreferencesForm, *, status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "authenticator": request.session.authenticator,
        "codes_left": second_factor.recovery_codes_left(request.user),
        "sessions": sessions.live_sessions_of(request.user),
        "this_session": request.session.row_key,
    }
    return render(request, "accounts/my_account.html", context, status=status)
