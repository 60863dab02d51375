"""One service for the whole run, reset for each test; how many cases, and which."""

from collections.abc import Iterator

import pytest

from tests.contract import profile
from tests.sandbox_process import SandboxProcess


def pytest_report_header() -> str:
    return profile.summary()


@pytest.fixture(scope="session")
def process() -> Iterator[SandboxProcess]:
    with SandboxProcess() as running:
        yield running


@pytest.fixture
def service(process: SandboxProcess) -> SandboxProcess:
    """The service in its seeded state, which takes a token as often as it comes."""
    process.reset()
    process.options(token_reuse=True)
    return process
