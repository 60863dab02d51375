"""Run a module of the tools with Django set up: `python -m tools.inside_django <module> [arguments]`.

Such a module imports the product at its top, like any other.
"""

import os
import runpy
import sys

import django


def main() -> None:
    """Run the module as `__main__`. The settings are the product's unless the environment names others."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backoffice.settings")
    django.setup()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
