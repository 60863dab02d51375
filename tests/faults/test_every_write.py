"""Every write to the provider, under both profiles, with every answer that proves nothing: exactly one request.

`test_network` cuts the connections of the kinds that move money; here are all kinds, through the product.
"""

from collections.abc import Mapping

import pytest
from django.core.cache import cache
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations import jobs
from backoffice.operations.delivery.send import send_operation
from backoffice.operations.kinds.base import LocalKind, Payload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from backoffice.operations.outcome import confirmation, schedule
from backoffice.operations.states import Outcome, Status
from payments_gateway.operations import OPERATIONS, CallEffect
from payments_gateway.profile.model import PROFILES
from tests import factories
from tests.faults.harness import operations
from tests.faults.harness.figures import FIGURES
from tests.faults.harness.operations import MONEY
from tests.faults.harness.processes import PATIENCE
from tests.faults.harness.stage import skip_waiting_time
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import status_of
from tests.sandbox_process import ISSUED_CODES, SandboxProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]

#: Call of the client -> the kind that makes it, and its content where that is not the sample.
WRITES: Mapping[str, tuple[str, dict[str, object]]] = {
    "balances.convert": ("conversion", {}),
    "balances.withdraw": ("withdrawal", {}),
    "balances.transfer": ("transfer", {}),
    "wallets.transfer": ("wallet_transfer", {}),
    # To a user, whose member has another name in each profile.
    "payments.create": (
        "payment",
        {
            **dict.fromkeys(("country", "bank_code", "bank", "account_number", "account_name"), ""),
            "payment_type": "profile",
            "service_username": "kelechi",
            "typed_name": "",
        },
    ),
    "api_keys.create": ("api_key_create", {"method": "full", "key_name": "", "scope": ""}),
    "callbacks.set_url": ("callback_url", {"previous": ""}),
    "accounts.create": ("bank_account", {}),
    "api_keys.generate": ("api_key_create", {}),
    "api_keys.invalidate": ("api_key_invalidate", {}),
    "api_keys.delete": ("api_key_delete", {}),
}
#: What happens to every request of the call: each leaves open whether it was executed.
FAULTS: Mapping[str, tuple[str, dict[str, object]]] = {
    "unavailable, not executed": ("status", {"status": 503, "when": "before_execution"}),
    "unavailable, executed": ("status", {"status": 503, "when": "after_execution"}),
    "conflict, executed": ("status", {"status": 409, "when": "after_execution"}),
    "redirected": (
        "status",
        {"status": 307, "when": "before_execution", "headers": {"Location": "/v2/again"}},
    ),
    "lost, not executed": ("drop", {"when": "after_read"}),
    "lost, executed": ("drop", {"when": "after_execution"}),
    "unreadable, executed": ("garbage", {"form": "html", "when": "after_execution"}),
}


def test_every_write_is_here() -> None:
    assert set(WRITES) == {each.name for each in OPERATIONS if each.effect is not CallEffect.READS}
    sent = {name for name, kind in KINDS.items() if not isinstance(kind, LocalKind)}
    assert {kind for kind, _ in WRITES.values()} == sent - {"api_key_switch"}  # it reads with the other key


@pytest.fixture(params=PROFILES)
def provider_in_profile(request: pytest.FixtureRequest, settings: Settings) -> SandboxProcess:
    """The simulated provider in each profile, in its seeded state, and the product with the same profile."""
    is_published = request.param == "published"
    name = "published_process" if is_published else "sandbox_process"
    process: SandboxProcess = request.getfixturevalue(name)
    process.reset()
    process.options(token_reuse=True)
    cache.clear()
    settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = process.url, f"{process.address}/v4"
    settings.GATEWAY_API_KEY, settings.GATEWAY_API_USER = process.api_key, process.api_user
    settings.GATEWAY_PROFILE = "published" if is_published else str(ISSUED_CODES)
    settings.SEND_DEADLINE_SECONDS = settings.SEND_WITHIN_SECONDS = float(PATIENCE)  # as on a busy machine
    settings.OTP_LIFETIME_SECONDS = 60 * settings.RELEASE_LIFETIME_MINUTES
    return process


def content_of(kind: str, changes: dict[str, object]) -> Payload:
    content = operations.payload(kind) if kind in MONEY else SAMPLES[kind]
    return content.model_copy(update=changes)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", WRITES)
def test_whatever_the_answer_a_write_is_requested_once(
    call: str,
    fault: str,
    provider_in_profile: SandboxProcess,
    preparer: User,
    approver: User,
    administrator: User,
    second_administrator: User,
) -> None:
    kind, changes = WRITES[call]
    owner = preparer if preparer.has_perm(KINDS[kind].permission) else administrator
    approved = factories.approve(factories.prepared_of_kind(kind, content_of(kind, changes), owner), approver)
    operation = operations.release(approved, approver, provider_in_profile)
    fault_kind, parameters = FAULTS[fault]
    number = provider_in_profile.fault(call, fault_kind, **parameters, times=None)
    send_operation(operation.pk)
    assert provider_in_profile.hits(number) == 1
    send_and_check_again(operation)
    assert provider_in_profile.hits(number) == 1
    assert status_of(operation) in {Status.UNKNOWN, Status.REVIEW, Status.PROCESSING, Status.SUCCEEDED}
    assert operation.attempts.get().outcome != Outcome.NOT_SENT
    ledger = provider_in_profile.ledger()
    executions = len(ledger["orders"]) + len(ledger["payments"])
    FIGURES.cells[f"one request, {provider_in_profile.profile}"] += 1
    FIGURES.double_debits += executions > 1
    assert executions == (kind in MONEY and fault.endswith(", executed"))
    assert ledger["differences"] == []


def send_and_check_again(operation: Operation) -> None:
    """Everything that could send it again: a second message, a sweep, status checks, a person's check."""
    skip_waiting_time()
    jobs.expire_due()
    jobs.send_due()
    schedule.check_due()
    send_operation(operation.pk)
    confirmation.confirm_operation(operation.pk)
