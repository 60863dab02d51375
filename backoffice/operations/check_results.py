"""What a check of the provider showed of an attempt: a code with parameters. A page makes the sentence."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db.models import TextChoices


class MismatchReason(TextChoices):
    """Why the only candidate is rejected."""

    NO_TIME = "no_time", "it tells no time"
    ID_TOO_LONG = "id_too_long", "its id is too long to be kept"
    BALANCE_AS_BEFORE = (
        "balance_as_before",
        "the balance after it is the one we saw, so it was before ours",
    )
    OLDER_AND_NOT_ACCEPTED = (
        "older_and_not_accepted",
        "by its time it was before ours, and nothing says that ours was accepted",
    )
    OLDER_AND_OTHER_BALANCE = (
        "older_and_other_balance",
        "by its time it was before ours, and the balance before it is not the one we saw",
    )


class CheckResult(TextChoices):
    """What a check showed. The label is the sentence, with its parameters in braces."""

    NOT_OBSERVABLE = (
        "not_observable",
        "No read of the service shows what became of it: people have to ask the service",
    )
    PROVIDER_UNREADABLE = "provider_unreadable", "The service could not be read: {error}"
    LIST_CHANGING = "list_changing", "The service's list changed each time it was read"
    CONTENT_UNREADABLE = (
        "content_unreadable",
        "The content cannot be read by this version of the program, so nothing can be done with it.",
    )
    DONE = "done", "The service shows that it is done"
    NOT_DONE = "not_done", "The service does not show it yet"
    NOT_LISTED = "not_listed", "Not in the service's list yet"
    SEVERAL_CANDIDATES = "several_candidates", "{count} transactions in the list could be this one"
    CANDIDATE_REJECTED = "candidate_rejected", "{transaction} could be this one, but {reason}"
    FOUND = "found", "Found as {transaction}: {status}"
    FOUND_TOO_EARLY = (
        "found_too_early",
        "Found as {transaction}: {status}; not taken before {not_before} UTC, since ours may come yet",
    )
    INTERNAL_ERROR = (
        "internal_error",
        "An error in Countersign itself stands in the way ({error}); the log tells it.",
    )


def sentence(result: str, parameters: Mapping[str, Any]) -> str:
    """The result in words."""
    words = {name: _WORDS.get(name, str)(value) for name, value in parameters.items()}
    return str(CheckResult(result).label).format(**words)


_WORDS: dict[str, Callable[[str], str]] = {
    "transaction": lambda id_: id_[:100],
    "reason": lambda reason: str(MismatchReason(reason).label),
    "not_before": lambda at: f"{datetime.fromisoformat(at).astimezone(UTC):%H:%M}",
}
