"""What gunicorn reads by itself when it is started in this folder: its own lines go to the log of Countersign."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backoffice.settings")

logger_class = "backoffice.core.telemetry.web_process.GunicornLogger"
