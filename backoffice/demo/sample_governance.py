"""Sample data of the demo: groups, approval policies, recipients, a delegation and an access review, each agreed on by
two people.

Made by the product's own services under an earlier clock, so that nobody has to wait for new rights. Two changes wait
for approval: an invitation, and a version of the policies.
"""

import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from backoffice.accounts.access_report import RightKind, access_rows, report_digest
from backoffice.accounts.groups import active_groups, groups_of
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.accounts.staff import role_names
from backoffice.core import clock
from backoffice.demo.sample_data import EVM_ADDRESS, TRON_ADDRESS, SampleOperations
from backoffice.operations.kinds.access_review import AccessReviewPayload
from backoffice.operations.kinds.approval_policy import ApprovalPolicyPayload
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.delegation import DelegationPayload
from backoffice.operations.kinds.form_fields import RecipientAccountPayload
from backoffice.operations.kinds.recipient import RecipientChange, RecipientDetails, RecipientPayload
from backoffice.operations.kinds.staff_change import NamedGroup, StaffChange, StaffChangePayload
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals, prepare
from backoffice.policies.document import Ceiling, Cooling, PolicyDocument, RecipientRequirements
from backoffice.recipients.keys import address_key, bank_account_key, user_key
from backoffice.recipients.models import RecipientState, RecipientType, RecipientVersion

TREASURY, DIRECTORS, PAYMENT_DESK = "Treasury", "Directors", "Payment desk"
# The approvers share the last one, so that each can name the other as stand-in.
_MEMBERS = {TREASURY: ("Chidi", "Ngozi"), DIRECTORS: ("Amara", "Femi"), PAYMENT_DESK: ("Amara", "Chidi")}
_TEAM_BEGAN, _POLICY_BEGAN = timedelta(days=60), timedelta(days=50)
_REGISTER_BEGAN, _REVIEWED = timedelta(days=45), timedelta(days=32)
_LEAVE_AGREED = timedelta(days=2)
_LEAVE_BEGINS, _LEAVE_ENDS = timedelta(days=12), timedelta(days=25)
_LATELY = timedelta(hours=3)  # a recipient that was approved then cools
_NOW = timedelta(minutes=10)
_NOTHING_REQUIRED = RecipientRequirements()
_REQUIRED = RecipientRequirements(
    cooling=Cooling(hours=24, ceilings=(Ceiling(currency="NGN", amount=Decimal(50_000)),))
)
_USERS = (
    ("kola.traders", "Kola Traders Ltd", "Crates"),
    ("lekki.freight", "Lekki Freight", "Freight"),
    ("abuja.depot", "Abuja Depot Services", ""),
)


def make_sample_governance(history: SampleOperations) -> None:
    """Call once, on an empty database, before any other sample data."""
    User.objects.update(created_at=timezone.now() - _TEAM_BEGAN - timedelta(days=1))
    Governance(history).make()


