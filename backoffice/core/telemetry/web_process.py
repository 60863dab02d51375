"""The logger of gunicorn: its lines are written like those of the application. `gunicorn.conf.py` names it."""

import logging.config

from django.conf import settings
from gunicorn.config import Config
from gunicorn.glogging import Logger


class GunicornLogger(Logger):
    """Passes gunicorn's lines to the root logger. Its level remains gunicorn's `--log-level`.

    Its access log is off by default: the application writes one, without query strings (`RequestContextMiddleware`).
    """

    def setup(self, cfg: Config) -> None:
        Logger.setup(self, cfg)
        logging.config.dictConfig(settings.LOGGING)
        for logger in (self.error_log, self.access_log):
            logger.handlers.clear()
            logger.propagate = True
