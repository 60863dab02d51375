"""What a process loads at its start, and that later garbage collections leave it out."""

import os
import subprocess

from tools.processes import run_python

FROZEN = "import gc; print(gc.isenabled(), gc.get_freeze_count() > 100_000)"
LOADED = "import sys; print(*({'backoffice.operations.pages.overview', 'openpyxl'} & sys.modules.keys()))"


def started(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_python(*arguments, own={"COUNTERSIGN_DATA_DIR": os.environ["COUNTERSIGN_DATA_DIR"]})


def test_the_web_process_has_all_pages_before_its_first_request_and_no_reader_of_workbooks() -> None:
    web = started("-c", f"import backoffice.wsgi; {FROZEN}; {LOADED}")
    assert web.stdout.split("\n") == ["True True", "backoffice.operations.pages.overview", ""], web.stderr


def test_a_command_leaves_what_was_loaded_out_of_later_collections() -> None:
    command = started("manage.py", "shell", "--no-imports", "--command", FROZEN)
    assert command.stdout.split("\n") == ["True True", ""], command.stderr
