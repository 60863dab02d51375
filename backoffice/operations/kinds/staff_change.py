"""Change of staff: invite a person, change roles and groups, reactivate, reset the second factor; change a group.

Prepared by one administrator and approved by another; nothing is sent. The person changed can do neither.
"""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models import TextChoices
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict

from backoffice.accounts.groups import active_groups, groups_of
from backoffice.accounts.models import AuthenticatorDevice, StaffGroup, User
from backoffice.accounts.roles import PERMISSIONS, Role
from backoffice.accounts.setup_links import HandoverProgress, handover_progress
from backoffice.accounts.staff import role_names
from backoffice.core.web.forms import reason_field
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.base import Facts, KindForm, LocalEffect, LocalKind, Payload, Recipient
from backoffice.operations.kinds.form_fields import OneLineField
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.kinds.staffing import NEW_PERSON, Staffing, check_staffing
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import APPROVE_GOVERNANCE, PROPOSE
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import BEFORE_SENDING, Status


class StaffChange(TextChoices):
    """What is changed. The label is the title of the form."""

    INVITE = "invite", _("Invite person")
    RIGHTS = "rights", _("Change roles and groups")
    REACTIVATE = "reactivate", _("Reactivate account")
    SECOND_FACTOR = "second_factor", _("Reset second factor")
    CREATE_GROUP = "create_group", _("Create group")
    RENAME_GROUP = "rename_group", _("Rename group")
    RETIRE_GROUP = "retire_group", _("Retire group")


OF_PERSON = frozenset({StaffChange.RIGHTS, StaffChange.REACTIVATE, StaffChange.SECOND_FACTOR})
"""Changes of an account that exists."""
OF_GROUP = frozenset({StaffChange.RENAME_GROUP, StaffChange.RETIRE_GROUP})
"""Changes of a group that exists."""
CHOOSES_RIGHTS = frozenset({StaffChange.INVITE, StaffChange.RIGHTS})
MAKES_LINK = frozenset({StaffChange.INVITE, StaffChange.SECOND_FACTOR})
"""Changes that give the person a one-time link with a start code."""
_IN_BULK = frozenset({StaffChange.INVITE, StaffChange.CREATE_GROUP})
"""Changes that take nothing from anybody; several of them can be approved at once, unless one has a caution."""
_NAMES_GROUP = frozenset({StaffChange.CREATE_GROUP, StaffChange.RENAME_GROUP})


