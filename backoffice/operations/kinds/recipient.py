"""Recipient: add, change or retire one in the register. Needs a second person; nothing is sent to the provider."""

from typing import Any
from uuid import UUID

from django import forms
from django.db.models import TextChoices
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict

from backoffice.accounts.models import User
from backoffice.core.web.formatting import error_sentence, mask_account
from backoffice.core.web.forms import reason_field
from backoffice.ledger import accounts as ledger
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.base import (
    Facts,
    GroupedCode,
    LocalEffect,
    LocalKind,
    Payload,
    Recipient,
)
from backoffice.operations.kinds.form_fields import (
    OneLineField,
    RecipientAccountForm,
    RecipientAccountPayload,
    address_field,
    username_field,
)
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import PREPARE
from backoffice.operations.refusals.codes import Refusal
from backoffice.recipients.keys import BANK_PREFIX, USER_PREFIX, address_key, bank_account_key, user_key
from backoffice.recipients.look_alikes import mark_differences, namesakes, similar_recipients
from backoffice.recipients.models import (
    RecipientState,
    RecipientType,
    RecipientVersion,
    join_networks,
    searchable,
)
from backoffice.recipients.register import newest_versions, version_in_effect
from payments_gateway import AddressError, check_address
from payments_gateway.money import CURRENCIES


class RecipientChange(TextChoices):
    """What is changed in the register. The account of a recipient never is: another account is another recipient."""

    ADD = "add", _("Add recipient")
    CHANGE = "change", _("Change recipient")
    RETIRE = "retire", _("Retire recipient")


_CHANGED_FROM: dict[RecipientChange, set[RecipientState | None]] = {
    RecipientChange.ADD: {None, RecipientState.SUGGESTED, RecipientState.RETIRED},
    RecipientChange.CHANGE: {RecipientState.APPROVED},
    RecipientChange.RETIRE: {RecipientState.APPROVED, RecipientState.SUGGESTED},
}
"""The state of a recipient before each change; None if it is not in the register."""


class RecipientDetails(BaseModel):
    """What can be changed of a recipient."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str
    alias: str = ""
    notes: str = ""
    currency: str = ""


class RecipientPayload(Payload):
    """The recipient as it is afterwards. `replaces` is the number of the version before; 0 for none or a suggestion.

    `network` names all networks that an address is approved on (`join_networks`). `bank_account` says how the name of a
    bank account's holder was checked.
    """

    change: RecipientChange
    type: RecipientType
    key: str
    replaces: int = 0
    account: str
    network: str = ""
    network_before: str = ""
    bank_code: str = ""
    bank: str = ""
    details: RecipientDetails
    before: RecipientDetails | None = None
    bank_account: RecipientAccountPayload | None = None
    reason: str

    def identity(self) -> dict[str, Any]:
        """Only one change of a recipient may be pending, whatever it is."""
        return {"key": self.key}

    @property
    def title(self) -> str:
        """The team's name for the recipient, or else its name."""
        return self.details.alias or self.details.name

    @property
    def changes_payment(self) -> bool:
        """Whether cooling begins again: for a recipient that was not approved, or another name or currency."""
        if self.before is None or self.change != RecipientChange.CHANGE:
            return True
        after = (self.details.name, self.details.currency)
        return after != (self.before.name, self.before.currency)


def check_applicable(payload: RecipientPayload) -> None:
    """Raise OperationError unless the register still is what this change was prepared for."""
    newest = version_in_effect(payload.key)
    if not is_applicable(payload, newest):
        raise OperationError(Refusal.RECIPIENT_CHANGED)
    if newest and newest.is_altered:
        raise OperationError(Refusal.RECIPIENT_ALTERED)


def is_applicable(payload: RecipientPayload, newest: RecipientVersion | None) -> bool:
    """Whether the change was prepared for this version, the newest of its key; None if there is none."""
    state = RecipientState(newest.state) if newest else None
    is_expected = state in _CHANGED_FROM[payload.change]
    return is_expected and payload.replaces == (newest.number if newest else 0)


def details_of(version: RecipientVersion) -> RecipientDetails:
    """What can be changed of this version."""
    return RecipientDetails(
        name=version.name, alias=version.alias, notes=version.notes, currency=version.currency
    )


