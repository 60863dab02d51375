"""Approval policies: a new version of the whole document. Needs a second person; nothing is sent to the provider."""

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from backoffice.operations.kinds.base import (
    Facts,
    KindForm,
    KindSection,
    LocalEffect,
    LocalKind,
    Payload,
    Recipient,
)
from backoffice.operations.kinds.batch import BatchKind
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.permissions import APPROVE_GOVERNANCE, PROPOSE
from backoffice.policies.document import PolicyDocument, RecipientRequirements
from backoffice.policies.evaluator import never_permitted
from backoffice.policies.models import AlteredPolicyError, policy_in_effect
from backoffice.policies.sentences import (
    ComparedRule,
    compare_recipients,
    kind_name,
    recipient_texts,
    rule_sentences,
)
from backoffice.policies.weakening import KindFacts
from backoffice.policies.weaker_sentences import RequiresLess, requires_less_texts
from backoffice.recipients.keys import key_text
from backoffice.settings_values import KINDS_THAT_PAY


class ApprovalPolicyPayload(Payload):
    """The whole new document, the version that it replaces (0 for none), and what differs from that one.

    How many rules, how many recipients on lists, and the time zone and what was required of recipients before, if that
    changes. `reason` is the preparer's.
    """

    ADDED: ClassVar[frozenset[str]] = frozenset({"recipients_before", "reason"})

    replaces: int
    document: PolicyDocument
    added: int
    changed: int
    removed: int
    listed: int = 0
    unlisted: int = 0
    time_zone_before: str = ""
    recipients_before: RecipientRequirements | None = None
    reason: str = ""

    def identity(self) -> dict[str, Any]:
        """The same version for another reason is the same content."""
        return {name: value for name, value in super().identity().items() if name != "reason"}


@dataclass(frozen=True)
class RefusedPayments:
    """Payments that a version never permits, and what a person confirms who submits or approves it nevertheless."""

    warning: str
    to_submit: str
    to_approve: str


def refused_payments(document: PolicyDocument) -> RefusedPayments | None:
    """The kinds of which every payment is refused by a rule without another condition; None if there is none."""
    kinds = [kind.name for kind in KINDS.values() if kind.section == KindSection.MONEY]
    refused = never_permitted(document, kinds)
    if not refused:
        return None
    if set(kinds) - {BatchKind.name} <= set(refused):  # and so the rows of every batch
        return RefusedPayments(
            gettext("This version refuses all payments."),
            gettext("Submit it although no payment can be made under this version"),
            gettext("I approve that no payment can be made under this version"),
        )
    names = ", ".join(map(kind_name, refused))
    texts = (
        gettext("This version refuses all operations of these kinds: {kinds}."),
        gettext("Submit it although these can never be made under this version: {kinds}"),
        gettext("I approve that these can never be made under this version: {kinds}"),
    )
    return RefusedPayments(*(text.format(kinds=names) for text in texts))


def kind_facts() -> list[KindFacts]:
    """Every kind as the comparison of two versions needs it (`requires_less_texts`)."""
    in_files = [kind.name for kind in KINDS.values() if kind.file_fields]
    return [
        KindFacts(
            kind.name,
            decided_as=tuple((kind.name, row) for row in in_files)
            if kind.name == BatchKind.name
            else ((kind.name, *kind.ruled_as_well_as),),
            has_amount=kind.section == KindSection.MONEY,
            has_recipient=kind.name in {*KINDS_THAT_PAY, BatchKind.name},
            has_rows=kind.name == BatchKind.name,
            is_refusable=kind.name == BatchKind.name or not isinstance(kind, LocalKind),
        )
        for kind in KINDS.values()
    ]


def requires_less(old: PolicyDocument, new: PolicyDocument) -> RequiresLess:
    """What the new version requires less than the old one, in words. It is a warning, and refuses nothing."""
    return requires_less_texts(old, new, kind_facts())


class ApprovalPolicyForm(KindForm):
    """A version is proposed on its own pages."""

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        self.add_error(
            None, gettext("Edit the rules under Settings, Approval policies. Nothing was prepared.")
        )
        return values


