"""Queries of the register: the version in effect of recipients, and the history of their approval."""

from collections.abc import Collection, Iterator

from django.db.models import Q, QuerySet

from backoffice.recipients.models import (
    AlteredRecipientError,
    RecipientState,
    RecipientType,
    RecipientVersion,
    searchable,
)

BY_NAME = ("sort_key", "id")
_AT_ONCE = 500


def newest_versions() -> QuerySet[RecipientVersion]:
    """The version in effect of every recipient, for lists."""
    return RecipientVersion.objects.filter(is_newest=True)


def find_recipients(text: str = "", *, state: str = "", kind: str = "") -> QuerySet[RecipientVersion]:
    """The newest versions with this text in name, alias, account or notes, in this state and of this type."""
    found = newest_versions()
    if text:
        found = found.filter(search_text__contains=searchable(text))
    if state:
        found = found.filter(state=state)
    return found.filter(type=kind) if kind else found


def usable_recipients(kind: RecipientType, text: str = "") -> QuerySet[RecipientVersion]:
    """Those that a form can be filled in with: not retired, by name."""
    found = find_recipients(text, kind=kind).filter(~Q(state=RecipientState.RETIRED))
    return found.order_by(*BY_NAME)


def version_in_effect(key: str) -> RecipientVersion | None:
    """The newest version of this key, whatever its state; None if it was never in the register."""
    return RecipientVersion.objects.filter(key=key).order_by("-number").first()


def versions_in_effect(keys: Collection[str]) -> dict[str, RecipientVersion]:
    """The newest version of each of these keys that is in the register.

    Found by its number, which a seal covers. Raises AlteredRecipientError for a row that two people did not agree on.
    """
    newest = recorded_versions(keys)
    if any(version.is_altered for version in newest.values()):
        raise AlteredRecipientError
    return newest


def recorded_versions(keys: Collection[str]) -> dict[str, RecipientVersion]:
    """The same as the register has it, altered or not: `version_in_effect` of many keys."""
    return {version.key: version for version in _versions(sorted(keys))}


def approval_history(keys: Collection[str]) -> dict[str, list[RecipientVersion]]:
    """Of each of these keys: its versions, in this order, that say whether it is approved. Altered ones are ignored."""
    found: dict[str, list[RecipientVersion]] = {}
    for version in _versions(sorted(keys)):
        if version.state != RecipientState.SUGGESTED and not version.is_altered:
            found.setdefault(version.key, []).append(version)
    return found


def _versions(keys: list[str]) -> Iterator[RecipientVersion]:
    """All versions of these keys in the order of their numbers, in queries of a limited size."""
    for start in range(0, len(keys), _AT_ONCE):
        of_some = RecipientVersion.objects.filter(key__in=keys[start : start + _AT_ONCE])
        yield from of_some.order_by("key", "number")
