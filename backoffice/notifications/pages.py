"""The pages of notifications: what a person chooses, and for auditors what was not delivered."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from backoffice.accounts.access import url_with_next
from backoffice.accounts.second_factor import has_fresh_second_factor
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.cached_reads import cached_in_process
from backoffice.core.web.forms import PageForm
from backoffice.core.web.mail import email_is_on
from backoffice.core.web.pagination import keyset_page
from backoffice.notifications import preferences as services
from backoffice.notifications.channels.chat import ChatUrlError, own_chat_service
from backoffice.notifications.events import CHOSEN_GROUPS, Group
from backoffice.notifications.models import UNDELIVERED, Digest, Message
from backoffice.notifications.preferences import Choice


class ChoicesForm(PageForm):
    """Channels and time of each group, as three fields for each."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for group in CHOSEN_GROUPS:
            label = group.label
            self.fields[f"{group}_email"] = forms.BooleanField(
                required=False, label=gettext("{group}: email").format(group=label)
            )
            self.fields[f"{group}_chat"] = forms.BooleanField(
                required=False, label=gettext("{group}: chat").format(group=label)
            )
            self.fields[f"{group}_digest"] = forms.ChoiceField(
                choices=Digest.choices, label=gettext("{group}: delivery time").format(group=label)
            )

    @staticmethod
    def initial_of(choices: dict[Group, Choice]) -> dict[str, Any]:
        """The initial values of a form with these choices."""
        return {
            f"{group}_{name}": value
            for group, choice in choices.items()
            for name, value in (
                ("email", choice.by_email),
                ("chat", choice.by_chat),
                ("digest", choice.digest.value),
            )
        }

    @property
    def rows(self) -> list[tuple[str, forms.BoundField, forms.BoundField, forms.BoundField]]:
        """The label and the three fields of each group."""
        return [
            (str(group.label), self[f"{group}_email"], self[f"{group}_chat"], self[f"{group}_digest"])
            for group in CHOSEN_GROUPS
        ]

    @property
    def choices(self) -> dict[Group, Choice]:
        """What was chosen. Call only on a valid form."""
        values = self.cleaned_data
        return {
            group: Choice(
                values[f"{group}_email"], values[f"{group}_chat"], Digest(values[f"{group}_digest"])
            )
            for group in CHOSEN_GROUPS
        }


class ChatChannelForm(PageForm):
    url = forms.CharField(
        max_length=1000,
        label=_("URL of the channel"),
        help_text=_(
            "The webhook URL from Slack, Discord or Teams, or an Apprise URL such as tgram://… or ntfys://…"
        ),
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_url(self) -> str:
        url = str(self.cleaned_data["url"])
        try:
            own_chat_service(url)
        except ChatUrlError as exc:
            raise forms.ValidationError(str(exc)) from exc
        return url


def preferences(request: StaffRequest) -> HttpResponse:
    """Show the choices, and save them on POST."""
    if request.method != "POST":
        choices = services.choices_of(request.user)
        return _page(request, ChoicesForm(initial=ChoicesForm.initial_of(choices)), ChatChannelForm())
    form = ChoicesForm(request.POST)
    if not form.is_valid():
        return _page(request, form, ChatChannelForm(), status=422)
    services.save_choices(request.user, form.choices)
    messages.success(request, gettext("Notifications saved."))
    return redirect("notifications:preferences")


@sensitive_post_parameters("url")
@require_POST
def chat_channel(request: StaffRequest) -> HttpResponse:
    """Set or replace the person's chat channel, with a fresh second factor: notices about the account go there."""
    if not has_fresh_second_factor(request):
        messages.info(request, gettext("Nothing was saved. Enter a code first, then the URL once more."))
        return redirect(url_with_next("accounts:second_factor", reverse("notifications:preferences")))
    form = ChatChannelForm(request.POST)
    if not form.is_valid():
        choices = services.choices_of(request.user)
        return _page(request, ChoicesForm(initial=ChoicesForm.initial_of(choices)), form, status=422)
    channel = services.save_chat_channel(request.user, form.cleaned_data["url"])
    messages.success(request, gettext("Chat channel saved: {service}.").format(service=channel.service))
    return redirect("notifications:preferences")


@require_POST
def delete_chat_channel(request: StaffRequest) -> HttpResponse:
    if services.delete_chat_channel(request.user):
        messages.success(request, gettext("Chat channel deleted."))
    return redirect("notifications:preferences")


@require_POST
def send_test(request: StaffRequest) -> HttpResponse:
    """Send a test message to every channel of the person."""
    try:
        number = services.send_test_message(request.user)
    except services.TestLimitError:
        text = gettext(
            "{count} test messages were sent within the last hour. Nothing was sent. Try again later."
        )
        messages.warning(request, text.format(count=services.TESTS_PER_HOUR))
        return redirect("notifications:preferences")
    if not number:
        messages.warning(request, gettext("No channel is set up. Nothing was sent."))
        return redirect("notifications:preferences")
    text = ngettext(
        "{count} test message queued. It arrives within a minute.",
        "{count} test messages queued. They arrive within a minute.",
        number,
    )
    messages.success(request, text.format(count=number))
    return redirect("notifications:preferences")


@require_safe
@permission_required("audit.view_entry", raise_exception=True)
def undelivered(request: StaffRequest) -> HttpResponse:
    """Messages whose last try failed: to be tried again, or given up; the newest first."""
    found = Message.objects.filter(UNDELIVERED).select_related("person")
    page = keyset_page(found, order=("-id",), cursor=request.GET.get("cursor"))
    context = {"page": page, "give_up_hours": settings.NOTIFY_GIVE_UP_HOURS, **undelivered_counts()}
    return render(request, "notifications/undelivered.html", context)


def undelivered_counts() -> dict[str, int]:
    """How many messages are to be tried again after a failure, and how many were given up."""
    return Message.objects.filter(UNDELIVERED).aggregate(
        retrying=Count("pk", filter=Q(due_at__isnull=False)),
        given_up=Count("pk", filter=Q(given_up_at__isnull=False)),
    )


def undelivered_notifications(_request: HttpRequest) -> dict[str, object]:
    """Context processor: `undelivered_notifications`, read once a minute, and only if a template uses it."""
    return {"undelivered_notifications": _cached_counts}


def _cached_counts() -> dict[str, int]:
    return cached_in_process("undelivered-notifications", undelivered_counts, seconds=60)


def _page(
    request: StaffRequest, form: ChoicesForm, chat_form: ChatChannelForm, *, status: int = 200
) -> HttpResponse:
    context = {
        "form": form,
        "chat_form": chat_form,
        "chat_channel": services.chat_channel_of(request.user),
        "email_is_on": email_is_on() and bool(settings.PUBLIC_URL),
    }
    return render(request, "notifications/preferences.html", context, status=status)