class NamedGroup(BaseModel):
    """A group of staff, with its name at the time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: int
    name: str


class StaffChangePayload(Payload):
    """The change, and what it replaces: if that is no longer so, it is not applied."""

    change: StaffChange
    person: int = NEW_PERSON
    full_name: str = ""
    email: str = ""
    roles: tuple[str, ...] = ()
    groups: tuple[NamedGroup, ...] = ()
    roles_before: tuple[str, ...] = ()
    groups_before: tuple[NamedGroup, ...] = ()
    group: int = 0
    group_name: str = ""
    group_name_before: str = ""
    reason: str

    def identity(self) -> dict[str, Any]:
        """Only one change of a person, an address or a group may be pending, whatever it is."""
        if self.person:
            return {"person": self.person}
        if self.group:
            return {"group": self.group}
        return {"email": self.email, "group_name": self.group_name.casefold()}

    @property
    def new_roles(self) -> list[str]:
        """Roles that the person gets. A reactivated person gets all of them again."""
        had = set() if self.change == StaffChange.REACTIVATE else set(self.roles_before)
        return [role for role in self.roles if role not in had]

    @property
    def new_groups(self) -> list[int]:
        """Ids of the groups that the person gets."""
        had = set() if self.change == StaffChange.REACTIVATE else {group.id for group in self.groups_before}
        return [group.id for group in self.groups if group.id not in had]

    @property
    def gives_rights(self) -> bool:
        """Whether the person can do more afterwards, or somebody could who has the new link."""
        gives = {StaffChange.INVITE, StaffChange.REACTIVATE, StaffChange.SECOND_FACTOR}
        return self.change in gives or bool(self.new_roles or self.new_groups)


def check_applicable(payload: StaffChangePayload) -> None:
    """Raise OperationError, with the reason as a code, unless the change can be made in the database as it is now."""
    before = Staffing.now()
    if payload.change in OF_PERSON:
        _check_person_unchanged(payload)
    if payload.change in OF_GROUP and not _group_is(payload.group, payload.group_name_before):
        raise OperationError(Refusal.PERSON_CHANGED)
    if payload.change == StaffChange.INVITE and User.objects.filter(email=payload.email).exists():
        raise OperationError(Refusal.EMAIL_TAKEN)
    if payload.change in _NAMES_GROUP and _is_name_taken(payload):
        raise OperationError(Refusal.GROUP_NAME_TAKEN)
    _check_groups_unchanged({*payload.groups, *payload.groups_before})
    check_staffing(before, _staffing_after(before, payload))


def progress_of_handover(operation: Operation, reader: User) -> HandoverProgress | None:
    """What became of the link and start code of an applied change; None if it made no link. At most four queries."""
    content = operation.payload
    if operation.kind != StaffChangeKind.name or operation.status != Status.SUCCEEDED:
        return None
    if content.get("change") not in MAKES_LINK or operation.closed_at is None:
        return None
    person = User.objects.filter(email=content.get("email", "")).first()
    if person is None:
        return None
    part = "link" if operation.preparer_id == reader.pk else ""
    if not part and any(one.approver_id == reader.pk for one in operation.approvals.all()):
        part = "code"
    return handover_progress(operation.pk, since=operation.closed_at, person=person, reader=reader, part=part)


def _staffing_after(before: Staffing, payload: StaffChangePayload) -> Staffing:
    if payload.change == StaffChange.RETIRE_GROUP:
        return before.without_group(payload.group)
    if payload.change in CHOOSES_RIGHTS or payload.change == StaffChange.REACTIVATE:
        if payload.change == StaffChange.RIGHTS and payload.person not in before.roles:
            return before  # deactivated: roles and groups count again once the account is reactivated
        groups = {group.id for group in payload.groups}
        return before.with_person(payload.person, name=payload.full_name, roles=payload.roles, groups=groups)
    return before


def _check_person_unchanged(payload: StaffChangePayload) -> None:
    person = User.objects.filter(pk=payload.person).first()
    if person is None or person.email != payload.email:
        raise OperationError(Refusal.PERSON_CHANGED)
    was_active = payload.change != StaffChange.REACTIVATE
    if payload.change != StaffChange.RIGHTS and person.is_active != was_active:
        raise OperationError(Refusal.PERSON_CHANGED)
    groups = groups_of([person.pk]).get(person.pk, {})
    if role_names(person) != list(payload.roles_before):
        raise OperationError(Refusal.PERSON_CHANGED)
    if set(groups) != {group.id for group in payload.groups_before}:
        raise OperationError(Refusal.PERSON_CHANGED)


def _check_groups_unchanged(shown: set[NamedGroup]) -> None:
    """Whoever approves the change reads names: each has to be that of its group."""
    if not shown:
        return
    names = dict(active_groups().values_list("pk", "name"))
    if any(names.get(group.id) != group.name for group in shown):
        raise OperationError(Refusal.PERSON_CHANGED)


def _group_is(group_id: int, name: str) -> bool:
    return active_groups().filter(pk=group_id, name=name).exists()


def _is_name_taken(payload: StaffChangePayload) -> bool:
    return active_groups().filter(name__iexact=payload.group_name).exclude(pk=payload.group).exists()


_ABOUT_EMAIL = frozenset({Refusal.EMAIL_TAKEN, Refusal.DUPLICATE_PENDING, Refusal.CHANGE_PENDING})
ROLE_FIELDS = {f"role_{role.name.lower()}": role for role in Role}
_GROUP_FIELD = "in_group_"


class StaffChangeForm(KindForm):
    """Asks for what the change needs; `change`, `person` and `group` come with the address of the form."""

    change = forms.ChoiceField(
        choices=StaffChange.choices, initial=StaffChange.INVITE, widget=forms.HiddenInput
    )
    person = forms.IntegerField(required=False, widget=forms.HiddenInput)
    group = forms.IntegerField(required=False, widget=forms.HiddenInput)
    full_name = OneLineField(
        label=_("Full name"), max_length=120, error_messages={"required": _("Enter the full name.")}
    )
    email = forms.CharField(
        label=_("Email address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
        error_messages={"required": _("Enter an email address.")},
    )
    group_name = OneLineField(
        label=_("Group name"), max_length=60, error_messages={"required": _("Enter the name of the group.")}
    )
    role_preparer = forms.BooleanField(
        label=Role.PREPARER.label,
        required=False,
        help_text=_("Prepares payments and recipients. Cannot approve or send them."),
    )
    role_approver = forms.BooleanField(
        label=Role.APPROVER.label,
        required=False,
        help_text=_("Approves and sends payments that others prepared."),
    )
    role_auditor = forms.BooleanField(
        label=Role.AUDITOR.label,
        required=False,
        help_text=_("Sees operations, balances and the audit log. Cannot prepare, approve or send."),
    )
    role_administrator = forms.BooleanField(
        label=Role.ADMINISTRATOR.label,
        required=False,
        help_text=_("Prepares and approves changes to people, groups and rules. Cannot approve payments."),
    )
    reason = reason_field(
        help_text=_("Shown to the approver."),
        missing=_("Enter the reason for this change."),
        max_length=300,
        rows=2,
    )
    typed = forms.CharField(required=False, initial="1", widget=forms.HiddenInput)
    """Distinguishes a form that was filled in, in which an empty tick means "no", from one that was just opened."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind_of_change = self._requested_change()
        self.title = self.kind_of_change.label
        person, group = self._requested_id("person"), self._requested_id("group")
        self.target = User.objects.filter(pk=person).first() if person else None
        self.target_group = active_groups().filter(pk=group).first() if group else None
        if self.kind_of_change == StaffChange.SECOND_FACTOR and self.target and not _is_set_up(self.target):
            self.title = _("Create a new link")
        self.groups_now: dict[int, str] = {}
        if self.target is not None:
            self.groups_now = groups_of([self.target.pk]).get(self.target.pk, {})
        self.offered_groups: list[StaffGroup] = []
        self._keep_needed_fields()
        if not self.is_bound and not self.initial.get("typed"):
            self._fill_in_present_values()

    @property
    def role_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ROLE_FIELDS if name in self.fields]

    @property
    def group_fields(self) -> list[forms.BoundField]:
        return [self[f"{_GROUP_FIELD}{group.pk}"] for group in self.offered_groups]

    def groups_to_offer(self) -> list[StaffGroup]:
        return list(active_groups())

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"]).strip().lower()
        try:
            validate_email(email)
        except ValidationError as exc:
            raise forms.ValidationError(gettext("Enter an email address.")) from exc
        return email

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.kind_of_change in OF_PERSON and self.target is None:
            self.add_error(None, gettext("Choose the person on the Team page. Nothing was prepared."))
        if self.kind_of_change in OF_GROUP and self.target_group is None:
            self.add_error(None, gettext("Choose the group on the Groups page. Nothing was prepared."))
        if not self.errors:
            self._check_content()
        return values

    def content(self) -> StaffChangePayload:
        members: dict[str, Any] = {"change": self.kind_of_change, "reason": self.cleaned_data["reason"]}
        if self.kind_of_change in OF_PERSON and self.target is not None:
            members |= self._of_person(self.target)
        if self.kind_of_change == StaffChange.INVITE:
            members |= {name: self.cleaned_data[name] for name in ("full_name", "email")}
        if self.kind_of_change in CHOOSES_RIGHTS:
            members |= self._chosen_rights()
        if self.kind_of_change in _NAMES_GROUP:
            members["group_name"] = self.cleaned_data["group_name"]
        if self.kind_of_change in OF_GROUP and self.target_group is not None:
            members |= {"group": self.target_group.pk, "group_name_before": self.target_group.name}
        return StaffChangePayload(**members)

    def _check_content(self) -> None:
        """Say at once what preparing would refuse."""
        payload = self.content()
        if self.target is not None and self._refuses_state_of(self.target):
            return
        try:
            if _changes_nothing(payload):
                raise OperationError(Refusal.NOTHING_CHANGES)
            check_applicable(payload)
        except OperationError as exc:
            self.add_refusal(exc)

    def _refuses_state_of(self, person: User) -> bool:
        """Whether another administrator activated or deactivated the account meanwhile; adds the error."""
        if self.kind_of_change == StaffChange.REACTIVATE and person.is_active:
            self.add_error(None, gettext("This account is active already. Nothing was prepared."))
        if self.kind_of_change == StaffChange.SECOND_FACTOR and not person.is_active:
            self.add_error(
                None, gettext("This account is deactivated. Nothing was prepared. Reactivate it first.")
            )
        return bool(self.errors)

    def add_refusal(self, refused: OperationError) -> None:
        """Add the refusal as an error of the email field if it is about that, otherwise of the whole form."""
        is_about_email = refused.refusal["code"] in _ABOUT_EMAIL and "email" in self.fields
        self.add_error("email" if is_about_email else None, str(refused))

    def _of_person(self, person: User) -> dict[str, Any]:
        roles, groups = tuple(role_names(person)), _named(self.groups_now)
        return {
            "person": person.pk,
            "full_name": person.full_name,
            "email": person.email,
            "roles": roles,
            "groups": groups,
            "roles_before": roles,
            "groups_before": groups,
        }

    def _chosen_rights(self) -> dict[str, Any]:
        roles = sorted(role.value for name, role in ROLE_FIELDS.items() if self.cleaned_data.get(name))
        groups = {
            group.pk: group.name
            for group in self.offered_groups
            if self.cleaned_data.get(f"{_GROUP_FIELD}{group.pk}")
        }
        return {"roles": tuple(roles), "groups": _named(groups)}

    def _requested_change(self) -> StaffChange:
        requested = self.data.get("change") if self.is_bound else self.initial.get("change")
        return StaffChange(requested) if requested in StaffChange.values else StaffChange.INVITE

    def _requested_id(self, name: str) -> int:
        requested = str((self.data if self.is_bound else self.initial).get(name) or "")
        return int(requested) if requested.isascii() and requested.isdigit() and len(requested) < 19 else 0

    def _keep_needed_fields(self) -> None:
        """Leave out the fields that this change does not need, and add one for each group."""
        change = self.kind_of_change
        self.initial["change"] = change.value
        unneeded = set() if change == StaffChange.INVITE else {"full_name", "email"}
        unneeded |= set() if change in _NAMES_GROUP else {"group_name"}
        unneeded |= set() if change in OF_PERSON else {"person"}
        unneeded |= set() if change in OF_GROUP else {"group"}
        unneeded |= set() if change in CHOOSES_RIGHTS else set(ROLE_FIELDS)
        for name in unneeded:
            del self.fields[name]
        if change in CHOOSES_RIGHTS:
            self.offered_groups = self.groups_to_offer()
            for group in self.offered_groups:
                self.fields[f"{_GROUP_FIELD}{group.pk}"] = forms.BooleanField(
                    label=group.name, required=False
                )

    def _fill_in_present_values(self) -> None:
        held = set(role_names(self.target)) if self.target is not None else set()
        present: dict[str, Any] = {name: role.value in held for name, role in ROLE_FIELDS.items()}
        present |= {f"{_GROUP_FIELD}{group.pk}": group.pk in self.groups_now for group in self.offered_groups}
        if self.target_group is not None:
            present["group_name"] = self.target_group.name
        self.initial = {**present, **self.initial, "typed": "1"}