class ApprovalPolicyKind(LocalKind[ApprovalPolicyPayload]):
    """Puts a version of the policies into effect; approved by another administrator."""

    name = "approval_policy"
    label = _("Approval policy")
    plural = _("Approval policies")
    letter = "Y"
    verb = _("Change approval policies")
    permission = PROPOSE
    approval_permission = APPROVE_GOVERNANCE
    effect = LocalEffect.CHANGES_POLICY
    prepared_on = "governance:policy_draft"
    content_page = "governance:policy_proposal"
    payload_type = ApprovalPolicyPayload
    form_type = ApprovalPolicyForm

    def sentence(self, payload: ApprovalPolicyPayload) -> str:
        count = len(payload.document.rules)
        counted = ngettext(
            "Put approval policy {version} into effect: {count} rule",
            "Put approval policy {version} into effect: {count} rules",
            count,
        )
        texts = [counted.format(version=payload.replaces + 1, count=count)]
        on_lists = payload.listed + payload.unlisted
        if on_lists:
            of_lists = ngettext(
                "{count} change to recipient lists", "{count} changes to recipient lists", on_lists
            )
            texts.append(of_lists.format(count=on_lists))
        if payload.time_zone_before:
            texts.append(gettext("another time zone for hours"))
        if payload.recipients_before is not None:
            texts.append(gettext("changed requirements for recipients"))
        return ", ".join(texts)

    def recipient(self, payload: ApprovalPolicyPayload) -> Recipient:
        return Recipient(gettext("Approval policies"), gettext("Version {n}").format(n=payload.replaces + 1))

    def facts(self, payload: ApprovalPolicyPayload) -> Facts:
        rules = [
            (gettext("Rule {number}").format(number=number), sentence)
            for number, sentence in enumerate(rule_sentences(payload.document), start=1)
        ]
        lists = [
            (gettext("List {name}").format(name=each.name), ", ".join(map(key_text, each.keys)))
            for each in payload.document.lists
        ]
        zone = [(gettext("Time zone for hours"), payload.document.time_zone)]
        known = [] if payload.time_zone_before else zone
        changed = _changed_requirements(payload)
        required = [
            (title, text)
            for title, text in recipient_texts(payload.document.recipients).items()
            if text and title not in changed
        ]
        return [*self.decision_facts(payload), *required, *known, *rules, *lists]

    def decision_facts(self, payload: ApprovalPolicyPayload) -> Facts:
        replaced = (
            str(payload.replaces) if payload.replaces else gettext("None (rules from the configuration)")
        )
        facts: Facts = [
            *([(gettext("Reason"), payload.reason)] if payload.reason else []),
            (gettext("Replaces version"), replaced),
            (
                gettext("Rules"),
                gettext("{added} added, {changed} changed, {removed} removed").format(
                    added=payload.added, changed=payload.changed, removed=payload.removed
                ),
            ),
        ]
        if payload.listed or payload.unlisted:
            counted = gettext("{added} added, {removed} removed")
            text = counted.format(added=payload.listed, removed=payload.unlisted)
            facts.append((gettext("Recipients on lists"), text))
        if payload.time_zone_before:
            text = gettext("{after} (before: {before})")
            zones = text.format(after=payload.document.time_zone, before=payload.time_zone_before)
            facts.append((gettext("Time zone for hours"), zones))
        before = gettext("{part}, before")
        for part, one in _changed_requirements(payload).items():
            facts.append((part, one.new or gettext("No longer required")))
            facts.append((before.format(part=part), one.old or gettext("Not required")))
        return facts

    def cautions(self, payload: ApprovalPolicyPayload) -> list[str]:
        refused = refused_payments(payload.document)
        return [*([refused.warning] if refused else []), *_less_than_in_effect(payload)]

    def acknowledgement(self, payload: ApprovalPolicyPayload) -> str:
        refused = refused_payments(payload.document)
        return refused.to_approve if refused else ""

    def initial(self, payload: ApprovalPolicyPayload) -> dict[str, Any]:
        return {}


def _less_than_in_effect(payload: ApprovalPolicyPayload) -> list[str]:
    """What a version that waits requires less than the one in effect; nothing if it cannot replace that one."""
    try:
        policy = policy_in_effect()
    except AlteredPolicyError:
        return []
    if payload.replaces != (policy.number or 0):
        return []
    less = requires_less(policy.document, payload.document)
    if not less:
        return []
    return [" ".join(filter(None, (less.title, *less.sentences, *less.rest)))]


def _changed_requirements(payload: ApprovalPolicyPayload) -> dict[str, ComparedRule]:
    """What is required of recipients and was not before, or the other way round."""
    before, after = payload.recipients_before, payload.document.recipients
    return compare_recipients(after if before is None else before, after)
