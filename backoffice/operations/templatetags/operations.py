"""Template tags and filters for operations."""

from collections.abc import Iterable

from django import template
from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.core.templatetags.display import money
from backoffice.core.web.formatting import breakable_urls, in_words, unreadable_text
from backoffice.operations import permissions
from backoffice.operations.batches.summary import (
    BatchSummary,
    ShownStatus,
    status_label,
    statuses_in_list,
)
from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds import bank_account
from backoffice.operations.kinds.bank_account import OpenedAccount, OpenedAccounts
from backoffice.operations.kinds.base import GroupedCode, KindSection, LocalKind, Recipient
from backoffice.operations.kinds.registry import (
    KINDS,
    AnyKind,
    approval_permission_for,
    read_content,
    sentence_of,
)
from backoffice.operations.models.batches import BatchRow
from backoffice.operations.models.evidence import AUDIT_SENTENCES
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import LostAttemptState
from backoffice.operations.models.reconciliation import ReconciliationResult
from backoffice.operations.selectors import visible_operations
from backoffice.operations.states import Status
from payments_gateway import Account

register = template.Library()
register.filter("sentence", sentence_of)
register.filter("status_label", status_label)
_TONES = {
    ReconciliationResult.MATCHED: "good",
    ReconciliationResult.MISMATCHED: "warn",
    ReconciliationResult.MISSING_AT_PROVIDER: "bad",
    ReconciliationResult.UNRECOGNISED: "bad",
    ReconciliationResult.PENDING: "info",
}
_LOST_ATTEMPT_TONES = {
    LostAttemptState.OPERATION_MISSING: "bad",
    LostAttemptState.NOT_COMPARED: "warn",
    LostAttemptState.RECREATED: "info",
    LostAttemptState.MATCHED: "good",
    LostAttemptState.RESOLVED: "good",
    LostAttemptState.NOT_EXECUTED: "idle",
}
_TEXT_KEYS = ("comment", "reason", "refusal", "response", "check")


@register.simple_tag
def kinds_open_to(person: User) -> list[AnyKind]:
    """The kinds that this user may prepare and that are sent, and batches, in the order of the registry.

    Other local kinds are offered on the page of what they change.
    """
    return [
        kind
        for kind in KINDS.values()
        if person.has_perm(kind.permission)
        and (kind.section == KindSection.MONEY or not isinstance(kind, LocalKind))
    ]


@register.simple_tag
def kinds_in_menu(person: User) -> list[AnyKind]:
    """Those for the menu. The others are offered on the page of what they change, or under Operations."""
    return [kind for kind in kinds_open_to(person) if kind.section == KindSection.MONEY]


@register.simple_tag
def kinds_with_pages() -> list[AnyKind]:
    """The kinds that have a page of their own, in the order of the registry."""
    return [kind for kind in KINDS.values() if kind.page]


@register.simple_tag
def opened_accounts(person: User, listed: list[Account] | None) -> OpenedAccounts:
    """The bank accounts opened here, as the provider answered, and those that are not among the listed ones."""
    numbers = (asset.address for account in listed or () for asset in account.assets)
    return bank_account.opened_accounts(visible_operations(person), numbers)


@register.filter
def opened_as(number: str, opened: OpenedAccounts) -> OpenedAccount | None:
    """What the provider answered when it opened the account of this number; None if it was not opened here."""
    return opened.by_number.get(number)


@register.filter
def is_open_to(kind: AnyKind, person: User) -> bool:
    """Whether this user may prepare operations of this kind."""
    return person.has_perm(kind.permission)


@register.simple_tag
def selectable_references(operations: Iterable[Operation], person: User) -> set[str]:
    """The references of those that this user may choose in the list, to approve, reject or send several at once."""
    releases = person.has_perm(permissions.RELEASE)
    return {
        one.reference
        for one in operations
        if (one.status == Status.APPROVED and releases)
        or (
            one.status == Status.PENDING
            and not _is_excluded_from_bulk(one)
            and person.has_perm(approval_permission_for(one.kind))
        )
    }


def _is_excluded_from_bulk(operation: Operation) -> bool:
    return operation.kind in KINDS and KINDS[operation.kind].excluded_from_bulk


@register.simple_block_tag
def written_once(content: str) -> str:
    """The rendered block, to be stored by `as` and shown in several places."""
    return content


@register.simple_tag
def with_statuses(
    operations: Iterable[Operation],
) -> list[tuple[Operation, ShownStatus, BatchSummary | None]]:
    """Each of these operations with its badge, for a list, and with the summary of an applied batch."""
    return statuses_in_list(operations)


@register.filter
def listed_amount(operation: Operation) -> SafeString | str:
    """The amount of an operation in a list: that of a batch is the total of its rows. Empty without one."""
    if operation.amount is not None or not isinstance(KINDS.get(operation.kind), LocalKind):
        return money(operation.amount, operation.currency)
    try:
        kind, payload = read_content(operation)
    except ContentUnreadableError:
        return ""
    total = kind.listed_amount(payload) if isinstance(kind, LocalKind) else None
    return money(total.amount, total.currency) if total else ""


@register.filter
def listed_title(operation: Operation) -> str:
    """What a list calls it: the kind of a payment, whose amount and recipient are beside it, or what a change does."""
    kind = KINDS.get(operation.kind)
    return (
        sentence_of(operation) if kind and kind.section == KindSection.SETUP else kind_label(operation.kind)
    )


@register.filter
def with_breaks(text: object) -> SafeString:
    """The text, in which a browser may begin a new line after the slashes of a URL, but not after https://."""
    return breakable_urls(str(text))


@register.filter
def recipient_name(operation: Operation | BatchRow) -> str:
    """Who receives it, in the reader's language."""
    return _recipient(operation).name


@register.filter
def recipient_detail(operation: Operation | BatchRow) -> str:
    """The recipient's bank, network or the like, in the reader's language."""
    return _recipient(operation).detail


def _recipient(operation: Operation | BatchRow) -> Recipient:
    stored = Recipient(operation.recipient, operation.recipient_detail)
    if get_language() == settings.LANGUAGE_CODE:
        return stored
    try:
        kind, payload = read_content(operation)
    except ContentUnreadableError:
        return stored
    return kind.recipient(payload)


@register.filter
def kind_label(name: str) -> str:
    """`Withdrawal` for `withdrawal`; the bare name of a kind that this version does not define."""
    return str(KINDS[name].label) if name in KINDS else name


@register.filter
def result_tone(result: str) -> str:
    return _TONES[ReconciliationResult(result)]


@register.filter
def lost_attempt_tone(state: str) -> str:
    return _LOST_ATTEMPT_TONES[LostAttemptState(state)]


@register.filter
def in_groups(text: str) -> list[str]:
    """The text in groups of four characters, for two people to compare."""
    return GroupedCode(text).groups


@register.filter
def entry_text(entry: Entry) -> str:
    """The comment, the reason, the provider's response or the refusal in an entry, as HTML.

    Text that a person typed is marked as a quotation; a sentence made from a code is not.
    """
    if not isinstance(entry.detail, dict):
        return format_html("{}", unreadable_text(entry.detail))
    name = next((name for name in _TEXT_KEYS if entry.detail.get(name)), None)
    if name is None:
        return ""
    sentence = AUDIT_SENTENCES.get(name)
    if sentence is None:
        return format_html("<q>{}</q>", entry.detail[name])
    return format_html("{}", in_words(sentence, entry.detail[name]))
