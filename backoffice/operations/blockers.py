"""Why a release has not left although it is its turn: a code with parameters."""

from collections.abc import Mapping

from django.db.models import TextChoices


class Blocker(TextChoices):
    """What is in the way. The label is the sentence, with its parameters in braces."""

    PROVIDER_UNREADABLE = "provider_unreadable", "The service cannot be read. {error}"
    LIST_CHANGING = (
        "list_changing",
        "The service cannot be read. The service's list changed each time it was read",
    )
    DATABASE_SLOW = (
        "database_slow",
        "The database answered too slowly, so what had been looked at was too old to act on.",
    )
    INTERNAL_ERROR = (
        "internal_error",
        "An error in Countersign itself stands in the way ({error}); the log tells it.",
    )


def sentence(blocker: str, parameters: Mapping[str, object]) -> str:
    """The blocker in words."""
    return str(Blocker(blocker).label).format(**parameters)
