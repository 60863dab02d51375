"""What is removed from the folder of exports: files whose time is over, and what killed runners left."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.reports import services
from backoffice.reports.errors import GoneError
from backoffice.reports.models import ExportJob, folder
from backoffice.reports.services.tidying import FORGOTTEN_AFTER
from backoffice.reports.states import State
from backoffice.reports.xlsx import encode_xlsx
from tests.reports.asking import actions, asked_for, files, made, now

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_folder")]


def test_after_seven_days_the_file_is_gone(auditor: User) -> None:
    job = made(auditor)
    path = job.file
    ExportJob.objects.filter(pk=job.pk).update(expires_at=clock.now())

    with pytest.raises(GoneError):
        services.hand_out(job.pk, actor=auditor)
    assert services.tidy_exports() == 1

    assert not path.exists()
    assert now(job).state == State.EXPIRED
    assert actions(job)[-1] == "export.expired"
    assert services.tidy_exports() == 0


def test_what_killed_workers_left_is_removed_and_nothing_else(auditor: User) -> None:
    job = made(auditor)
    old = time.time() - FORGOTTEN_AFTER.total_seconds() - 60
    for name in ("left.part", "left"):
        (folder() / name).write_bytes(b"x")
        os.utime(folder() / name, (old, old))
    os.utime(job.file, (old, old))
    (folder() / "being-written.part").write_bytes(b"x")

    assert services.tidy_exports() == 2

    assert files() == sorted(["being-written.part", job.stored_as])


@pytest.fixture
def killed_at_rows() -> Iterator[Path]:
    """What a killed maker of an Excel file leaves: a folder with its rows, from long ago."""
    rows = encode_xlsx(["a", "b"], ([str(number), ""] for number in range(2500)), folder=str(folder()))
    next(rows)
    (room,) = folder().iterdir()
    old = time.time() - 2 * FORGOTTEN_AFTER.total_seconds()
    for path in (*room.iterdir(), room):
        os.utime(path, (old, old))
    yield room
    rows.close()


def test_rows_that_a_killed_worker_left_are_removed(killed_at_rows: Path) -> None:
    assert services.tidy_exports() == 1

    assert files() == []


def test_rows_of_an_export_that_is_being_made_stay(auditor: User, killed_at_rows: Path) -> None:
    begun = clock.now() - 2 * FORGOTTEN_AFTER
    job = asked_for(auditor)
    ExportJob.objects.filter(pk=job.pk).update(state=State.RUNNING, started_at=begun)

    assert services.tidy_exports() == 0

    assert files() == [killed_at_rows.name]


def test_rows_that_are_still_written_stay_however_old_their_folder(killed_at_rows: Path) -> None:
    os.utime(next(killed_at_rows.iterdir()))

    assert services.tidy_exports() == 0
