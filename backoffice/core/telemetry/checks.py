"""The deployment check of error reports and traces."""

from collections.abc import Iterable
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
