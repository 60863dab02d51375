"""Resolution: two people decide an unknown outcome (executed / not executed), or name the transaction that paid an
approved operation without a request from here. Nothing is sent.

The form checks the answer against the provider's own record, which becomes part of what both approve.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.core.web.formatting import format_amount, local_time
from backoffice.core.web.forms import reason_field
from backoffice.ledger import provider_list
from backoffice.operations.errors import CannotResolveError
from backoffice.operations.kinds.base import (
    Facts,
    KindForm,
    LocalEffect,
    LocalKind,
    OperationLink,
    Recipient,
    attempt_match_fields,
)
from backoffice.operations.kinds.resolution.case import (
    KNOWN_OUTCOMES,
    NAME,
    PROCESSING,
    ClaimedTransaction,
    ResolutionChoice,
    ResolutionPayload,
    ResolvedOutcome,
    TransactionEvidence,
    claim_problem,
    money_kind,
    not_sent,
    open_attempt,
    payment_problem,
    read_payment,
)
from backoffice.operations.models.holds import LookAlike
from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH, Attempt, Operation
from backoffice.operations.permissions import RESOLVE
from payments_gateway import GatewayError, TransactionRecord

_LIST_UNREADABLE = _("The provider's transactions could not be read. Nothing was prepared. Try again.")
_CHOICE_LABELS = {
    ResolutionChoice.EXECUTED: _("Executed"),
    ResolutionChoice.NOT_EXECUTED: _("Not executed, and can no longer be executed"),
}
MEANINGS = {
    ResolvedOutcome.SUCCEEDED: _("Succeeded: the money moved"),
    ResolvedOutcome.FAILED: _("Failed: no money moved, or it was returned"),
}


class _ChoiceSelect(forms.RadioSelect):
    """Disables "not executed" while the provider may still execute the operation."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        if value == ResolutionChoice.NOT_EXECUTED:
            option["attrs"]["disabled"] = True
        return option