class Governance:
    """What the demo's people agreed on before its history begins."""

    def __init__(self, history: SampleOperations) -> None:
        self.history, self.people = history, history.people

    def make(self) -> None:
        for name in _MEMBERS:
            self._change_staff(_TEAM_BEGAN, change=StaffChange.CREATE_GROUP, group_name=name)
        for name, members in _MEMBERS.items():
            for member in members:
                self._join(member, name)
        self._agree("Zainab", "Kemi", _POLICY_BEGAN, "approval_policy", _policy(0, _rules()))
        self._make_recipients()
        self._agree("Zainab", "Kemi", _REVIEWED, "access_review", _review())
        self._agree("Chidi", "Zainab", _LEAVE_AGREED, "delegation", self._leave())
        self._make_changes_that_wait()

    def _make_recipients(self) -> None:
        suppliers = [self.history.account() for _ in range(4)]
        for account, alias in zip(
            suppliers, ("Rent Lagos", "Diesel", "Cold chain", "Payroll bank"), strict=True
        ):
            self._register(_REGISTER_BEGAN, _bank_account(account, alias=alias, currency="NGN"))
        for name, holder, alias in _USERS:
            self._register(_REGISTER_BEGAN, _user(name, holder, alias))
        self._register(
            _REGISTER_BEGAN, _address(TRON_ADDRESS, "TRC20", "Cedar & Finch Imports", "Crypto desk")
        )
        self._register(_LATELY, _address(EVM_ADDRESS, "ERC20", "Harbour Metals", ""))
        _suggest(self.people["Tunde"], self.history.account(), "Old landlord")
        alike = {**suppliers[0], "account_number": _with_swapped_digits(suppliers[0]["account_number"])}
        payload = _bank_account(alike, alias="Rent Lagos, new account", currency="NGN")
        self._prepare("Ngozi", _NOW, "recipient", payload)

    def _make_changes_that_wait(self) -> None:
        self._prepare(
            "Zainab",
            _NOW,
            "staff_change",
            StaffChangePayload(
                change=StaffChange.INVITE,
                full_name="Bisi Alabi",
                email="bisi@countersign.example",
                roles=(Role.APPROVER,),
                groups=_groups(DIRECTORS),
                reason="Joins as finance director on Monday",
            ),
        )
        stricter = [{**_rules()[0], "when": {**_rules()[0]["when"], "amount": {"above": "300000"}}}]
        rules = [*stricter, *_rules()[1:]]
        self._prepare("Kemi", _NOW, "approval_policy", _policy(1, rules, changed=1, recipients=_REQUIRED))

    def _leave(self) -> DelegationPayload:
        """Begins later, so that both approvers can be tried until then."""
        away, stand_in = self.people["Chidi"], self.people["Amara"]
        [group] = _groups(PAYMENT_DESK)
        today = timezone.localdate()
        return DelegationPayload(
            person=away.pk,
            person_name=away.full_name,
            stand_in=stand_in.pk,
            stand_in_name=stand_in.full_name,
            group=group.id,
            group_name=group.name,
            first_day=today + _LEAVE_BEGINS,
            last_day=today + _LEAVE_ENDS,
            time_zone="Africa/Lagos",
            reason="Annual leave",
        )

    def _change_staff(self, ago: timedelta, **members: Any) -> None:
        payload = StaffChangePayload(reason="Named in the approval policies", **members)
        self._agree("Zainab", "Kemi", ago, "staff_change", payload)

    def _join(self, member: str, group: str) -> None:
        """Two administrators agree; of those two, nobody changes their own account."""
        person = self.people[member]
        roles, before = tuple(role_names(person)), groups_of([person.pk]).get(person.pk, {})
        payload = StaffChangePayload(
            change=StaffChange.RIGHTS,
            person=person.pk,
            full_name=person.full_name,
            email=person.email,
            roles=roles,
            roles_before=roles,
            groups=_groups(*before.values(), group),
            groups_before=_groups(*before.values()),
            reason="Named in the approval policies",
        )
        self._agree("Zainab", "Kemi", _TEAM_BEGAN, "staff_change", payload)

    def _register(self, ago: timedelta, payload: RecipientPayload) -> None:
        self._agree("Tunde", "Amara", ago, "recipient", payload)

    def _agree(self, preparer: str, approver: str, ago: timedelta, kind: str, payload: Payload) -> None:
        operation = self._prepare(preparer, ago, kind, payload)
        later = timezone.now() - ago + timedelta(minutes=self.history.timing.randrange(4, 50))
        with clock.use_clock(lambda: later):
            approvals.approve_operation(
                operation.pk,
                actor=self.people[approver],
                digest=operation.digest,
                second_factor_at=later,
                confirmation=approvals.ApproverConfirmation(""),
            )

    def _prepare(self, preparer: str, ago: timedelta, kind: str, payload: Payload) -> Operation:
        then = timezone.now() - ago
        with clock.use_clock(lambda: then):
            return prepare.prepare_operation(
                uuid.UUID(int=self.history.random.getrandbits(128), version=4),
                actor=self.people[preparer],
                kind=kind,
                payload=payload,
            )


