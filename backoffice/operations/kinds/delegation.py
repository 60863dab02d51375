"""Delegation: while an approver is on leave, a person of the same group approves instead.

The approver on leave prepares it, and an administrator who is neither of the two approves it. Nothing is sent.
"""

from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.groups import groups_of, people_in
from backoffice.accounts.models import User
from backoffice.accounts.restrictions import longest_restriction_hours
from backoffice.accounts.roles import users_with_permission
from backoffice.core import clock
from backoffice.core.web.formatting import format_day
from backoffice.core.web.forms import reason_field
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.base import Facts, KindForm, LocalEffect, LocalKind, Payload, Recipient
from backoffice.operations.permissions import APPROVE, APPROVE_GOVERNANCE
from backoffice.operations.refusals.codes import Refusal
from backoffice.policies.delegations import overlapping
from backoffice.policies.models import AlteredPolicyError, policy_in_effect

LONGEST = timedelta(days=184)


class DelegationPayload(Payload):
    """Who is on leave, who approves instead, the group of both, and the days, both included, in this time zone."""

    person: int
    person_name: str
    stand_in: int
    stand_in_name: str
    group: int
    group_name: str
    first_day: date
    last_day: date
    time_zone: str
    reason: str

    def identity(self) -> dict[str, Any]:
        """Only one delegation of a person may be pending."""
        return {"person": self.person}

    @property
    def starts_at(self) -> datetime:
        return datetime.combine(self.first_day, time(0), ZoneInfo(self.time_zone))

    @property
    def ends_at(self) -> datetime:
        """The midnight after the last day."""
        return datetime.combine(self.last_day + timedelta(days=1), time(0), ZoneInfo(self.time_zone))


def check_delegation(payload: DelegationPayload) -> None:
    """Raise OperationError, with the reason as a code, unless this delegation can begin as things are now."""
    if payload.person == payload.stand_in:
        raise OperationError(Refusal.DELEGATION_TO_ONESELF)
    if not payload.first_day <= payload.last_day < payload.first_day + LONGEST:
        raise OperationError(Refusal.DELEGATION_PERIOD)
    if payload.ends_at <= clock.now():
        raise OperationError(Refusal.DELEGATION_OVER)
    pair = {payload.person, payload.stand_in}
    if set(users_with_permission(APPROVE).filter(pk__in=pair).values_list("pk", flat=True)) != pair:
        raise OperationError(Refusal.DELEGATION_NOT_ENTITLED, hours=str(longest_restriction_hours()))
    names = dict(people_in([payload.group]).filter(pk__in=pair).values_list("pk", "full_name"))
    if names != {payload.person: payload.person_name, payload.stand_in: payload.stand_in_name}:
        raise OperationError(Refusal.DELEGATION_GROUP)
    others = list(overlapping(payload.starts_at, payload.ends_at).values_list("person", "stand_in"))
    if any(person == payload.person for person, _stand_in in others):
        raise OperationError(Refusal.DELEGATION_OVERLAPS)
    if any(person == payload.stand_in or stand_in == payload.person for person, stand_in in others):
        raise OperationError(Refusal.DELEGATION_CHAIN)


def stand_ins_for(person: User) -> list[tuple[str, str]]:
    """Whom this person can name, as choices: group and id, name and group."""
    groups = groups_of([person.pk]).get(person.pk, {})
    others = (
        users_with_permission(APPROVE).filter(pk__in=people_in(groups).values("pk")).exclude(pk=person.pk)
    )
    names = dict(others.order_by("full_name", "pk").values_list("pk", "full_name"))
    theirs = groups_of(names)
    return [
        (f"{group}-{pk}", f"{name} ({group_name})")
        for pk, name in names.items()
        for group, group_name in theirs[pk].items()
        if group in groups
    ]


