"""Tasks are enqueued only after the commit, and an unreachable broker delays no request."""

import json
import socket
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as product_settings
from django.db import transaction

from backoffice.core import background
from tests.core.environments import run
from tests.tools.test_brokers import wait_until

TASK = "operations.send"
PATIENCE = 1.5  # seconds that a person who has pressed the button may be kept by the broker

RING_TWICE = """
import time, django
django.setup()
from backoffice.core import background
for identifier in ("first", "second"):
    began = time.monotonic()
    background.enqueue_on_commit("operations.send", identifier)
    print(time.monotonic() - began)
"""


class BrokenOffError(Exception):
    """What makes a transaction roll back."""


def messages(identifier: object) -> list[dict[str, Any]]:
    """What the broker without a server, which the tests run with, holds for this id."""
    folder = product_settings.DATA_DIR / "broker" / "messages"
    held = [json.loads(file.read_text()) for file in folder.iterdir()]
    return [message for message in held if str(identifier) in message["headers"]["argsrepr"]]


@pytest.fixture
def identifier() -> uuid.UUID:
    return uuid.uuid4()


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken, so that nobody else listens there, and refuses every connection."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.django_db(transaction=True)
def test_the_job_is_enqueued_on_commit(identifier: uuid.UUID) -> None:
    with transaction.atomic():
        background.enqueue_on_commit(TASK, identifier)
        assert messages(identifier) == []
    [message] = messages(identifier)
    assert message["headers"]["task"] == TASK


@pytest.mark.django_db(transaction=True)
def test_the_message_carries_the_id_and_nothing_else(identifier: uuid.UUID) -> None:
    background.enqueue_on_commit(TASK, identifier)
    [message] = messages(identifier)
    assert message["headers"]["argsrepr"] == f"['{identifier}']"
    assert message["headers"]["kwargsrepr"] == "{}"


@pytest.mark.django_db(transaction=True)
def test_no_job_is_enqueued_after_a_rollback(identifier: uuid.UUID) -> None:
    def change() -> None:
        with transaction.atomic():
            background.enqueue_on_commit(TASK, identifier)
            raise BrokenOffError

    with pytest.raises(BrokenOffError):
        change()
    assert messages(identifier) == []


@pytest.mark.django_db(transaction=True)
def test_no_job_is_enqueued_for_a_rolled_back_savepoint(identifier: uuid.UUID) -> None:
    kept = uuid.uuid4()
    with transaction.atomic():
        background.enqueue_on_commit(TASK, kept)
        with transaction.atomic():
            background.enqueue_on_commit(TASK, identifier)
            transaction.set_rollback(True)
    assert messages(identifier) == []
    assert len(messages(kept)) == 1


@pytest.mark.parametrize("broker", ["redis://127.0.0.1:{port}/0", "amqp://guest:guest@127.0.0.1:{port}//"])
def test_an_unreachable_broker_neither_raises_nor_blocks(
    broker: str, closed_port: int, tmp_path: Path
) -> None:
    environment = {
        "DJANGO_SETTINGS_MODULE": "backoffice.settings",
        "COUNTERSIGN_DATA_DIR": str(tmp_path),
        "COUNTERSIGN_BROKER_URL": broker.format(port=closed_port),
    }

    def longest() -> float:
        first, second = map(float, run(RING_TWICE, environment).split())
        return max(first, second)

    # It waits as long each time; whatever else it takes, and a busy machine makes it take, differs.
    wait_until(lambda: longest() < PATIENCE)


def test_a_missing_message_folder_does_not_raise(tmp_path: Path) -> None:
    broken = RING_TWICE.replace(
        "for identifier",
        "import shutil\nfrom django.conf import settings\n"
        'shutil.rmtree(settings.DATA_DIR / "broker")\nfor identifier',
    )
    environment = {"DJANGO_SETTINGS_MODULE": "backoffice.settings", "COUNTERSIGN_DATA_DIR": str(tmp_path)}
    assert len(run(broken, environment).split()) == 2