class ResolutionForm(KindForm):
    """Asks for the outcome, and reads the transaction from the provider."""

    operation = forms.UUIDField(widget=forms.HiddenInput)
    choice = forms.ChoiceField(
        label=_("Outcome"), choices=list(_CHOICE_LABELS.items()), widget=forms.RadioSelect
    )
    transaction_id = forms.CharField(
        label=_("Provider's transaction ID"),
        required=False,
        max_length=TRANSACTION_ID_LENGTH,
        help_text=_("Required if executed. The provider's record becomes part of what is approved."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    meaning = forms.ChoiceField(
        label=_("Meaning of the provider's status"),
        required=False,
        choices=list(MEANINGS.items()),
        widget=forms.RadioSelect,
        help_text=_("The meaning of this status is unknown. Ask the provider."),
    )
    reason = reason_field(
        help_text=_("What you compared, whom you asked and what they said. Shown to the approver."),
        missing=_("Enter the reason."),
        max_length=300,
    )

    seen: TransactionEvidence | None = None
    claimed: ClaimedTransaction | None = None
    asks_for_meaning = False  # whether the transaction has a status that is not known here

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        operation_id = _uuid(self["operation"].value())
        self.not_sent = self.resolved_operation = not_sent(operation_id)
        self.attempt: Attempt | None = None
        if self.not_sent is not None:
            self.title = gettext("Resolve as already paid")
            self.fields["transaction_id"].help_text = gettext(
                "The provider's record becomes part of what is approved."
            )
            del self.fields["choice"]
        _, attempt = open_attempt(operation_id)
        if attempt is not None and clock.now() < attempt.execution_deadline:
            self._offer_not_executed_from(attempt.execution_deadline)

    def _offer_not_executed_from(self, moment: datetime) -> None:
        label = gettext("{label} (available from {time})").format(
            label=_CHOICE_LABELS[ResolutionChoice.NOT_EXECUTED], time=local_time(moment)
        )
        choice = self.fields["choice"]
        choice.widget = _ChoiceSelect(
            choices=list({**_CHOICE_LABELS, ResolutionChoice.NOT_EXECUTED: label}.items())
        )

    @property
    def asks_for_transaction(self) -> bool:
        """Whether the provider's list shows this kind, so that the transaction has to be named."""
        operation = self.target
        return operation is not None and money_kind(operation) is not None

    @property
    def target(self) -> Operation | None:
        """The operation to resolve; None if it may not be resolved."""
        return self.not_sent or open_attempt(_uuid(self["operation"].value()))[0]

    def clean(self) -> dict[str, Any]:
        """Check the answer against the record here and at the provider."""
        values = super().clean() or self.cleaned_data
        if self.not_sent is not None:
            self._check_payment(self.not_sent, values)
            return values
        self.resolved_operation, self.attempt = open_attempt(values.get("operation"))
        if self.resolved_operation is None or self.attempt is None:
            self.add_error(None, gettext("This operation has no unknown outcome. Nothing was prepared."))
        elif values.get("choice") == ResolutionChoice.EXECUTED:
            self._check_executed(self.resolved_operation, self.attempt, values)
        elif values.get("choice") == ResolutionChoice.NOT_EXECUTED:
            self._check_not_executed(self.resolved_operation, self.attempt, values)
        return values

    def content(self) -> ResolutionPayload:
        values = self.cleaned_data
        if self.resolved_operation is None:
            raise ValueError("only a valid form has content")
        return ResolutionPayload(
            operation=self.resolved_operation.pk,
            reference=self.resolved_operation.reference,
            sentence=self.resolved_operation.sentence,
            attempt=self.attempt.number if self.attempt else None,
            sent_at=self.attempt.started_at if self.attempt else None,
            choice=ResolutionChoice(values.get("choice", ResolutionChoice.EXECUTED)),
            transaction=self.seen,
            claimed=self.claimed,
            meaning=ResolvedOutcome(values["meaning"]) if self.asks_for_meaning else None,
            reason=values["reason"],
        )

    def _check_not_executed(self, operation: Operation, attempt: Attempt, values: dict[str, Any]) -> None:
        if values.get("transaction_id"):
            self.add_error(
                "transaction_id",
                gettext("Leave empty: an operation that was not executed has no transaction."),
            )
        if clock.now() < attempt.execution_deadline:
            self.add_error(
                "choice",
                gettext("The provider may execute it until {time}. Choose this only after that.").format(
                    time=local_time(attempt.execution_deadline)
                ),
            )
        elif attempt.provider_transaction_id:
            self._check_claimed_transaction(operation, attempt, attempt.provider_transaction_id)

    def _check_claimed_transaction(self, operation: Operation, attempt: Attempt, transaction_id: str) -> None:
        """Read how the claimed transaction is listed; this becomes part of what is approved."""
        try:
            listed = provider_list.transactions_since(operation.currency, attempt.received_id_search_from)
        except GatewayError:
            self.add_error("choice", str(_LIST_UNREADABLE))
            return
        record = _record_with_id(listed.records, transaction_id)
        if record is None and not listed.is_complete:
            self.add_error("choice", str(_LIST_UNREADABLE))
        elif record is not None and record.status in {"fulfilled", PROCESSING}:
            self.add_error(
                "choice",
                gettext(
                    "“Not executed” is not possible: the provider shows the matched transaction {id} as {status}."
                ).format(id=transaction_id, status=record.status),
            )
        else:
            shown = (
                _transaction_evidence(record, _mismatched_labels(operation, attempt, record))
                if record
                else None
            )
            self.claimed = ClaimedTransaction(transaction_id=transaction_id, shown=shown)

    def _check_executed(self, operation: Operation, attempt: Attempt, values: dict[str, Any]) -> None:
        transaction_id = values.get("transaction_id", "")
        if money_kind(operation) is None:
            if transaction_id:
                self.add_error(
                    "transaction_id",
                    gettext("Leave empty: the provider's list does not show operations of this kind."),
                )
            return
        problem = claim_problem(operation, attempt, transaction_id)
        if problem:
            self.add_error("transaction_id", problem)
            return
        try:
            record = _listed_transaction(operation, attempt, transaction_id)
        except GatewayError:
            self.add_error("transaction_id", str(_LIST_UNREADABLE))
            return
        problem = _evidence_problem(attempt, record)
        if problem or record is None:
            self.add_error("transaction_id", problem)
            return
        self.seen = _transaction_evidence(record, _mismatched_labels(operation, attempt, record))
        self._check_meaning(self.seen, values.get("meaning", ""))
        self._check_failed(self.seen, attempt, values.get("meaning", ""))

    def _check_payment(self, operation: Operation, values: dict[str, Any]) -> None:
        """Check that the transaction matches, that no attempt has claimed it, and that it moved money."""
        transaction_id = values.get("transaction_id", "")
        record, problem = None, claim_problem(operation, None, transaction_id)
        if not problem:
            try:
                record = read_payment(operation, transaction_id)
            except GatewayError:
                problem = str(_LIST_UNREADABLE)
            else:
                problem = payment_problem(operation, record)
        if problem or record is None:
            self.add_error("transaction_id", problem)
            return
        self.seen = _transaction_evidence(record, [])
        meaning = values.get("meaning", "")
        self._check_meaning(self.seen, meaning)
        if meaning == ResolvedOutcome.FAILED:
            self.add_error("meaning", gettext("A transaction that failed did not pay this operation."))

    def _check_meaning(self, seen: TransactionEvidence, meaning: str) -> None:
        """Require a meaning if the provider's status does not give the outcome, and only then."""
        self.asks_for_meaning = seen.status not in KNOWN_OUTCOMES
        if self.asks_for_meaning:
            self["meaning"].label = gettext("Meaning of status {status}").format(status=seen.quoted_status)
            if not meaning:
                self.add_error(
                    "meaning",
                    gettext("The provider's status is {status}. Select what it means.").format(
                        status=seen.quoted_status
                    ),
                )
        elif meaning:
            self.add_error(
                None,
                gettext(
                    "The provider's status is now {status}, which gives the outcome. Nothing was prepared. "
                    "If it is correct, submit the form again."
                ).format(status=seen.quoted_status),
            )

    def _check_failed(self, seen: TransactionEvidence, attempt: Attempt, meaning: str) -> None:
        """Refuse a failed transaction while ours may still be executed: `failed` would hide a debit."""
        outcome = meaning if self.asks_for_meaning else KNOWN_OUTCOMES[seen.status]
        if outcome == ResolvedOutcome.FAILED and clock.now() < attempt.execution_deadline:
            self.add_error(
                "meaning" if self.asks_for_meaning else "transaction_id",
                gettext(
                    "This failed transaction may belong to another payment: the provider may execute this operation "
                    "until {time}. Choose it only after that."
                ).format(time=local_time(attempt.execution_deadline)),
            )


def _listed_transaction(
    operation: Operation, attempt: Attempt, transaction_id: str
) -> TransactionRecord | None:
    """The transaction as the provider lists it now. Raises GatewayError."""
    listed = provider_list.transactions_since(operation.currency, attempt.search_from)
    return _record_with_id(listed.records, transaction_id)


def _record_with_id(records: list[TransactionRecord], transaction_id: str) -> TransactionRecord | None:
    return next((record for record in records if record.transaction_id == transaction_id), None)


def _mismatched_labels(operation: Operation, attempt: Attempt, record: TransactionRecord) -> list[str]:
    """The labels of the fields that do not match; stored, so in one language."""
    fields = attempt_match_fields(attempt, record)
    kind_and_payload = money_kind(operation)
    if kind_and_payload is not None:
        kind, payload = kind_and_payload
        fields = [*kind.match_fields(payload, record), *fields]
    with translation.override(settings.LANGUAGE_CODE):
        return [field.label for field in fields if field.matches is False]


def _evidence_problem(attempt: Attempt, record: TransactionRecord | None) -> str:
    """Why the provider's record is no evidence for the resolution; empty if it is."""
    if record is None:
        return gettext(
            "The provider's list shows no transaction with this ID since this operation was sent. "
            "Nothing was prepared. Check the ID."
        )
    if not attempt.is_after_watermark(record.transaction_id) or (
        record.created_at is not None and record.created_at < attempt.search_from
    ):
        return gettext(
            "This transaction was in the provider's list before this operation was sent, so it is not the "
            "transaction of this operation."
        )
    if record.status == PROCESSING:
        return gettext("The provider still shows it as processing. Wait until it has completed or failed.")
    return ""


def _transaction_evidence(record: TransactionRecord, mismatched: list[str]) -> TransactionEvidence:
    return TransactionEvidence(
        transaction_id=record.transaction_id,
        type=record.type,
        status=record.status,
        currency=record.currency,
        amount=record.amount,
        fee=record.fee,
        counterparty=record.username,
        previous_balance=record.previous_balance,
        created_at=record.created_at,
        mismatched=tuple(mismatched),
    )


def _uuid(value: object) -> UUID | None:
    try:
        return UUID(str(value))
    except ValueError:
        return None


class ResolutionKind(LocalKind[ResolutionPayload]):
    """Two people resolve an unknown outcome."""

    name = NAME
    label = _("Resolution")
    plural = _("Resolutions")
    letter = "R"
    verb = _("Resolve outcome")
    permission = RESOLVE
    effect = LocalEffect.RESOLVES_OPERATION
    payload_type = ResolutionPayload
    form_type = ResolutionForm

    def check_proposal(self, payload: ResolutionPayload, preparer: User) -> None:
        """Raises CannotResolveError if the operation was released since the form was opened."""
        if payload.attempt is None and not_sent(payload.operation) is None:
            raise CannotResolveError

    def sentence(self, payload: ResolutionPayload) -> str:
        return gettext("Resolve {reference}: {outcome}").format(
            reference=payload.reference, outcome=_choice_text(payload)
        )

    def recipient(self, payload: ResolutionPayload) -> Recipient:
        return Recipient(payload.reference, gettext("Outcome of an operation"))

    def facts(self, payload: ResolutionPayload) -> Facts:
        return [
            (
                gettext("Operation"),
                OperationLink.to(payload.operation, f"{payload.reference} · {payload.sentence}"),
            ),
            (gettext("Sent"), _sent_text(payload)),
            (gettext("Outcome"), _choice_text(payload)),
            *(_transaction_facts(payload.transaction) if payload.transaction else []),
            *_meaning_facts(payload),
            *(_claimed_facts(payload.claimed) if payload.claimed else []),
            (gettext("Reason"), payload.reason),
        ]

    def initial(self, payload: ResolutionPayload) -> dict[str, Any]:
        return {
            "operation": payload.operation,
            "choice": payload.choice.value,
            "transaction_id": payload.transaction.transaction_id if payload.transaction else "",
            "meaning": payload.meaning.value if payload.meaning else "",
            "reason": payload.reason,
        }

    def cautions(self, payload: ResolutionPayload) -> list[str]:
        """The fields that do not match, and a warning if the outcome is known by now."""
        seen = payload.transaction or (payload.claimed.shown if payload.claimed else None)
        differs = (
            [gettext("Fields that differ from the operation: {fields}").format(fields=_mismatched_text(seen))]
            if seen and seen.mismatched
            else []
        )
        if seen and payload.meaning:
            differs.append(
                gettext("The meaning of the provider's status {status} is unknown. Ask the provider.").format(
                    status=seen.quoted_status
                )
            )
        if payload.attempt is None:
            differs += _declared_otherwise(payload)
        if _is_applicable(payload):
            return differs
        return [
            gettext(
                "The outcome of {reference} is already known, so this resolution cannot be applied."
            ).format(reference=payload.reference),
            *differs,
        ]


def _is_applicable(payload: ResolutionPayload) -> bool:
    if payload.attempt is None:
        return not_sent(payload.operation) is not None
    _, attempt = open_attempt(payload.operation)
    return attempt is not None and attempt.number == payload.attempt


def _declared_otherwise(payload: ResolutionPayload) -> list[str]:
    """A warning if a person declared this transaction a different payment, so that the operation could be sent."""
    seen = payload.transaction
    declared = LookAlike.objects.filter(
        operation=payload.operation,
        transaction_id=seen.transaction_id if seen else "",
        declared_at__isnull=False,
    ).select_related("declared_by")
    text = gettext("{person} stated that this transaction is a different payment: {reason}")
    return [text.format(person=one.declared_by, reason=one.reason) for one in declared]


def _sent_text(payload: ResolutionPayload) -> str:
    if payload.sent_at is None:
        return gettext("Not by Countersign")
    return gettext("{time}, attempt {number}").format(
        time=local_time(payload.sent_at), number=payload.attempt
    )


def _choice_text(payload: ResolutionPayload) -> str:
    """The outcome in words, as the end of a sentence."""
    if payload.choice == ResolutionChoice.NOT_EXECUTED:
        if payload.claimed is None:
            return gettext("not executed")
        return gettext("not executed, although matched to transaction {id}").format(
            id=payload.claimed.transaction_id
        )
    seen = payload.transaction
    if seen is None:
        return gettext("executed")
    return _executed_text(payload).format(id=seen.transaction_id, status=seen.quoted_status)


def _executed_text(payload: ResolutionPayload) -> str:
    """The text for a transaction, with braces for its id and status."""
    if payload.attempt is None:
        return gettext("already paid as transaction {id}")
    has_failed = payload.outcome == ResolvedOutcome.FAILED
    if payload.meaning and has_failed:
        return gettext(
            "executed as transaction {id}; status {status} means that it failed: no money moved, or it was "
            "returned"
        )
    if payload.meaning:
        return gettext("executed as transaction {id}; status {status} means that it succeeded")
    if has_failed:
        return gettext("executed as transaction {id}, which failed")
    return gettext("executed as transaction {id}")


def _meaning_facts(payload: ResolutionPayload) -> Facts:
    seen = payload.transaction
    return (
        [
            (
                gettext("Meaning of status {status}").format(status=seen.quoted_status),
                str(MEANINGS[payload.meaning]),
            )
        ]
        if seen and payload.meaning
        else []
    )


def _claimed_facts(claimed: ClaimedTransaction) -> Facts:
    if claimed.shown is None:
        return [
            (
                gettext("Matched transaction"),
                gettext("{id}, not listed by the provider").format(id=claimed.transaction_id),
            )
        ]
    return [
        (
            gettext("Matched transaction"),
            gettext("{id}, status {status}").format(
                id=claimed.transaction_id, status=_status_text(claimed.shown)
            ),
        ),
        *_transaction_facts(claimed.shown),
    ]


def _status_text(seen: TransactionEvidence) -> str:
    return seen.status or gettext("(none)")


def _transaction_facts(seen: TransactionEvidence) -> Facts:
    facts = [
        (gettext("Transaction ID"), seen.transaction_id),
        (
            gettext("Provider's record"),
            f"{seen.type} {seen.currency} {format_amount(seen.amount, seen.currency)}, {seen.status}",
        ),
        (gettext("Time"), local_time(seen.created_at) if seen.created_at else gettext("not provided")),
        (gettext("Counterparty"), seen.counterparty or gettext("not provided")),
    ]
    if seen.previous_balance is not None:
        facts.append(
            (
                gettext("Balance before"),
                f"{seen.currency} {format_amount(seen.previous_balance, seen.currency)}",
            )
        )
    return [*facts, (gettext("Mismatched fields"), _mismatched_text(seen))] if seen.mismatched else facts


def _mismatched_text(seen: TransactionEvidence) -> str:
    """The stored labels in the reader's language."""
    return ", ".join(map(gettext, seen.mismatched))