def _changes_nothing(payload: StaffChangePayload) -> bool:
    if payload.change == StaffChange.RENAME_GROUP:
        return payload.group_name == payload.group_name_before
    before = (payload.roles_before, payload.groups_before)
    return payload.change == StaffChange.RIGHTS and (payload.roles, payload.groups) == before


def _is_set_up(person: User) -> bool:
    """Whether the person has an authenticator; without one, a reset only replaces the link."""
    return AuthenticatorDevice.objects.filter(user=person, confirmed=True).exists()


def _named(groups: dict[int, str]) -> tuple[NamedGroup, ...]:
    by_name = sorted(groups.items(), key=lambda item: (item[1], item[0]))
    return tuple(NamedGroup(id=key, name=name) for key, name in by_name)


class StaffChangeKind(LocalKind[StaffChangePayload]):
    """Changes an account or a group; needs another administrator's approval."""

    name = "staff_change"
    label = _("Staff change")
    plural = _("Staff changes")
    letter = "A"
    verb = _("Change people or groups")
    permission = PROPOSE
    approval_permission = APPROVE_GOVERNANCE
    excluded_from_bulk = False
    effect = LocalEffect.CHANGES_STAFF
    payload_type = StaffChangePayload
    form_type = StaffChangeForm

    def sentence(self, payload: StaffChangePayload) -> str:
        texts = {
            StaffChange.INVITE: gettext("Invite {person}, {email}"),
            StaffChange.RIGHTS: gettext("Change the roles and groups of {person}"),
            StaffChange.REACTIVATE: gettext("Reactivate the account of {person}"),
            StaffChange.SECOND_FACTOR: gettext("Reset password and second factor of {person}"),
            StaffChange.CREATE_GROUP: gettext("Create the group {group}"),
            StaffChange.RENAME_GROUP: gettext("Rename the group {before} to {group}"),
            StaffChange.RETIRE_GROUP: gettext("Retire the group {before}"),
        }
        return texts[payload.change].format(
            person=payload.full_name,
            email=payload.email,
            group=payload.group_name,
            before=payload.group_name_before,
        )

    def recipient(self, payload: StaffChangePayload) -> Recipient:
        if payload.full_name:
            return Recipient(payload.full_name, payload.email)
        return Recipient(payload.group_name or payload.group_name_before, gettext("Group"))

    def facts(self, payload: StaffChangePayload) -> Facts:
        facts = [(gettext("Change"), str(payload.change.label))]
        if payload.full_name:
            facts += [(gettext("Person"), payload.full_name), (gettext("Email address"), payload.email)]
            facts += _rights_facts(payload)
        if payload.group_name_before:
            facts.append((gettext("Group"), payload.group_name_before))
        if payload.group_name:
            label = gettext("New name") if payload.group_name_before else gettext("Group")
            facts.append((label, payload.group_name))
        return [*facts, (gettext("Reason"), payload.reason)]

    def initial(self, payload: StaffChangePayload) -> dict[str, Any]:
        chosen = {name: role.value in payload.roles for name, role in ROLE_FIELDS.items()}
        chosen |= {f"{_GROUP_FIELD}{group.id}": True for group in payload.groups}
        names = ("person", "group", "full_name", "email", "group_name", "reason")
        members = {name: getattr(payload, name) for name in names}
        return {"change": payload.change.value, "typed": "1", **members, **chosen}

    def cautions(self, payload: StaffChangePayload) -> list[str]:
        found = []
        if payload.change == StaffChange.INVITE and (others := _others_of_the_name(payload)):
            found.append(
                gettext(
                    "Another account has the same name: {others}. Approvals and the audit log show names. Reject this, "
                    "unless these are two people."
                ).format(others=", ".join(others))
            )
        if payload.change == StaffChange.INVITE and not payload.roles:
            found.append(gettext("Without a role this person can do nothing."))
        if Role.ADMINISTRATOR in payload.new_roles:
            found.append(gettext("An administrator can prepare and approve staff changes."))
        if payload.change == StaffChange.SECOND_FACTOR:
            found.append(
                gettext("Confirm with the person, by telephone or in person, that they asked for this.")
            )
        if payload.change == StaffChange.RIGHTS and (count := _stranded_operations(payload)):
            found.append(
                ngettext(
                    "{n} operation that this person prepared is not sent yet, and then can be neither approved nor "
                    "sent.",
                    "{n} operations that this person prepared are not sent yet, and then can be neither approved nor "
                    "sent.",
                    count,
                ).format(n=count)
            )
        if {Role.PREPARER, Role.APPROVER} <= set(payload.roles) and payload.new_roles:
            found.append(gettext("This person can prepare and approve, but not both for the same operation."))
        return found

    def form_page(self, query: Mapping[str, str]) -> str:
        """Invitations have a form page of their own. A copy of one invitation uses the page of all kinds."""
        is_invitation = query.get("change", StaffChange.INVITE) == StaffChange.INVITE
        return "governance:invite" if is_invitation and not query.get("copy") else ""

    def must_be_approved_alone(self, payload: StaffChangePayload) -> bool:
        return payload.change not in _IN_BULK

    def affected_people(self, payload: StaffChangePayload) -> frozenset[int]:
        return frozenset({payload.person} - {NEW_PERSON})

    def check_proposal(self, payload: StaffChangePayload, preparer: User) -> None:
        check_applicable(payload)


