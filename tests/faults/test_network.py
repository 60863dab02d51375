"""Connections cut at a chosen byte, and invalid responses (faults 4 to 9): each outcome is that of the
provider's ledger.
"""

import pytest
from pytest_django import Settings

from backoffice.ledger import provider_list
from backoffice.operations.delivery.send import send_operation
from backoffice.operations.models.operations import Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from tests.faults.harness.connection_cuts import AfterCut, Side
from tests.faults.harness.figures import compare_with_provider, records_of
from tests.faults.harness.operations import MONEY, ONE_PER_BALANCE, PATHS
from tests.faults.harness.stage import FaultStage, is_left_open, is_settled
from tests.operations.steps import status_of
from tests.sandbox_process import SandboxProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]

NOTHING_SENT = {Status.APPROVED, Status.FAILED}
HEAD, BODY = (b"\r\n\r\n",), (b"\r\n\r\n", b"}")
# Where a request is cut: the words after its first line, and how many bytes after them.
OF_THE_REQUEST = {
    "before the first byte": ((), 0),
    "in its first line": ((), 9),
    "before its body": (HEAD, 4),
    "in its body": (HEAD, 14),
    "before its last byte": (BODY, 0),
    "after its last byte": (BODY, 1),
}
OF_THE_ANSWER = {"before it": 0, "in its status": 10, "in its head": 60, "in its body": 260}
NAMES = {
    "conversion": "balances.convert",
    "withdrawal": "balances.withdraw",
    "transfer": "balances.transfer",
    "wallet_transfer": "wallets.transfer",
    "payment": "payments.create",
}
every_kind = pytest.mark.parametrize(
    "kinds", [pytest.param(ONE_PER_BALANCE, id="apart"), pytest.param(("conversion",), id="conversion")]
)
every_end = pytest.mark.parametrize("then", [AfterCut.RESET, AfterCut.CLOSE])


@pytest.fixture
def impatient(provider: SandboxProcess, settings: Settings) -> None:
    """The provider has two seconds to respond; sending may begin late, as on a busy machine."""
    settings.SEND_DEADLINE_SECONDS = 2.0


def send(stage: FaultStage, *kinds: str) -> list[Operation]:
    """Send one operation of each kind; returns when all are done, whatever happened to the connection."""
    operations = stage.released(*kinds)
    for operation in operations:
        send_operation(operation.pk)
    return operations


def done_for(stage: FaultStage, operation: Operation) -> int:
    """How often the provider executed the operation."""
    return len(records_of(operation, stage.provider.ledger()))


def end_as_the_ledger_says(stage: FaultStage, operations: list[Operation], part: str) -> None:
    """Operations that were executed are closed by the list, or left to people where no list shows them.

    The others remain open, or are proven not sent. Sending again sends nothing.
    """
    executed = [operation for operation in operations if done_for(stage, operation)]
    stage.sweep_until_settled(executed)
    for operation in operations:
        send_operation(operation.pk)
        assert operation in executed or is_left_open(operation) or status_of(operation) in NOTHING_SENT
    compare_with_provider(stage.provider, part)


@every_kind
@every_end
@pytest.mark.parametrize("place", OF_THE_REQUEST)
def test_a_request_cut_in_transit(
    stage: FaultStage, kinds: tuple[str, ...], place: str, then: AfterCut
) -> None:
    words, after = OF_THE_REQUEST[place]
    cuts = [stage.wire.cut(PATHS[kind], *words, after=after, then=then) for kind in kinds]
    operations = send(stage, *kinds)
    assert all(cut.reached.is_set() for cut in cuts)
    if place != "after its last byte":
        assert not any(done_for(stage, operation) for operation in operations)
    stage.sweep_until(
        lambda: all(is_settled(one) or is_left_open(one) for one in operations), "all are looked at"
    )
    end_as_the_ledger_says(stage, operations, "request cut")


@every_kind
@every_end
@pytest.mark.parametrize("place", OF_THE_ANSWER)
def test_a_response_cut_in_transit(
    stage: FaultStage, kinds: tuple[str, ...], place: str, then: AfterCut
) -> None:
    cuts = [
        stage.wire.cut(PATHS[kind], side=Side.ANSWER, after=OF_THE_ANSWER[place], then=then) for kind in kinds
    ]
    operations = send(stage, *kinds)
    assert all(cut.reached.is_set() for cut in cuts)
    assert all(done_for(stage, operation) == 1 for operation in operations)
    end_as_the_ledger_says(stage, operations, "answer cut")


@every_kind
@pytest.mark.parametrize("place", ["in its body", "after its last byte", "in its answer"])
def test_a_worker_killed_during_the_exchange(stage: FaultStage, kinds: tuple[str, ...], place: str) -> None:
    operations = stage.released(*kinds)
    for operation in operations:
        words, after = OF_THE_REQUEST.get(place, ((), 80))
        side = Side.ANSWER if place == "in its answer" else Side.REQUEST
        cut = stage.wire.cut(PATHS[operation.kind], *words, side=side, after=after, then=AfterCut.STALL)
        worker = stage.forked_workers.run("send", str(operation.pk))
        cut.wait()
        worker.process.kill()
        cut.tear()
    stage.sweep_until(
        lambda: all(is_settled(one) or is_left_open(one) for one in operations), "silence is noticed"
    )
    end_as_the_ledger_says(stage, operations, f"killed with the wire {place}")