def _rules() -> list[dict[str, Any]]:
    """Four rules in the order in which they are tried."""
    treasury, directors = (
        {"group": group.model_dump()} for group in _groups(TREASURY, DIRECTORS, in_order=True)
    )
    return [
        {
            "when": {
                "kinds": ["withdrawal"],
                "currencies": {"codes": ["NGN"]},
                "amount": {"above": "10000000"},
            },
            "levels": [{"needed": 1, "of": treasury}, {"needed": 1, "of": directors}],
        },
        {
            "when": {
                "kinds": ["wallet_transfer"],
                "currencies": {"codes": ["USDT"]},
                "amount": {"above": "5000"},
                "recipient": "not_saved",
            },
            "refuse": "Add the address to the recipients first",
        },
        {
            "when": {
                "kinds": ["transfer"],
                "currencies": {"codes": ["NGN"]},
                "amount": {"above": "1000000"},
            },
            "levels": [{"needed": 2}],
        },
        {
            "when": {"currencies": {"codes": ["USD"]}, "amount": {"above": "10000"}},
            "levels": [{"needed": 2}],
        },
    ]


def _policy(
    replaces: int,
    rules: list[dict[str, Any]],
    *,
    changed: int = 0,
    recipients: RecipientRequirements = _NOTHING_REQUIRED,
) -> ApprovalPolicyPayload:
    document = PolicyDocument.model_validate({"rules": rules, "time_zone": "Africa/Lagos"})
    return ApprovalPolicyPayload(
        replaces=replaces,
        document=document.model_copy(update={"recipients": recipients}),
        added=0 if changed else len(rules),
        changed=changed,
        removed=0,
        recipients_before=None if recipients == _NOTHING_REQUIRED else _NOTHING_REQUIRED,
    )


def _review() -> AccessReviewPayload:
    rows = access_rows()
    return AccessReviewPayload(
        digest=report_digest(rows),
        people=len({row.person for row in rows}),
        rights=sum(row.kind != RightKind.NONE for row in rows),
        findings="Compared with the list of staff of the quarter. Nothing to change.",
    )


def _groups(*names: str, in_order: bool = False) -> tuple[NamedGroup, ...]:
    known = {group.name: group.pk for group in active_groups()}
    ordered = names if in_order else sorted(names)
    return tuple(NamedGroup(id=known[name], name=name) for name in ordered)


def _bank_account(account: dict[str, str], **details: str) -> RecipientPayload:
    code, number = account["bank_code"], account["account_number"]
    return RecipientPayload(
        change=RecipientChange.ADD,
        type=RecipientType.BANK,
        key=bank_account_key(code, number),
        account=number,
        bank_code=code,
        bank=account["bank"],
        details=RecipientDetails(name=account["account_name"], **details),
        bank_account=RecipientAccountPayload(**account),
        reason="Contract and a call to the number in it",
    )


def _user(username: str, name: str, alias: str) -> RecipientPayload:
    return RecipientPayload(
        change=RecipientChange.ADD,
        type=RecipientType.USER,
        key=user_key(username),
        account=username,
        details=RecipientDetails(name=name, alias=alias),
        reason="Confirmed by telephone",
    )


def _address(account: str, network: str, name: str, alias: str) -> RecipientPayload:
    return RecipientPayload(
        change=RecipientChange.ADD,
        type=RecipientType.ADDRESS,
        key=address_key(account),
        account=account,
        network=network,
        details=RecipientDetails(name=name, alias=alias, currency="USDT"),
        reason="Read out on a video call",
    )


def _suggest(person: User, account: dict[str, str], alias: str) -> None:
    """As an upgrade carries over a bank account that one person saved in an earlier release."""
    then = timezone.now() - _REGISTER_BEGAN
    RecipientVersion.objects.create(
        number=0,
        state=RecipientState.SUGGESTED,
        type=RecipientType.BANK,
        key=bank_account_key(account["bank_code"], account["account_number"]),
        name=account["account_name"],
        alias=alias,
        bank_code=account["bank_code"],
        bank=account["bank"],
        account=account["account_number"],
        proposed_by=person,
        since=then,
        details_since=then,
    )


def _with_swapped_digits(number: str) -> str:
    """Two neighbouring digits that differ change places."""
    position = next(n for n in range(3, len(number) - 1) if number[n] != number[n + 1])
    return number[:position] + number[position + 1] + number[position] + number[position + 2 :]
