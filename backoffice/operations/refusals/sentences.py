"""A refusal in words, made from its code and parameters when it is shown."""

from collections.abc import Mapping

from django.utils.translation import gettext
from pydantic import ValidationError

from backoffice.core.web.formatting import code_sentence, local_time_of_iso
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.policies.document import Level
from backoffice.policies.sentences import kind_name, level_text

ANYBODY = "-"
"""The parameter `preparer` of a refusal that does not depend on the preparer."""
_STATUS_LABELS = dict(Status.choices)


def sentence(refusal: Mapping[str, str]) -> str:
    """A stored refusal (its code and parameters) in words, with its time in the reader's time zone."""
    shown = {"hours": "24", **refusal}  # it was recorded without the hours before they could be set
    if "until" in refusal:
        shown["until"] = local_time_of_iso(refusal["until"])
    if refusal["code"] in {Refusal.STATUS_CHANGED, Refusal.OUTCOME_KNOWN}:
        shown["status"] = str(_STATUS_LABELS.get(refusal["status"], refusal["status"]))
    if refusal["code"] in {Refusal.NOT_IN_LEVEL, Refusal.POLICY_UNSATISFIABLE}:
        shown["level"] = _level_sentence(refusal["level"])
        shown["kind"] = kind_name(refusal.get("kind", ""))
        if refusal.get("preparer", ANYBODY) != ANYBODY:
            shown["kind"] = gettext("{kind} prepared by {preparer}").format(**shown)
    return code_sentence(Refusal, shown)


def _level_sentence(stored: str) -> str:
    try:
        return level_text(Level.model_validate_json(stored))
    except ValidationError:
        return stored