class DelegationForm(KindForm):
    """Asks for the stand-in and the days; `person`, who is on leave, comes with the address of the form."""

    person = forms.IntegerField(required=False, widget=forms.HiddenInput)
    stand_in = forms.ChoiceField(
        label=_("Stand-in"),
        help_text=_("Approvers who are in a group with you."),
        error_messages={"required": _("Select who approves for you.")},
    )
    first_day = forms.DateField(label=_("First day"), widget=forms.DateInput(attrs={"type": "date"}))
    last_day = forms.DateField(
        label=_("Last day"),
        help_text=_("Included. The delegation ends automatically at the end of this day."),
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    reason = reason_field(
        help_text=_("Shown to the approver."),
        missing=_("Enter the reason, such as annual leave."),
        max_length=300,
        rows=2,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        wanted = str((self.data if self.is_bound else self.initial).get("person") or "")
        is_id = wanted.isascii() and wanted.isdigit() and len(wanted) < 19
        self.away = User.objects.filter(pk=int(wanted) if is_id else 0, is_active=True).first()
        choices = stand_ins_for(self.away) if self.away else []
        stand_in: Any = self.fields["stand_in"]
        stand_in.choices = [("", gettext("Select a person")), *choices]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.away is None:
            self.add_error(None, gettext("Open the form from My account, Delegations. Nothing was prepared."))
        if not self.errors:
            try:
                check_delegation(self.content())
            except OperationError as exc:
                self.add_error(None, str(exc))
            except AlteredPolicyError:
                self.add_error(None, str(Refusal.POLICY_ALTERED.label))
        return values

    def content(self) -> DelegationPayload:
        group, _sign, stand_in = self.cleaned_data["stand_in"].partition("-")
        names = dict(User.objects.filter(pk=int(stand_in)).values_list("pk", "full_name"))
        away = self.away
        return DelegationPayload(
            person=away.pk if away else 0,
            person_name=away.full_name if away else "",
            stand_in=int(stand_in),
            stand_in_name=names.get(int(stand_in), ""),
            group=int(group),
            group_name=groups_of([int(stand_in)]).get(int(stand_in), {}).get(int(group), ""),
            first_day=self.cleaned_data["first_day"],
            last_day=self.cleaned_data["last_day"],
            time_zone=policy_in_effect().document.time_zone,
            reason=self.cleaned_data["reason"],
        )


class DelegationKind(LocalKind[DelegationPayload]):
    """Lets another person approve during a leave; needs an administrator's approval."""

    name = "delegation"
    label = _("Delegation")
    plural = _("Delegations")
    letter = "J"
    verb = _("Name a stand-in")
    permission = APPROVE
    approval_permission = APPROVE_GOVERNANCE
    effect = LocalEffect.STARTS_DELEGATION
    success_texts = (
        _("In effect"),
        _("The stand-in can approve during the leave. The delegation ends automatically."),
    )
    payload_type = DelegationPayload
    form_type = DelegationForm

    def sentence(self, payload: DelegationPayload) -> str:
        if payload.first_day == payload.last_day:
            return gettext("Let {stand_in} approve for {person} on {day}").format(
                stand_in=payload.stand_in_name,
                person=payload.person_name,
                day=format_day(payload.first_day),
            )
        return gettext("Let {stand_in} approve for {person} from {first} to {last}").format(
            stand_in=payload.stand_in_name,
            person=payload.person_name,
            first=format_day(payload.first_day),
            last=format_day(payload.last_day),
        )

    def recipient(self, payload: DelegationPayload) -> Recipient:
        return Recipient(payload.stand_in_name, payload.group_name)

    def facts(self, payload: DelegationPayload) -> Facts:
        return [
            (gettext("On leave"), payload.person_name),
            (gettext("Stand-in"), payload.stand_in_name),
            (gettext("Shared group"), payload.group_name),
            (gettext("First day"), format_day(payload.first_day)),
            (gettext("Last day"), format_day(payload.last_day)),
            (gettext("Time zone"), payload.time_zone),
            (gettext("Reason"), payload.reason),
        ]

    def initial(self, payload: DelegationPayload) -> dict[str, Any]:
        return {
            "person": payload.person,
            "stand_in": f"{payload.group}-{payload.stand_in}",
            "first_day": payload.first_day.isoformat(),
            "last_day": payload.last_day.isoformat(),
            "reason": payload.reason,
        }

    def affected_people(self, payload: DelegationPayload) -> frozenset[int]:
        """The stand-in, who gets a right. The one on leave prepares it, and so approves nothing of it either."""
        return frozenset({payload.stand_in})

    def check_proposal(self, payload: DelegationPayload, preparer: User) -> None:
        if payload.person != preparer.pk:
            raise OperationError(Refusal.DELEGATION_OF_ANOTHER)
        check_delegation(payload)
