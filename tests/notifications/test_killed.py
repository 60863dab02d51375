"""A sweeper that is killed while it stores or delivers messages: nothing is lost, and nothing is sent twice."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings as product
from django.db import connection
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.notifications.models import Message
from tests import factories
from tests.notifications.receivers import MailServer
from tests.notifications.steps import sweep
from tools.processes import run_python

pytestmark = pytest.mark.django_db(transaction=True)
Sweeper = Callable[[str], int]
_URL = os.environ.get("COUNTERSIGN_TEST_DATABASE_URL")
DATABASE = {"COUNTERSIGN_DATABASE_URL": _URL} if _URL else {}


@pytest.fixture
def sweeper(mailbox: MailServer) -> Sweeper:
    """Runs the jobs in a process of their own that is killed at a point; returns its exit status."""

    def run(fault_point: str) -> int:
        (product.DATA_DIR / f"fault-{fault_point}").unlink(missing_ok=True)
        own = {
            "DJANGO_SETTINGS_MODULE": "tests.settings_of_subprocess",
            "COUNTERSIGN_DATA_DIR": str(product.DATA_DIR),
            **DATABASE,
            "COUNTERSIGN_TEST_DATABASE_NAME": str(connection.settings_dict["NAME"]),
            "COUNTERSIGN_PUBLIC_URL": "https://office.example",
            "COUNTERSIGN_EMAIL_URL": f"smtp://127.0.0.1:{mailbox.port}",
            "COUNTERSIGN_FAULT_POINT": f"{fault_point}=kill",
        }
        code = "import django; django.setup(); from tests.notifications.steps import sweep; sweep()"
        return run_python("-c", code, own=own, timeout=120).returncode

    return run


@pytest.mark.parametrize("fault_point", ["notifications.recorded", "notifications.claimed"])
def test_a_killed_sweeper_loses_and_repeats_nothing(
    preparer: User, approver: User, mailbox: MailServer, sweeper: Sweeper, fault_point: str
) -> None:
    factories.prepared(preparer)
    assert sweeper(fault_point) == -signal.SIGKILL
    assert mailbox.mails == []
    Message.objects.filter(due_at__isnull=False).update(due_at=timezone.now() - timedelta(seconds=1))
    sweep()
    sweep()
    assert [mail["To"] for mail in mailbox.mails] == [approver.email]
    assert Message.objects.get().delivered_at is not None
