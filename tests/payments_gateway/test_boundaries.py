"""The client imports nothing of the application."""

import subprocess
import sys

import payments_gateway

ALONE = """
import sys, payments_gateway
print(sorted({name.split(".")[0] for name in sys.modules} & {"django", "backoffice"}))
"""


def test_the_client_imports_neither_django_nor_the_back_office() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_are_those_listed() -> None:
    assert all(hasattr(payments_gateway, name) for name in payments_gateway.__all__)
    assert len(set(payments_gateway.__all__)) == len(payments_gateway.__all__)
