"""`make trial`: an empty installation with the link of its first administrator, which is printed once."""

import re
import signal
from pathlib import Path

import pytest
import requests

from tests.tools.test_brokers import wait_until
from tests.tools.test_demo import demo, operations

pytestmark = pytest.mark.stack
LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/account/set-up/[\w-]+/")


def test_the_trial_begins_empty_with_a_link_that_is_printed_once(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    with demo(folder, module="tools.trial") as first:
        wait_until(first.is_ready)
        link = LINK.search(first.said())
        assert link is not None
        assert "This one-time link is for Ada Obi" in requests.get(link[0], timeout=30).text
        sign_in = requests.get(f"{link[1]}/account/sign-in/", timeout=30).text
        assert "data-password" not in sign_in
        assert requests.get(f"{link[1]}/demo/mailbox/", timeout=30).status_code == 404
        assert operations(folder) == set()
        first.running.send_signal(signal.SIGINT)
        assert first.running.wait(120) == 0
        assert "`make trial` continues with it" in first.said()
    with demo(folder, module="tools.trial") as second:
        wait_until(second.is_ready)
        assert LINK.search(second.said()) is None
        assert "To begin again with an empty installation" in second.said()