def _others_of_the_name(payload: StaffChangePayload) -> list[str]:
    """The addresses of the active accounts that have the name of the person to be invited."""
    others = User.objects.filter(is_active=True, full_name__iexact=payload.full_name)
    return list(others.exclude(email=payload.email).order_by("email").values_list("email", flat=True))


def _stranded_operations(payload: StaffChangePayload) -> int:
    """How many operations of this person need a permission of the preparer that the change takes away."""
    before, after = (
        {name for role, names in PERMISSIONS.items() if role in roles for name in names}
        for roles in (payload.roles_before, payload.roles)
    )
    kinds = [kind.name for kind in KINDS.values() if kind.permission in before - after]
    waiting = Operation.objects.filter(preparer=payload.person, kind__in=kinds, status__in=BEFORE_SENDING)
    return waiting.count() if kinds else 0


def _rights_facts(payload: StaffChangePayload) -> Facts:
    none = gettext("None")
    roles, groups = _role_labels(payload.roles) or none, _group_names(payload.groups) or none
    if payload.change != StaffChange.RIGHTS:
        return [(gettext("Roles"), roles), (gettext("Groups"), groups)]
    return [
        (gettext("Roles now"), _role_labels(payload.roles_before) or none),
        (gettext("Roles after the change"), roles),
        (gettext("Groups now"), _group_names(payload.groups_before) or none),
        (gettext("Groups after the change"), groups),
    ]


def _role_labels(names: tuple[str, ...]) -> str:
    labels = dict(Role.choices)
    return ", ".join(str(labels.get(name, name)) for name in names)


def _group_names(groups: tuple[NamedGroup, ...]) -> str:
    return ", ".join(group.name for group in groups)
