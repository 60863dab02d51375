#!/usr/bin/env python
"""Django's command line for Countersign."""

import os
import sys

import django
from django.core.management import execute_from_command_line

from backoffice.core.logs import log_uncaught_exceptions
from backoffice.core.management.command_errors import ended_by_closed_output, ended_by_unusable_database
from backoffice.installation import preparation
from backoffice.loading import without_garbage_collection
from backoffice.startup_checks import ended_by_refusals

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backoffice.settings")
    log_uncaught_exceptions()
    if sys.argv[1:2] == ["setup"]:
        preparation.main(sys.argv[2:])  # makes the variables that the settings are read from
    with ended_by_refusals():
        with without_garbage_collection():
            django.setup()
        with ended_by_closed_output(), ended_by_unusable_database():
            execute_from_command_line(sys.argv)
