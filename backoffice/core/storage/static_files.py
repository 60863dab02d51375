"""Static files, compressed and named by their content, of several releases in one folder."""

from typing import Any

from django.conf import settings
from whitenoise.storage import CompressedManifestStaticFilesStorage


class ReleaseStaticFilesStorage(CompressedManifestStaticFilesStorage):
    """Each release has a list of names of its own: a process of the last one that restarts after `collectstatic` of the
    next, or after going back, finds the files that it was made with. Files of other releases are still served.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.manifest_name = f"staticfiles-{settings.VERSION}.json"
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