def test_a_failed_connection_proves_that_nothing_was_sent(stage: FaultStage) -> None:
    """The reads before use an open connection; the request opens one of its own, and is refused."""
    for operation in stage.released(*MONEY):
        provider_list.read_watermark(provider_list.begin_reading("NGN"))
        stage.wire.refuse()
        send_operation(operation.pk)
        stage.wire.listen()
        assert status_of(operation) == Status.APPROVED
        assert "Nothing was sent" in operation.attempts.get().response
    assert stage.provider.ledger()["orders"] == []
    compare_with_provider(stage.provider, "no connection")


@pytest.mark.parametrize(
    "address", ["https://no-such-host.invalid/v2", "http://127.0.0.1:9/v2", "https://127.0.0.1:{port}/v2"]
)
def test_an_unreachable_provider_keeps_the_release(
    stage: FaultStage, impatient: None, settings: Settings, address: str
) -> None:
    operations = stage.released(*MONEY)
    reached = settings.GATEWAY_URL
    settings.GATEWAY_URL = address.format(port=stage.wire.port)
    for operation in operations:
        send_operation(operation.pk)
        assert status_of(operation) == Status.APPROVED
        assert operation.attempts.count() == 0
    settings.GATEWAY_URL = reached
    stage.sweep_until_settled(operations)
    compare_with_provider(stage.provider, "service not reached")


STATUSES = (500, 502, 503, 504, 408, 409, 425, 429, 301, 302, 307, 308)
# A 429 means that nothing was done: it is not among the `uncertain_statuses` of the profile.
NO_ANSWERS = [(status, "before_execution") for status in STATUSES] + [
    (status, "after_execution") for status in STATUSES if status != 429
]
FORMS = (
    *(
        "empty",
        "half_json",
        "html",
        "html_as_json",
        "length_too_short",
        "length_too_long",
        "ten_megabytes",
        "nan",
    ),
    *("duplicate_keys", "data_is_null", "data_is_empty", "success_is_false", "nothing_at_all", "not_http"),
)


@every_kind
@pytest.mark.parametrize(("status", "when"), NO_ANSWERS)
def test_an_uninformative_status_code_leaves_the_outcome_unknown(
    stage: FaultStage, kinds: tuple[str, ...], status: int, when: str
) -> None:
    headers = {"Location": f"http://127.0.0.1:{stage.wire.port}/v2/again"} if status < 400 else {}
    faults = [
        stage.provider.fault(NAMES[kind], "status", status=status, when=when, headers=headers, times=None)
        for kind in kinds
    ]
    operations = send(stage, *kinds)
    assert all(done_for(stage, operation) == (when == "after_execution") for operation in operations)
    end_as_the_ledger_says(stage, operations, "status that is no answer")
    assert [stage.provider.hits(fault) for fault in faults] == [1] * len(kinds)


@every_kind
@pytest.mark.parametrize("form", FORMS)
def test_an_unreadable_success_leaves_the_outcome_unknown(
    stage: FaultStage, impatient: None, kinds: tuple[str, ...], form: str
) -> None:
    for kind in kinds:
        stage.provider.fault(NAMES[kind], "garbage", form=form)
    operations = send(stage, *kinds)
    assert all(done_for(stage, operation) == 1 for operation in operations)
    end_as_the_ledger_says(stage, operations, "unreadable success")


@every_kind
def test_an_execution_after_the_send_deadline_is_found(
    stage: FaultStage, impatient: None, kinds: tuple[str, ...]
) -> None:
    for kind in kinds:
        stage.provider.fault(NAMES[kind], "delay", seconds=600)
    operations = send(stage, *kinds)
    assert not any(done_for(stage, operation) for operation in operations)
    stage.provider.clear_faults()  # delayed requests continue
    stage.sweep_until(lambda: all(done_for(stage, one) for one in operations), "it is executed after all")
    for operation in operations:
        confirmation.confirm_operation(operation.pk)  # a person checks the status
    end_as_the_ledger_says(stage, operations, "executed after our deadline")


@pytest.mark.parametrize("kind", ["withdrawal", "conversion"])
def test_a_lagging_list_with_duplicates_closes_nothing_wrongly(stage: FaultStage, kind: str) -> None:
    stage.provider.fault("transactions.page", "hide_record_for", seconds=3)
    stage.provider.fault("transactions.page", "duplicate_record", position=0, times=None)
    stage.provider.fault(NAMES[kind], "drop", when="after_execution")
    [operation] = send(stage, kind)
    confirmation.confirm_operation(operation.pk)
    assert status_of(operation) == Status.UNKNOWN
    end_as_the_ledger_says(stage, [operation], "the list lags")


@pytest.mark.parametrize("side", Side)
def test_a_list_cut_in_transit_closes_nothing(stage: FaultStage, side: Side) -> None:
    stage.provider.fault("balances.withdraw", "drop", when="after_execution")
    [operation] = send(stage, "withdrawal")
    for _ in range(12):  # more than the client's own retries
        stage.wire.cut(b"GET /v2/transaction", side=side, after=50)
    confirmation.confirm_operation(operation.pk)
    stage.wire.cuts.clear()
    assert status_of(operation) == Status.UNKNOWN
    end_as_the_ledger_says(stage, [operation], "list cut")
