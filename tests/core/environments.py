"""Environments of deployments, and what the product's settings make of them."""

import base64
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.processes import run_python

SECRETS = {
    "COUNTERSIGN_SECRET_KEY": "of-this-test-alone:qK7v0Zx3mB9rT1yWfUe8sLd2HnPcGj5",
    "COUNTERSIGN_ENCRYPTION_KEYS": "first:" + base64.b64encode(bytes(range(130, 162))).decode(),
    "COUNTERSIGN_GATEWAY_API_KEY": "a-key-of-this-test",
    "COUNTERSIGN_GATEWAY_API_USER": "a-merchant-of-this-test",
}
PRODUCTION = {
    "COUNTERSIGN_ENVIRONMENT": "production",
    "COUNTERSIGN_ALLOWED_HOSTS": "countersign.example",
    "COUNTERSIGN_SINGLE_MACHINE": "true",
    "COUNTERSIGN_GATEWAY_URL": "https://api.service.example/v2",
    "COUNTERSIGN_GATEWAY_URL_V4": "https://api.service.example/v4",
    **SECRETS,
}
STAGING = {
    **PRODUCTION,
    "COUNTERSIGN_ENVIRONMENT": "staging",
    "COUNTERSIGN_GATEWAY_URL": "https://staging.service.example/v2",
    "COUNTERSIGN_GATEWAY_URL_V4": "https://staging.service.example/v4",
}
REHEARSAL = {
    **PRODUCTION,
    "COUNTERSIGN_ENVIRONMENT": "rehearsal",
    "COUNTERSIGN_GATEWAY_URL": "http://127.0.0.1:8001/v2",
    "COUNTERSIGN_GATEWAY_URL_V4": "http://127.0.0.1:8001/v4",
    "COUNTERSIGN_NEW_RIGHTS_WAIT_HOURS": "0",
}
SANDBOX: dict[str, str] = {}
DEMO = {"COUNTERSIGN_DEMO": "true"}

_TELL = """
import json, backoffice.settings as values
print(json.dumps({name: getattr(values, name) for name in dir(values) if name.isupper()}, default=str))
"""

_TELL_EACH = """
import json, os, runpy, sys
inherited = dict(os.environ)
for environment in json.load(sys.stdin):
    os.environ.clear()
    os.environ.update(inherited | environment)
    try:
        values = runpy.run_module("backoffice.settings")
        result = {"values": {name: value for name, value in values.items() if name.isupper()}}
    except Exception as exc:
        result = {"refused": f"{type(exc).__name__}: {exc}"}
    print(json.dumps(result, default=str))
"""


@dataclass(frozen=True)
class Start:
    """What became of the settings in one environment: their values, or why they refused."""

    values: dict[str, Any] = field(default_factory=dict)
    refused: str = ""


def run(code: str, environment: dict[str, str], *, given: str = "") -> str:
    """What a Python process of its own printed in this environment and in no other COUNTERSIGN_ variables."""
    folder = os.environ["COUNTERSIGN_DATA_DIR"]
    Path(folder).chmod(0o700)
    own = {"COUNTERSIGN_DATA_DIR": folder, **environment}
    done = run_python("-c", code, own=own, given=given)
    done.check_returncode()
    return done.stdout


def starts_in(environments: Iterable[dict[str, str]]) -> list[Start]:
    """The settings executed anew in each environment, in one process: starting Python takes longer than they do."""
    output = run(_TELL_EACH, {}, given=json.dumps(list(environments)))
    return [Start(**json.loads(line)) for line in output.splitlines()]


def settings_in(environment: dict[str, str]) -> dict[str, Any]:
    """The settings as JSON: tuples are lists, paths and times are texts."""
    values: dict[str, Any] = json.loads(run(_TELL, environment))
    return values
