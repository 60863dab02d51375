"""What people do in a history when much is paid at once: batches, bulk releases, and a stored authenticator secret."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from unittest import mock
from uuid import UUID, uuid5

from django.conf import settings
from pydantic import SecretStr

from backoffice import tasks
from backoffice.core import clock
from backoffice.operations.batches import control, creation, submission
from backoffice.operations.kinds.base import MoneyKind
from backoffice.operations.kinds.otp_secret import OtpSecretPayload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.batches import BatchRow, FileState, PayoutFile, PayoutFileRow
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.otp import TotpSecret
from backoffice.operations.states import Status
from backoffice.operations.workflow import bulk_release, prepare
from tests.simulation.actions import KINDS as CONTENTS
from tests.simulation.actions import HistoryActions
from tests.simulation.world import ADMINISTRATOR, InjectedFault

ROW_KINDS = ("withdrawal", "transfer", "wallet_transfer")
CHANGES: dict[str, Callable[..., object]] = {
    "pause": control.pause_batch,
    "resume": control.resume_batch,
    "cancel": control.cancel_batch,
}
SECRET = TotpSecret(b"the key of an authenticator")
_SPACE = UUID("0b5e9d6a-8a52-4a0e-9f0b-5f1d5a9a1c11")


@dataclass
class Payday:
    """Batches and bulk releases of one history. `batches` are all that were prepared."""

    office: HistoryActions
    batches: list[UUID] = field(default_factory=list)
    orders: list[UUID] = field(default_factory=list)
    files: Iterator[int] = field(default_factory=itertools.count)

    def store_secret(self) -> None:
        """Two people store an authenticator secret; from now on one-time codes are generated from it."""
        office = self.office
        payload = OtpSecretPayload(
            fingerprint=SECRET.fingerprint(), algorithm="SHA1", digits=6, period=30, replaces=""
        )
        pk = uuid5(_SPACE, "secret")
        administrator = office.people[ADMINISTRATOR]
        prepare.prepare_operation(
            pk, actor=administrator, kind="otp_secret", payload=payload, otp_secret=SECRET
        )
        office.decide(pk, "approve", "Amara")
        assert office.status(pk) == Status.SUCCEEDED
        settings.OTP_MODE = "managed"
        office.oracle.secret = SECRET

    def prepare_batch(self, kind: str, amounts: list[int], preparer: str = "Tunde") -> UUID | None:
        """A file whose check found nothing is submitted; the id of the batch, or None if that was refused."""
        office, first = self.office, len(self.office.prepared)
        payloads = [CONTENTS[kind](Decimal(amount), first + row) for row, amount in enumerate(amounts)]
        file = PayoutFile.objects.create(
            pk=uuid5(_SPACE, f"file {next(self.files)}"),
            uploader=office.people[preparer],
            kind=kind,
            name="payroll.csv",
            content=b"currency\n",  # if it is checked again, it has no rows
            language="en",
            state=FileState.CHECKED,
            row_count=len(payloads),
            checked_count=len(payloads),
            uploaded_at=clock.now(),
        )
        for number, (payload, amount) in enumerate(zip(payloads, amounts, strict=True), start=2):
            debit = KINDS[kind].debit(payload)
            assert debit is not None
            PayoutFileRow.objects.create(
                file=file,
                number=number,
                cells={},
                payload=payload.stored(),
                currency=debit.currency,
                amount=Decimal(amount),
                recipient_key=KINDS[kind].recipient(payload).key,
            )
        if office.try_to(submission.submit_file, file.pk, actor=office.people[preparer]) is None:
            return None
        office.prepared.append(file.pk)
        self.batches.append(file.pk)
        office.oracle.rows_of_batches[file.pk] = [payload.stored() for payload in payloads]
        return file.pk

    def create_rows(self, batch: UUID, injected_fault: InjectedFault | None = None) -> None:
        """A worker makes the rows operations, a row in each commit, so that it can be killed between them."""
        with mock.patch.object(creation, "CHUNK", 1):
            self.office.process(lambda: tasks.create_rows(str(batch)), injected_fault)
        self.note_rows()

    def note_rows(self) -> None:
        """Take the operations that rows became by now among those that people and processes act on."""
        made = BatchRow.objects.filter(operation__isnull=False).order_by("batch", "number")
        for pk in made.values_list("operation", flat=True):
            if pk not in self.office.prepared:
                self.office.prepared.append(pk)

    def release_many(self, person: str, injected_fault: InjectedFault | None = None) -> None:
        """A person orders all that is approved to be sent; a worker releases what needs no code of a person, and the
        person enters a code for what does.
        """
        office, approved = self.office, Operation.objects.filter(status=Status.APPROVED)
        operations = [one for one in approved.order_by("pk") if isinstance(KINDS[one.kind], MoneyKind)]
        signature = {"actor": office.people[person], "second_factor_at": clock.now()}
        pk = uuid5(_SPACE, f"order {len(self.orders)}")
        if office.try_to(bulk_release.start_bulk_release, pk, operations, **signature) is None:
            return
        self.orders.append(pk)
        self.release_pending(pk, injected_fault)
        order = BulkRelease.objects.get(pk=pk)
        for _ in operations:
            otp = SecretStr(f"token-{next(office.tokens)}")
            if not office.try_to(bulk_release.release_with_code, order, otp=otp, **signature):
                return

    def release_pending(self, pk: UUID, injected_fault: InjectedFault | None = None) -> None:
        self.office.process(lambda: tasks.release_many(str(pk)), injected_fault)

    def change_batch(self, number: int, change: str, person: str) -> None:
        """A person pauses, resumes or cancels a batch, permitted or not."""
        batch = self.batches[number % len(self.batches)]
        self.office.try_to(CHANGES[change], batch, actor=self.office.people[person])

    def pay(self, kind: str, amounts: list[int], injected_fault: InjectedFault | None = None) -> UUID | None:
        """The normal case: prepared, approved by two, made operations and released together."""
        batch = self.prepare_batch(kind, amounts, "Ngozi" if "Tunde" in self.office.away else "Tunde")
        if batch is None:
            return None
        for name in ("Amara", "Chidi"):
            self.office.decide(batch, "approve", name)
        self.create_rows(batch, injected_fault)
        self.office.world.wait(timedelta(seconds=1))
        self.release_many("Amara", injected_fault)
        return batch
