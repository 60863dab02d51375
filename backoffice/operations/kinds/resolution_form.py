"""The form of a resolution and what it signs: what is said is held against the service's own record."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms

from backoffice.core import clock
from backoffice.core.display import local_time
from backoffice.ledger import selectors as ledger
from backoffice.operations.kinds.base import KindForm
from backoffice.operations.kinds.resolution_case import money_kind, open_case, unfit
from backoffice.operations.kinds.resolution_payload import (
    KNOWN_ENDS,
    End,
    ResolutionChoice,
    ResolutionPayload,
    SeenTransaction,
    TakenTransaction,
)
from backoffice.operations.kinds.traits import traits_of_attempt
from backoffice.operations.models import ID_LENGTH, Attempt, Operation
from payments_gateway import GatewayError, TransactionRecord

UNDER_WAY = "processing"  # of a transaction: money is moving
CLAIMS_TO_BE_OLDER = timedelta(days=1)  # by so much one that is known by its id may differ from our watermark


_UNREADABLE = "The service's list cannot be read now. Nothing was prepared; try again."
_VERDICTS = {
    ResolutionChoice.HAPPENED: "It happened",
    ResolutionChoice.ABSENT: "It did not happen, and it can no longer happen",
}
MEANINGS = {
    End.SUCCEEDED: "The money moved: it succeeded",
    End.FAILED: "The money did not move, or is back: it failed",
}


class _Verdicts(forms.RadioSelect):
    """What did not happen cannot be chosen while it still may."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        if value == ResolutionChoice.ABSENT:
            option["attrs"]["disabled"] = True
        return option


class ResolutionForm(KindForm):
    """Asks what became of it, and reads the transaction from the service."""

    operation = forms.UUIDField(widget=forms.HiddenInput)
    verdict = forms.ChoiceField(
        label="What became of it", choices=list(_VERDICTS.items()), widget=forms.RadioSelect
    )
    transaction_id = forms.CharField(
        label="As which transaction of the service, if it happened",
        required=False,
        max_length=ID_LENGTH,
        help_text="It is read from the service and signed as it stands there.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    meaning = forms.ChoiceField(
        label="What the service's word means",
        required=False,
        choices=list(MEANINGS.items()),
        widget=forms.RadioSelect,
        help_text="This word is not known here. Ask the service what it means; both of you sign what you say.",
    )
    reason = forms.CharField(
        label="How you know",
        max_length=300,
        help_text="What you compared, whom you asked, what they said. Whoever countersigns reads it.",
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "Say how you know."},
    )

    seen: SeenTransaction | None = None
    named: TakenTransaction | None = None
    asks_for_meaning = False  # whether the service shows the transaction under a word that is not known here

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _, attempt = open_case(_uuid(self["operation"].value()))
        if attempt is not None and clock.now() < attempt.may_come_until:
            self._offer_absent_only_from(attempt.may_come_until)

    def _offer_absent_only_from(self, moment: datetime) -> None:
        label = f"{_VERDICTS[ResolutionChoice.ABSENT]} (can be chosen from {local_time(moment)})"
        verdict = self.fields["verdict"]
        verdict.widget = _Verdicts(choices=list({**_VERDICTS, ResolutionChoice.ABSENT: label}.items()))

    @property
    def asks_for_transaction(self) -> bool:
        """Whether the service's list shows what happened, so that the transaction has to be named."""
        operation = self.target
        return operation is not None and money_kind(operation) is not None

    @property
    def target(self) -> Operation | None:
        """The operation that is settled; None if it is not open to that."""
        return open_case(_uuid(self["operation"].value()))[0]

    def clean(self) -> dict[str, Any]:
        """Hold what is said against what is known here and at the service."""
        values = super().clean() or self.cleaned_data
        self.settled, self.attempt = open_case(values.get("operation"))
        if self.settled is None or self.attempt is None:
            self.add_error(None, "Its outcome is known by now, or it was never open. Nothing was prepared.")
        elif values.get("verdict") == ResolutionChoice.HAPPENED:
            self._check_happened(self.settled, self.attempt, values)
        elif values.get("verdict") == ResolutionChoice.ABSENT:
            self._check_absent(self.settled, self.attempt, values)
        return values

    def content(self) -> ResolutionPayload:
        values = self.cleaned_data
        if self.settled is None or self.attempt is None:
            raise ValueError("only a valid form has content")
        return ResolutionPayload(
            operation=self.settled.pk,
            reference=self.settled.reference,
            sentence=self.settled.sentence,
            attempt=self.attempt.number,
            sent_at=self.attempt.started_at,
            verdict=ResolutionChoice(values["verdict"]),
            transaction=self.seen,
            named=self.named,
            meaning=End(values["meaning"]) if self.asks_for_meaning else None,
            reason=values["reason"],
        )

    def _check_absent(self, operation: Operation, attempt: Attempt, values: dict[str, Any]) -> None:
        if values.get("transaction_id"):
            self.add_error("transaction_id", "Leave it empty: what did not happen has no transaction.")
        if clock.now() < attempt.may_come_until:
            self.add_error(
                "verdict",
                f"The service may execute it until {local_time(attempt.may_come_until)}. Say so only after that.",
            )
        elif attempt.service_transaction_id:
            self._check_not_executed(operation, attempt, attempt.service_transaction_id)

    def _check_not_executed(self, operation: Operation, attempt: Attempt, transaction_id: str) -> None:
        """Read how the service shows the transaction that was taken for it, which becomes part of what is signed."""
        try:
            listed = ledger.transactions_since(operation.currency, attempt.sought_from - CLAIMS_TO_BE_OLDER)
        except GatewayError:
            self.add_error("verdict", _UNREADABLE)
            return
        record = _of_id(listed.records, transaction_id)
        if record is None and not listed.is_whole:
            self.add_error("verdict", _UNREADABLE)
        elif record is not None and record.status in {"fulfilled", UNDER_WAY}:
            self.add_error(
                "verdict",
                f"The service shows transaction {transaction_id}, which was taken for it, as {record.status}, so it "
                "cannot be said that it did not happen.",
            )
        else:
            shown = _seen(record, _differs(operation, attempt, record)) if record else None
            self.named = TakenTransaction(transaction_id=transaction_id, shown=shown)

    def _check_happened(self, operation: Operation, attempt: Attempt, values: dict[str, Any]) -> None:
        wanted = values.get("transaction_id", "")
        if money_kind(operation) is None:
            if wanted:
                self.add_error(
                    "transaction_id", "Leave it empty: the service's list does not show this kind."
                )
            return
        problem = unfit(attempt, wanted)
        if problem:
            self.add_error("transaction_id", problem)
            return
        try:
            record = _listed(operation, attempt, wanted)
        except GatewayError:
            self.add_error("transaction_id", _UNREADABLE)
            return
        problem = _no_evidence(attempt, record)
        if problem or record is None:
            self.add_error("transaction_id", problem)
            return
        self.seen = _seen(record, _differs(operation, attempt, record))
        self._check_meaning(self.seen, values.get("meaning", ""))
        self._check_failed(self.seen, attempt, values.get("meaning", ""))

    def _check_meaning(self, seen: SeenTransaction, meaning: str) -> None:
        """People say how it ended where the service's word does not tell it, and only there."""
        self.asks_for_meaning = seen.status not in KNOWN_ENDS
        if self.asks_for_meaning:
            self["meaning"].label = f"What {seen.word} means"
            if not meaning:
                self.add_error(
                    "meaning",
                    f"The service shows it as {seen.word}, which is neither fulfilled nor failed: "
                    "say what it means.",
                )
        elif meaning:
            self.add_error(
                None,
                f"The service shows it as {seen.word} by now, and that tells how it ended. Nothing was "
                "prepared; send the form again if that is what you say.",
            )

    def _check_failed(self, seen: SeenTransaction, attempt: Attempt, meaning: str) -> None:
        """A failed one may be another's, and ours come yet: then `failed` would hide a debit."""
        end = meaning if self.asks_for_meaning else KNOWN_ENDS[seen.status]
        if end == End.FAILED and clock.now() < attempt.may_come_until:
            self.add_error(
                "meaning" if self.asks_for_meaning else "transaction_id",
                f"If this one failed, it may be another's, and the service may execute ours until "
                f"{local_time(attempt.may_come_until)}. Say so only after that.",
            )