_OF_BANK = (
    *("bank_code", "account_number", "typed_name", "name_reason"),
    *("unchecked_confirmed", "unchecked_reason", "unchecked_for"),
)
_OF_TYPE: dict[RecipientType, tuple[str, ...]] = {
    RecipientType.BANK: _OF_BANK,
    RecipientType.ADDRESS: ("network", "address", "name"),
    RecipientType.USER: ("receiver_username", "name"),
}
_WHO: dict[RecipientType, tuple[str, ...]] = {
    RecipientType.BANK: ("bank_code", "account_number"),
    RecipientType.ADDRESS: ("address",),
    RecipientType.USER: ("receiver_username",),
}
_DETAILS = ("alias", "currency", "notes")
_FIXED = ("bank_code", "account_number", "address", "receiver_username")
"""Fields that say who is paid, which no change may touch."""


class RecipientForm(RecipientAccountForm):
    """Asks for what the change needs; `change`, `type` and `recipient` come with the address of the form."""

    field_order = ("bank_code", "account_number", "typed_name", "name_reason", "network", "address")

    change = forms.ChoiceField(
        choices=RecipientChange.choices, initial=RecipientChange.ADD, widget=forms.HiddenInput
    )
    type = forms.ChoiceField(
        choices=RecipientType.choices, initial=RecipientType.BANK, widget=forms.HiddenInput
    )
    recipient = forms.CharField(required=False, max_length=36, widget=forms.HiddenInput)
    network = forms.ChoiceField(
        label=_("Network"),
        widget=forms.Select(attrs={"translate": "no"}),
        help_text=_("Must be the recipient's network: on another network the money is lost."),
    )
    networks = forms.MultipleChoiceField(
        label=_("Networks"),
        widget=forms.CheckboxSelectMultiple(attrs={"translate": "no"}),
        help_text=_("Every network that the recipient can use. Money sent on another network is lost."),
        error_messages={"required": _("Select at least one network.")},
    )
    address = address_field()
    receiver_username = username_field(
        _("Recipient's username"),
        _("Username at the provider. It cannot be checked: confirm it with the recipient."),
    )
    name = OneLineField(
        label=_("Name"),
        max_length=120,
        help_text=_("The person or business that receives the money."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    alias = OneLineField(
        label=_("Alias"),
        required=False,
        max_length=60,
        help_text=_(
            "The team's own name, such as “Rent Lagos”. If empty, the name you entered is used when the name at the "
            "bank differs."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    currency = forms.ChoiceField(
        label=_("Currency"),
        required=False,
        help_text=_("Payments in another currency are refused by the allow-list."),
        widget=forms.Select(attrs={"translate": "no"}),
    )
    notes = forms.CharField(
        label=_("Notes"),
        required=False,
        max_length=300,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    reason = reason_field(
        help_text=_("How you know that the details are right. Shown to the approver."),
        missing=_("Enter how you know that the details are right."),
        max_length=300,
        rows=2,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.is_bound and self.initial.get("operation"):
            self.initial = {**_values_paid_by(str(self.initial["operation"])), **self.initial}
        self.kind_of_change = self._requested(RecipientChange, "change", RecipientChange.ADD)
        self.target = self._requested_target()
        self.recipient_type = self._requested(RecipientType, "type", RecipientType.BANK)
        if self.target is not None:
            self.recipient_type = RecipientType(self.target.type)
        self.title = self.kind_of_change.label
        self._offer_choices()
        if self.target is not None:
            self._take_over(self.target)
        self.initial["change"], self.initial["type"] = self.kind_of_change.value, self.recipient_type.value
        self._keep_needed_fields()

    @property
    def types(self) -> list[tuple[str, str, bool]]:
        """The types to choose from when one is added: value, label, and whether it is chosen."""
        if self.target is not None:
            return []
        return [(one.value, str(one.label), one == self.recipient_type) for one in RecipientType]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.kind_of_change != RecipientChange.ADD and self.target is None:
            self.add_error(None, gettext("Choose the recipient in the list. Nothing was prepared."))
        self._check_networks(values)
        if self.is_being_typed:
            return values
        if not self.errors:
            self._check_content()
        elif self.kind_of_change == RecipientChange.ADD and self.known_key:
            self._check_is_new(self.known_key)
        return values

    @property
    def known_key(self) -> str:
        """The key of the account, if the fields that say whose it is are valid, whatever the others are."""
        return self._key() if all(self.cleaned_data.get(name) for name in _WHO[self.recipient_type]) else ""

    def _check_is_new(self, key: str) -> None:
        """Say at once that the recipient cannot be added, although other fields have errors."""
        newest = version_in_effect(key)
        if newest is not None and RecipientState(newest.state) not in _CHANGED_FROM[RecipientChange.ADD]:
            self.add_error(None, str(Refusal.RECIPIENT_CHANGED.label))

    def _check_networks(self, values: dict[str, Any]) -> None:
        """Refuse what cannot be an address of each network, and more networks than a version can have."""
        names = _networks_in(values)
        try:
            for name in names if values.get("address") else ():
                check_address(name, values["address"])
        except AddressError as exc:
            self.add_error("networks" if "networks" in self.fields else "address", error_sentence(exc))
        most = RecipientVersion._meta.get_field("network").max_length or 0
        if len(join_networks(names)) > most:
            self.add_error("networks", gettext("Select fewer networks."))

    def content(self) -> RecipientPayload:
        target, change = self.target, self.kind_of_change
        newest = target or version_in_effect(self._key())
        before = details_of(newest) if newest and newest.state != RecipientState.SUGGESTED else None
        members: dict[str, Any] = {
            "change": change,
            "type": self.recipient_type,
            "replaces": newest.number if newest else 0,
            "before": before,
            "network_before": newest.network if newest and before else "",
            "reason": self.cleaned_data["reason"],
        }
        if change == RecipientChange.RETIRE and target is not None:
            return RecipientPayload(**members, **_account_of(target), details=details_of(target))
        bank_account = self._bank_account()
        name = bank_account.account_name if bank_account else self.cleaned_data["name"]
        details = RecipientDetails(name=name, **{field: self.cleaned_data[field] for field in _DETAILS})
        if bank_account and change == RecipientChange.ADD:
            details = _with_entered_name(details, bank_account)
        return RecipientPayload(
            **members, **self._account(bank_account), details=details, bank_account=bank_account
        )

    def _check_content(self) -> None:
        """Say at once what preparing would refuse."""
        payload = self.content()
        most = RecipientVersion._meta.get_field("notes").max_length or 0
        if len(payload.details.notes) > most:
            too_long = gettext(
                "The name entered and the reason for the mismatch are kept in the notes: at most {most} characters "
                "together with your own notes."
            )
            self.add_error("notes", too_long.format(most=most))
        try:
            before = (payload.before, payload.network_before)
            is_same = (payload.details, payload.network) == before
            if payload.change == RecipientChange.CHANGE and is_same:
                raise OperationError(Refusal.NOTHING_CHANGES)
            check_applicable(payload)
        except OperationError as exc:
            self.add_error(None, str(exc))

    def _bank_account(self) -> RecipientAccountPayload | None:
        return RecipientAccountPayload(**self.account()) if "bank_code" in self.fields else None

    def _account(self, bank_account: RecipientAccountPayload | None) -> dict[str, str]:
        members = {"key": self._key()}
        if bank_account is not None:
            of_bank = {"bank_code": bank_account.bank_code, "bank": bank_account.bank}
            return {**members, **of_bank, "account": bank_account.account_number}
        if self.recipient_type == RecipientType.ADDRESS:
            network = join_networks(_networks_in(self.cleaned_data))
            return {**members, "account": self.cleaned_data["address"], "network": network}
        return {**members, "account": self.cleaned_data["receiver_username"]}

    def _key(self) -> str:
        values = self.cleaned_data
        if self.recipient_type == RecipientType.BANK:
            return bank_account_key(values["bank_code"], values["account_number"])
        if self.recipient_type == RecipientType.ADDRESS:
            return address_key(values["address"])
        return user_key(values["receiver_username"])

    def _requested(self, choices: Any, name: str, otherwise: Any) -> Any:
        requested = (self.data if self.is_bound else self.initial).get(name)
        return choices(requested) if requested in choices.values else otherwise

    def _requested_target(self) -> RecipientVersion | None:
        """The newest version of the recipient that the address of the form names, if it may be changed in this way."""
        requested = str((self.data if self.is_bound else self.initial).get("recipient") or "")
        try:
            found = newest_versions().filter(recipient=UUID(requested)).first()
        except ValueError:
            return None
        if found is None or RecipientState(found.state) not in _CHANGED_FROM[self.kind_of_change]:
            return None
        return found

    def _offer_choices(self) -> None:
        networks = ledger.transfer_networks("USDT")
        own = self.target.networks if self.target else ()
        names = dict.fromkeys((*own, *(name for of_currency in networks.values() for name in of_currency)))
        network: Any = self.fields["network"]
        network.choices = [("", gettext("Select a network")), *((name, name) for name in names)]
        several: Any = self.fields["networks"]
        several.choices = [(name, name) for name in names]
        currency: Any = self.fields["currency"]
        offered = list(networks) if self.recipient_type == RecipientType.ADDRESS else CURRENCIES
        currency.choices = [("", gettext("Any")), *((code, code) for code in offered)]

    def _take_over(self, target: RecipientVersion) -> None:
        """Fill in what is in the register. Who is paid cannot be changed, but on which networks an address is."""
        fixed = {**target.values, "recipient": str(target.recipient)}
        fixed = {name: value for name, value in fixed.items() if name in (*_FIXED, "recipient")}
        for name in fixed:
            self.fields[name].widget = forms.HiddenInput()
        if self.is_bound:
            data: Any = self.data
            typed = data.copy()
            for name, value in fixed.items():
                typed[name] = value
            self.data = typed
        present = {"typed_name": target.name, "name": target.name}
        present |= {name: getattr(target, name) for name in _DETAILS} | {"networks": target.networks}
        self.initial = {**present, **self.initial, **fixed}

    def _keep_needed_fields(self) -> None:
        """Leave out the fields that this change of this type does not need."""
        needed = {"change", "type", "recipient", "reason", "duplicate_confirmed", "duplicate_reason"}
        if self.kind_of_change != RecipientChange.RETIRE:
            needed |= {*_OF_TYPE[self.recipient_type], *_DETAILS}
        if "network" in needed and self.target is not None:
            needed = needed - {"network"} | {"networks"}
        for name in [name for name in self.fields if name not in needed]:
            del self.fields[name]


def _with_entered_name(details: RecipientDetails, account: RecipientAccountPayload) -> RecipientDetails:
    """With the name that was entered as the alias, and the reason for the mismatch in the notes.

    The bank's name replaces the one that was entered, by which the team searches. If there is another alias, or the
    name is too long for one, it is in the notes as well.
    """
    entered = account.typed_name
    reason = account.name_reason if account.is_name_different else ""
    alias, note = details.alias, reason
    if searchable(entered) not in searchable(details.name, alias):
        if alias or len(entered) > (RecipientVersion._meta.get_field("alias").max_length or 0):
            note = f"{entered}: {reason}" if reason else entered
        else:
            alias = entered
    notes = " · ".join(filter(None, (details.notes, note)))
    return details.model_copy(update={"alias": alias, "notes": notes})


def _values_paid_by(operation_id: str) -> dict[str, str]:
    """The form's values for whoever this operation pays; empty if it pays nobody whom the register can have."""
    try:
        operation = Operation.objects.filter(pk=UUID(operation_id)).first()
    except ValueError:
        return {}
    if operation is None or not operation.recipient_key:
        return {}
    paid = operation.payload
    if operation.recipient_key.startswith(BANK_PREFIX):
        account = {name: str(paid.get(name, "")) for name in ("bank_code", "account_number", "typed_name")}
        return {"type": RecipientType.BANK.value, **account}
    if operation.recipient_key.startswith(USER_PREFIX):
        username = paid.get("receiver_username") or paid.get("service_username")
        return {"type": RecipientType.USER.value, "receiver_username": str(username or "")}
    address = {name: str(paid.get(name, "")) for name in ("address", "network")}
    return {"type": RecipientType.ADDRESS.value, **address}


def _networks_in(values: dict[str, Any]) -> list[str]:
    """The networks that were selected, one or several, in the order in which they are offered."""
    return list(values.get("networks") or filter(None, [values.get("network")]))


def _account_of(version: RecipientVersion) -> dict[str, str]:
    names = ("key", "account", "network", "bank_code", "bank")
    return {name: getattr(version, name) for name in names}


class RecipientKind(LocalKind[RecipientPayload]):
    """Changes the register of recipients; approved by another person who may approve payments."""

    name = "recipient"
    label = _("Recipient")
    plural = _("Recipients")
    letter = "N"
    verb = _("Add recipient")
    permission = PREPARE
    effect = LocalEffect.CHANGES_RECIPIENT
    success_texts = (_("Recipient updated"), _("The change to the recipient is in effect."))
    payload_type = RecipientPayload
    form_type = RecipientForm

    def sentence(self, payload: RecipientPayload) -> str:
        texts = {
            RecipientChange.ADD: gettext("Add recipient {name}, {account}"),
            RecipientChange.CHANGE: gettext("Change recipient {name}, {account}"),
            RecipientChange.RETIRE: gettext("Retire recipient {name}, {account}"),
        }
        return texts[payload.change].format(name=payload.title, account=_short_account(payload))

    def recipient(self, payload: RecipientPayload) -> Recipient:
        """Without a key: nobody is paid."""
        return Recipient(payload.title, _short_account(payload))

    def facts(self, payload: RecipientPayload) -> Facts:
        before = payload.before if payload.change == RecipientChange.CHANGE else None
        after = payload.details
        changed = [
            (gettext("Name"), after.name, before.name if before else ""),
            (gettext("Alias"), after.alias, before.alias if before else ""),
            (gettext("Currency"), after.currency, before.currency if before else ""),
            (gettext("Notes"), after.notes, before.notes if before else ""),
        ]
        facts = [*self.decision_facts(payload), *(_changed_fact(*each) for each in changed if any(each[1:]))]
        if payload.bank_account:
            facts += payload.bank_account.account_facts[2:]
        return [*facts, (gettext("Reason"), payload.reason)]

    def decision_facts(self, payload: RecipientPayload) -> Facts:
        before = payload.network_before if payload.change == RecipientChange.CHANGE else ""
        return [
            (gettext("Change"), str(RecipientChange(payload.change).label)),
            (str(RecipientType(payload.type).label), _whole_account(payload)),
            *([_changed_fact(gettext("Network"), payload.network, before)] if payload.network else []),
        ]

    def initial(self, payload: RecipientPayload) -> dict[str, Any]:
        details = payload.details.model_dump(include={"name", "alias", "notes", "currency"})
        values = {**details, "change": payload.change.value, "type": payload.type.value}
        version = RecipientVersion(
            type=payload.type,
            account=payload.account,
            network=payload.network,
            bank_code=payload.bank_code,
            name=payload.details.name,
        )
        if payload.change != RecipientChange.ADD:
            newest = version_in_effect(payload.key)
            values["recipient"] = str(newest.recipient) if newest else ""
        return {**values, **version.values, "networks": version.networks, "reason": payload.reason}

    def acknowledgement(self, payload: RecipientPayload) -> str:
        return payload.bank_account.acknowledgement if payload.bank_account else ""

    def cautions(self, payload: RecipientPayload) -> list[str]:
        if payload.change == RecipientChange.RETIRE:
            return []
        of_account = payload.bank_account.account_warnings if payload.bank_account else []
        return [
            *of_account,
            *_look_alike_warnings(payload),
            *_namesake_warnings(payload),
        ]

    def check_proposal(self, payload: RecipientPayload, preparer: User) -> None:
        check_applicable(payload)


def _changed_fact(label: str, after: str, before: str) -> tuple[str, str]:
    if not before or before == after:
        return label, after
    return label, gettext("{after} (before: {before})").format(after=after or gettext("none"), before=before)


def _short_account(payload: RecipientPayload) -> str:
    if payload.type == RecipientType.BANK:
        return f"{payload.bank} {mask_account(payload.account)}"
    return payload.account if len(payload.account) <= 16 else f"{payload.account[:6]}…{payload.account[-6:]}"


def _whole_account(payload: RecipientPayload) -> str:
    if payload.type == RecipientType.BANK:
        return f"{payload.account} · {payload.bank} ({payload.bank_code})"
    return GroupedCode(payload.account) if payload.type == RecipientType.ADDRESS else payload.account


def _look_alike_warnings(payload: RecipientPayload) -> list[str]:
    """Warnings about recipients of the register whose account can be mistaken for this one."""
    return [
        gettext(
            "Similar to the account of the recipient {recipient}, but not the same. Known account: "
            "{earlier} · This account: {current} (differences in brackets). Confirm the account with the "
            "recipient before you continue."
        ).format(
            recipient=other.title,
            earlier=mark_differences(other.account, payload.account),
            current=mark_differences(payload.account, other.account),
        )
        if other.account != payload.account
        else gettext("The recipient {recipient} has the same account number at another bank: {bank}.").format(
            recipient=other.title, bank=other.bank
        )
        for other in similar_recipients(payload.type, payload.account, payload.key)
    ]


def _namesake_warnings(payload: RecipientPayload) -> list[str]:
    """Warnings about recipients of the same name: whoever asks to pay a new account may not be who they say."""
    names = {payload.details.name, payload.details.alias}
    return [
        gettext(
            "{recipient} is already a recipient, with another account: {account}. Confirm this account with the "
            "recipient through a contact that you already know."
        ).format(recipient=other.title, account=other.detail)
        for other in namesakes(payload.type, names, payload.key)
    ]
