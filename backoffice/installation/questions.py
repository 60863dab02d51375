"""The variables that `manage.py setup` needs: from the environment, an earlier run or the terminal, or generated."""

import base64
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from getpass import getpass
from pathlib import Path
from urllib.parse import urlsplit

DATABASE_URL = "COUNTERSIGN_DATABASE_URL"
MIGRATION_DATABASE_URL = "COUNTERSIGN_MIGRATION_DATABASE_URL"
PUBLIC_URL = "COUNTERSIGN_PUBLIC_URL"
DATA_DIR = "COUNTERSIGN_DATA_DIR"
JOURNAL_DIR = "COUNTERSIGN_JOURNAL_DIR"
DESTINATIONS = "COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS"
KEYS = ("COUNTERSIGN_SECRET_KEY", "COUNTERSIGN_ENCRYPTION_KEYS", "COUNTERSIGN_AUDIT_CHECKPOINT_KEYS")
"""Made once: what was encrypted, sealed and signed with them needs them for ever."""

Answers = Mapping[str, str]


class MissingAnswersError(Exception):
    """What is needed was neither in the environment nor asked; the message names every variable."""


@dataclass(frozen=True)
class Question:
    """One variable: its prompt `text`, and its default; with None as the default, a value must be given."""

    name: str
    text: str
    default: Callable[[Answers], str] | None = None
    is_asked: bool = True  # otherwise the default is taken without asking
    is_secret: bool = False


def _key(_known: Answers) -> str:
    return f"first:{base64.b64encode(secrets.token_bytes(32)).decode()}"


def _always(value: str) -> Callable[[Answers], str]:
    return lambda _known: value


def _random(size: int) -> Callable[[Answers], str]:
    return lambda _known: secrets.token_urlsafe(size)


def _host(known: Answers) -> str:
    return urlsplit(known[PUBLIC_URL]).hostname or ""


def _journal(known: Answers) -> str:
    """The folder of journals that are there already: without them a restored database is not noticed."""
    former = Path(known[DATA_DIR]) / "journal"
    return str(former) if any(former.glob("*.jsonl")) else f"{known[DATA_DIR].rstrip('/')}-journal"


def _v4(known: Answers) -> str:
    return known["COUNTERSIGN_GATEWAY_URL"].rstrip("/").removesuffix("/v2") + "/v4"


QUESTIONS = (
    Question("COUNTERSIGN_ENVIRONMENT", "Environment: staging or production", _always("production")),
    Question(PUBLIC_URL, "Address under which people reach it, https://…"),
    Question("COUNTERSIGN_ALLOWED_HOSTS", "Host names that people type", _host, is_asked=False),
    Question("COUNTERSIGN_BEHIND_PROXY", "", _always("true"), is_asked=False),
    Question(DATA_DIR, "Folder for data, readable by its owner only", _always("/var/lib/countersign")),
    Question(
        JOURNAL_DIR, "Folder for the journal, on a volume that is not restored with the database", _journal
    ),
    Question("COUNTERSIGN_BROKER_URL", "Broker: redis://… or amqp://…", _always("redis://127.0.0.1:6379/0")),
    Question("COUNTERSIGN_GATEWAY_URL", "Provider's base address, https://…/v2"),
    Question("COUNTERSIGN_GATEWAY_URL_V4", "Provider's base address for {base_url_v4}", _v4),
    Question("COUNTERSIGN_GATEWAY_API_KEY", "API key of the merchant", is_secret=True),
    Question("COUNTERSIGN_GATEWAY_API_USER", "Username of the merchant at the provider"),
    Question(
        DESTINATIONS,
        "Where the signed head of the audit log is stored, on another volume",
        lambda known: f"file://{known[DATA_DIR].rstrip('/')}-checkpoints/checkpoints",
    ),
    Question("COUNTERSIGN_SECRET_KEY", "", _random(64), is_asked=False),
    Question("COUNTERSIGN_ENCRYPTION_KEYS", "", _key, is_asked=False),
    Question("COUNTERSIGN_AUDIT_CHECKPOINT_KEYS", "", _key, is_asked=False),
    Question("COUNTERSIGN_WEBHOOK_SECRET", "", _random(32), is_asked=False),
    Question("COUNTERSIGN_METRICS_TOKEN", "", _random(24), is_asked=False),
)

Ask = Callable[[Question, str], str]


def ask_at_terminal(question: Question, default: str) -> str:
    """What the person types, or the default for nothing."""
    prompt = f"{question.text}{f' [{default}]' if default else ''}: "
    return (getpass(prompt) if question.is_secret else input(prompt)).strip() or default


def answered(given: Answers, stored: Answers, ask: Ask | None) -> dict[str, str]:
    """The value of each variable: as stored by an earlier run, as given, as asked, or the default.

    Raises MissingAnswersError with the variables to set; one that follows from another of them is not listed. `ask` is
    None if nobody can be asked.
    """
    known: dict[str, str] = {}
    missing: list[str] = []
    for question in QUESTIONS:
        value = stored.get(question.name) or given.get(question.name) or _found_out(question, known, ask)
        if value:
            known[question.name] = value
        elif value is not None:
            missing.append(f"{question.name} ({question.text})")
    if missing:
        raise MissingAnswersError("Not set: " + ", ".join(missing))
    return known


def _found_out(question: Question, known: Answers, ask: Ask | None) -> str | None:
    """The answer or the default, empty if there is none; None if it follows from a variable that is missing."""
    try:
        default = question.default(known) if question.default else ""
    except KeyError:
        return None
    return ask(question, default) if ask and question.is_asked else default
