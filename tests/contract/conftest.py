"""One provider for the whole run, reset for each test; how many cases, and which."""

import pytest

from tests.contract import case_counts
from tests.sandbox_process import SandboxProcess


def pytest_report_header() -> str:
    return case_counts.summary()


@pytest.fixture(scope="session")
def process(sandbox_process: SandboxProcess) -> SandboxProcess:
    """The one of the whole run: a reset leaves nothing of what other tests did to it."""
    return sandbox_process


@pytest.fixture
def published(published_process: SandboxProcess) -> SandboxProcess:
    """The provider of the `published` profile, likewise."""
    published_process.reset()
    published_process.options(token_reuse=True)
    return published_process


@pytest.fixture
def provider(process: SandboxProcess) -> SandboxProcess:
    """The provider in its seeded state, which accepts a one-time code any number of times."""
    process.reset()
    process.options(token_reuse=True)
    return process
