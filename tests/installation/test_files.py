"""The file of variables is private, keeps what is in it, and is whole."""

from pathlib import Path

import pytest

from backoffice.installation import preparation
from backoffice.installation.preparation import EnvironmentFileError


def test_a_new_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "env"
    assert preparation.add_variables(file, {"COUNTERSIGN_A": "1"}) == ["COUNTERSIGN_A"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert list(file.parent.iterdir()) == [file]


def test_what_is_stored_is_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "env"
    preparation.add_variables(file, {"COUNTERSIGN_A": "1"})
    with file.open("a") as more:
        more.write("# by hand\nCOUNTERSIGN_B=two words")
    assert preparation.add_variables(file, {"COUNTERSIGN_A": "other", "COUNTERSIGN_B": "other"}) == []
    assert preparation.add_variables(file, {"COUNTERSIGN_C": "3"}) == ["COUNTERSIGN_C"]
    assert preparation.read_variables(file) == {
        "COUNTERSIGN_A": "1",
        "COUNTERSIGN_B": "two words",
        "COUNTERSIGN_C": "3",
    }
    assert "# by hand" in file.read_text()


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("COUNTERSIGN_A=1\n")
    file.chmod(0o640)
    with pytest.raises(EnvironmentFileError, match="chmod 600"):
        preparation.add_variables(file, {"COUNTERSIGN_B": "2"})
    assert file.read_text() == "COUNTERSIGN_A=1\n"


@pytest.mark.parametrize("value", ["two\nlines", 'with "quotes"', "with 'quotes'", "$HOME", "back\\slash"])
def test_a_value_that_readers_of_the_file_would_change_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(EnvironmentFileError, match="COUNTERSIGN_A"):
        preparation.add_variables(tmp_path / "env", {"COUNTERSIGN_A": value})
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_cannot_be_read_is_refused_so_that_its_key_is_not_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("# keys\n COUNTERSIGN_ENCRYPTION_KEYS=first:canary\n")
    file.chmod(0o600)
    with pytest.raises(EnvironmentFileError, match="line 2 cannot be read") as refused:
        preparation.add_variables(file, {"COUNTERSIGN_ENCRYPTION_KEYS": "second:made"})
    assert "canary" not in str(refused.value)
    assert "made" not in file.read_text()
