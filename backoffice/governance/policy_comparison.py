"""Two versions of the approval policies beside each other, as pages show them: rules, recipients, lists, time zone."""

from collections.abc import Collection
from typing import Any

from backoffice.policies.document import PolicyDocument
from backoffice.policies.sentences import Difference, compare, compare_lists, compare_recipients
from backoffice.recipients.keys import key_text
from backoffice.recipients.register import recorded_versions

_NAMED_AT_MOST = 500


def comparison_context(
    old: PolicyDocument, new: PolicyDocument, *, leave_out: Difference | None = None, is_first: bool = False
) -> dict[str, Any]:
    """What the template of the comparison shows: rules without those of this difference, changed requirements of
    recipients, changed lists, the zones.

    The rules of the configuration have no hours, so the first version (`is_first`) has no other zone than they have.
    Recipients on lists are shown with their names in the register. One query if a list differs.
    """
    lists = compare_lists(old, new)
    texts = recipients_in_words([key for each in lists for key in (*each.added, *each.removed)])
    return {
        "compared": [one for one in compare(old, new) if one.difference != leave_out],
        "compared_lists": [
            (each, *([texts[key] for key in keys] for keys in (each.removed, each.added))) for each in lists
        ],
        "compared_recipients": list(compare_recipients(old.recipients, new.recipients).values()),
        "zones": (old.time_zone, new.time_zone) if old.time_zone != new.time_zone and not is_first else None,
    }


def recipients_in_words(keys: Collection[str]) -> dict[str, str]:
    """Each of these recipients by its key: the name that the register has for it, and the account. One query."""
    found = recorded_versions(sorted(keys)[:_NAMED_AT_MOST])
    names = {key: version.title for key, version in found.items() if not version.is_altered}
    return {key: f"{names[key]}, {key_text(key)}" if key in names else key_text(key) for key in keys}
