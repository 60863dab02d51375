"""Deployment checks: settings without any effect, because no setting has the name, or a package is missing."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register


@register(Tags.security, deploy=True)
def check_extras(**_of_django: Any) -> Iterable[CheckMessage]:
    """Warn of a setting whose extra is not installed: nothing is reported then, and the process works."""
    return [
        Warning(
            f"{setting} is set, but the extra is not installed: nothing is reported.",
            hint=f"Install the release with its extras, of which `{extra}` is missing "
            "(deploy/install.sh SOURCE TARGET extras), or remove the setting.",
            id="core.W002",
        )
        for setting, extra in settings.MISSING_EXTRAS.items()
    ]


@register(Tags.security, deploy=True)
def check_names(**_of_django: Any) -> Iterable[CheckMessage]:
    """Warn of a COUNTERSIGN_ variable that nothing reads. It is no reason to refuse the start: a variable of a newer
    release must not keep the previous one, to which an operator returns, from starting.
    """
    for name in settings.UNKNOWN_VARIABLES:
        similar = get_close_matches(name, settings.KNOWN_VARIABLES, n=1, cutoff=0.85)
        yield Warning(
            f"{name} is set, but there is no such setting: it has no effect.",
            hint=f"Did you mean {similar[0]}?"
            if similar
            else "Remove it. docs/operator/configuration.md lists all.",
            id="core.W003",
        )