def _listed(operation: Operation, attempt: Attempt, transaction_id: str) -> TransactionRecord | None:
    """The transaction as the service's list shows it now. Raises GatewayError."""
    listed = ledger.transactions_since(operation.currency, attempt.sought_from)
    return _of_id(listed.records, transaction_id)


def _of_id(records: list[TransactionRecord], transaction_id: str) -> TransactionRecord | None:
    return next((record for record in records if record.transaction_id == transaction_id), None)


def _differs(operation: Operation, attempt: Attempt, record: TransactionRecord) -> list[str]:
    """What of the transaction does not fit what was sent."""
    of_attempt = traits_of_attempt(attempt, record)
    kind_and_payload = money_kind(operation)
    if kind_and_payload is None:
        return [trait.label for trait in of_attempt if trait.fits is False]
    kind, payload = kind_and_payload
    return [trait.label for trait in [*kind.traits(payload, record), *of_attempt] if trait.fits is False]


def _no_evidence(attempt: Attempt, record: TransactionRecord | None) -> str:
    """Why the service's record does not carry the resolution; empty if it does."""
    if record is None:
        return "The service's list does not show this transaction in the time after it was sent. Nothing was prepared."
    if not attempt.is_new_since(record.transaction_id) or (
        record.created_at is not None and record.created_at < attempt.sought_from
    ):
        return "The service showed this transaction before ours was sent, so it is another one."
    if record.status == UNDER_WAY:
        return "The service still shows it as processing. Wait until it is fulfilled or failed."
    return ""


def _seen(record: TransactionRecord, differs: list[str]) -> SeenTransaction:
    return SeenTransaction(
        transaction_id=record.transaction_id,
        type=record.type,
        status=record.status,
        currency=record.currency,
        amount=record.amount,
        fee=record.fee,
        counterparty=record.username,
        previous_balance=record.previous_balance,
        created_at=record.created_at,
        differs=tuple(differs),
    )


def _uuid(value: object) -> UUID | None:
    try:
        return UUID(str(value))
    except ValueError:
        return None
