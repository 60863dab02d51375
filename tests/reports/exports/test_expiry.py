"""What is removed from the folder of exports: files whose time is over, and what killed runners left."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.reports.errors import ExportGoneError
from backoffice.reports.exports import services
from backoffice.reports.exports.services import ABANDONED_AFTER
from backoffice.reports.models import ExportJob, ExportState, work_folder
from backoffice.reports.rendering.xlsx import encode_xlsx
from tests.reports.export_requests import actions, files, made, now, path_of, requested_export

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_folder")]


def test_the_file_is_deleted_after_seven_days(auditor: User) -> None:
    job = made(auditor)
    path = path_of(job)
    ExportJob.objects.filter(pk=job.pk).update(expires_at=clock.now())

    with pytest.raises(ExportGoneError):
        services.open_export(job.pk, actor=auditor)
    assert services.delete_expired_exports() == 1

    assert not path.exists()
    assert now(job).state == ExportState.EXPIRED
    assert actions(job)[-1] == "export.expired"
    assert services.delete_expired_exports() == 0


def test_only_files_of_killed_workers_are_removed(auditor: User) -> None:
    job = made(auditor)
    old = time.time() - ABANDONED_AFTER.total_seconds() - 60
    for name in ("left.part", "left"):
        (work_folder() / name).write_bytes(b"x")
        os.utime(work_folder() / name, (old, old))
    os.utime(path_of(job), (old, old))
    (work_folder() / "being-written.part").write_bytes(b"x")

    assert services.delete_expired_exports() == 2

    assert files() == sorted(["being-written.part", job.stored_as])


@pytest.fixture
def killed_at_rows() -> Iterator[Path]:
    """What a killed export of an Excel file leaves: a folder with its rows, from long ago."""
    rows = encode_xlsx(["a", "b"], ([str(number), ""] for number in range(2500)), folder=str(work_folder()))
    next(rows)
    (room,) = work_folder().iterdir()
    old = time.time() - 2 * ABANDONED_AFTER.total_seconds()
    for path in (*room.iterdir(), room):
        os.utime(path, (old, old))
    yield room
    rows.close()


def test_rows_that_a_killed_worker_left_are_removed(killed_at_rows: Path) -> None:
    assert services.delete_expired_exports() == 1

    assert files() == []


def test_rows_of_a_running_export_are_kept(auditor: User, killed_at_rows: Path) -> None:
    begun = clock.now() - 2 * ABANDONED_AFTER
    job = requested_export(auditor)
    ExportJob.objects.filter(pk=job.pk).update(state=ExportState.RUNNING, started_at=begun)

    assert services.delete_expired_exports() == 0

    assert files() == [killed_at_rows.name]


def test_rows_still_being_written_are_kept_at_any_age(killed_at_rows: Path) -> None:
    os.utime(next(killed_at_rows.iterdir()))

    assert services.delete_expired_exports() == 0
