"""What setup has to know: given, stored, asked, or made; and everything that is missing is named at once."""

from pathlib import Path

import pytest

from backoffice.core.encryption import parse_keys
from backoffice.installation.database import new_urls
from backoffice.installation.questions import QUESTIONS, MissingAnswersError, Question, answered

GIVEN = {
    "COUNTERSIGN_PUBLIC_URL": "https://pay.example",
    "COUNTERSIGN_GATEWAY_URL": "https://provider.example/v2",
    "COUNTERSIGN_GATEWAY_API_KEY": "the-key",
    "COUNTERSIGN_GATEWAY_API_USER": "the-merchant",
}


def test_keys_are_made_and_everything_else_follows_from_what_is_given() -> None:
    values = answered(GIVEN, {}, None)
    assert set(values) == {question.name for question in QUESTIONS}
    assert values["COUNTERSIGN_ALLOWED_HOSTS"] == "pay.example"
    assert values["COUNTERSIGN_GATEWAY_URL_V4"] == "https://provider.example/v4"
    for name in ("COUNTERSIGN_ENCRYPTION_KEYS", "COUNTERSIGN_AUDIT_CHECKPOINT_KEYS"):
        assert len(parse_keys((values[name],), setting=name)["first"]) == 32
    assert values["COUNTERSIGN_SECRET_KEY"] != answered(GIVEN, {}, None)["COUNTERSIGN_SECRET_KEY"]


def test_the_journal_stays_where_it_is(tmp_path: Path) -> None:
    """A process without its former journal would not notice that the database was restored."""
    given = {**GIVEN, "COUNTERSIGN_DATA_DIR": str(tmp_path)}
    assert answered(given, {}, None)["COUNTERSIGN_JOURNAL_DIR"] == f"{tmp_path}-journal"
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "host--countersign.jsonl").touch()
    assert answered(given, {}, None)["COUNTERSIGN_JOURNAL_DIR"] == str(tmp_path / "journal")


def test_what_an_earlier_run_stored_is_kept() -> None:
    stored = answered(GIVEN, {}, None)
    assert answered({**GIVEN, "COUNTERSIGN_PUBLIC_URL": "https://other.example"}, stored, None) == stored


def test_everything_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(MissingAnswersError) as refused:
        answered({}, {}, None)
    assert [name for name in GIVEN if name not in str(refused.value)] == []
    assert "COUNTERSIGN_SECRET_KEY" not in str(refused.value)
    for follows in ("COUNTERSIGN_ALLOWED_HOSTS", "COUNTERSIGN_GATEWAY_URL_V4", "()"):
        assert follows not in str(refused.value)


def test_what_does_not_follow_from_a_wrong_answer_is_missing() -> None:
    with pytest.raises(MissingAnswersError) as refused:
        answered({**GIVEN, "COUNTERSIGN_PUBLIC_URL": "pay.example"}, {}, None)
    assert str(refused.value) == "Not set: COUNTERSIGN_ALLOWED_HOSTS (Host names that people type)"


def test_only_what_a_person_has_to_decide_is_asked() -> None:
    asked: list[str] = []

    def ask(question: Question, default: str) -> str:
        asked.append(question.name)
        return default or GIVEN[question.name]

    values = answered({}, {}, ask)
    assert values["COUNTERSIGN_GATEWAY_API_KEY"] == "the-key"
    assert set(GIVEN) <= set(asked)
    assert not [name for name in asked if name.endswith(("_SECRET", "_KEYS", "_TOKEN", "SECRET_KEY"))]


def test_the_roles_have_different_names_and_passwords() -> None:
    urls = new_urls("postgres://admin:secret@db.example:5433/postgres?sslmode=verify-full")
    assert urls.runs.startswith("postgres://countersign:")
    assert urls.owns.startswith("postgres://countersign_owner:")
    assert urls.runs.endswith("@db.example:5433/countersign?sslmode=verify-full")
    assert urls.runs.split(":")[2] != urls.owns.split(":")[2]
    assert "secret" not in urls.runs.partition("@")[0].rpartition(":")[2]
