"""The environment of the product in a history: in-memory database, adjustable clock, broker, and processes
that die.
"""

import gc
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar, TypeVar
from unittest import mock
from uuid import UUID

from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connection, connections
from django.db.utils import ConnectionHandler
from django.test import override_settings
from greenlet import greenlet
from kombu import Connection
from kombu.pools import producers
from kombu.simple import SimpleQueue

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.celery import app
from backoffice.core import background, clock
from backoffice.operations.delivery import journal, restore_check
from backoffice.operations.delivery.release import SEND_TASK
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.operations import Attempt
from payments_gateway import GatewayError
from tests import factories
from tests.payments_gateway.vectors.make_vectors import FOLDER
from tests.simulation.in_memory_http import leading_to
from tests.simulation.provider import SimulatedProvider

Result = TypeVar("Result")

BROKER = Connection("memory://localhost")
BEGINNING = datetime(2030, 1, 7, 12, tzinfo=UTC)
SECOND_APPROVAL_ABOVE = Decimal(200)
CAST = {
    "Tunde": (Role.PREPARER,),
    "Ngozi": (Role.PREPARER, Role.APPROVER),
    "Amara": (Role.APPROVER,),
    "Chidi": (Role.APPROVER,),
    "Bola": (Role.APPROVER,),
}
ADMINISTRATOR = "Zainab"
"""Stores the authenticator secret, and does nothing else in a history."""

SETTINGS = {
    "GATEWAY_URL": "http://127.0.0.1:9/v2",
    "GATEWAY_URL_V4": "http://127.0.0.1:9/v4",
    "OTP_MODE": "",
    "WEBHOOK_KEYS": str(FOLDER / "current.pub.pem"),
    "SECOND_APPROVAL_ABOVE": dict.fromkeys(("NGN", "USD", "USDT"), SECOND_APPROVAL_ABOVE),
}
_LOG_OF_MOVES = """
    CREATE TEMP TABLE moves (number INTEGER PRIMARY KEY, operation TEXT, before TEXT, after TEXT);
    CREATE TEMP TRIGGER a_move AFTER UPDATE OF status ON main.operations_operation WHEN OLD.status <> NEW.status
        BEGIN INSERT INTO moves (operation, before, after) VALUES (NEW.id, OLD.status, NEW.status); END;
"""


class KilledError(BaseException):
    """The process ends here, as if by SIGKILL: the product never catches this, and no transaction is open."""


class BrokenError(BaseException):
    """A rule is broken: passes through the product, which survives the failure of one row."""


@dataclass(frozen=True)
class InjectedFault:
    """What happens to a process at a fault point: it dies, or is frozen.

    With `is_standstill` its own clock stops as well, as in a virtual machine that is suspended. This has no
    effect between the commit that the request begins and its first byte, where nothing can detect it.
    """

    point: str
    is_kill: bool
    is_standstill: bool = False


@dataclass
class SimulatedProcess:
    """One process of the product at work: what it has read, claimed and is sending, for the oracle."""

    life: greenlet
    injected_fault: InjectedFault | None
    seen: frozenset[str] = frozenset()
    attempt: Attempt | None = None
    sending: UUID | None = None
    stood_still: timedelta = timedelta()  # time that its own clock does not know of
    candidates: dict[int, set[str]] = field(default_factory=dict)


class InMemoryDatabase:
    """A migrated in-memory database with the cast in it, restored to its initial state in a tenth of a
    millisecond.
    """

    _new: ClassVar[sqlite3.Connection | None] = None  # the initial state, made once per process

    def __init__(self) -> None:
        connection.ensure_connection()
        if InMemoryDatabase._new is None:
            self._migrate()
        self._as_new().backup(self.raw)
        self.raw.executescript(_LOG_OF_MOVES)

    def _migrate(self) -> None:
        call_command("migrate", verbosity=0)
        for name, roles in CAST.items():
            factories.person(name, *roles)
        factories.person(ADMINISTRATOR, Role.ADMINISTRATOR)
        factories.record_rights()
        InMemoryDatabase._new = sqlite3.connect(":memory:", check_same_thread=False)
        self.raw.backup(InMemoryDatabase._new)

    def _as_new(self) -> sqlite3.Connection:
        assert InMemoryDatabase._new is not None
        return InMemoryDatabase._new

    @property
    def raw(self) -> sqlite3.Connection:
        opened: sqlite3.Connection = connection.connection
        return opened

    def begin_anew(self) -> None:
        connection.rollback()
        self._as_new().backup(self.raw)
        self.rows("DELETE FROM moves")

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows without the ORM, so that the oracle shares no code with the product."""
        return self.raw.execute(query, values).fetchall()


@dataclass
class World:
    """One history. The true time is the provider's; ours is behind it by `ours_is_behind`."""

    database: InMemoryDatabase
    on_reaching: Callable[[str, SimulatedProcess], None]
    true_time: datetime = BEGINNING
    ours_is_behind: timedelta = timedelta()
    running: SimulatedProcess | None = None
    frozen: list[SimulatedProcess] = field(default_factory=list)
    web_dies: bool = False
    seen_before: dict[int, frozenset[str]] = field(
        default_factory=dict
    )  # by attempt: what the list contained then
    claimed_at: dict[int, datetime] = field(default_factory=dict)  # in true time
    codes: list[tuple[str, datetime]] = field(default_factory=list)  # that arrived, and our time then

    def __post_init__(self) -> None:
        self.provider = SimulatedProvider(
            true_time=lambda: self.true_time,
            wait=self.wait,
            sender=lambda: self.running.sending if self.running else None,
            on_request=lambda: self.reached("service.requested"),
            on_code=lambda code: self.codes.append((code, self.our_time())),
        )

    def our_time(self) -> datetime:
        return self.true_time - self.ours_is_behind

    def steady_seconds(self) -> float:
        """The monotonic clock of the running process."""
        stood_still = self.running.stood_still if self.running else timedelta()
        return (self.our_time() - stood_still).timestamp()

    def wait(self, time: timedelta) -> None:
        """Let time pass; the provider executes what becomes due."""
        self.true_time += time
        self.provider.catch_up()

    def run(self, work: Callable[[], object], injected_fault: InjectedFault | None = None) -> None:
        """Run this in a new process, until it is done, dies or is frozen."""
        self._go_on(SimulatedProcess(greenlet(work), injected_fault))

    def thaw(self, process: SimulatedProcess) -> None:
        """Resume a frozen process."""
        self.frozen.remove(process)
        process.candidates = {}  # others may have checked meanwhile
        self._go_on(process)

    def kill(self, process: SimulatedProcess) -> None:
        """End a frozen process."""
        self.frozen.remove(process)
        process.life.throw()

    def reached(self, point: str) -> None:
        """Called by the product at each of its fault points."""
        process = self.running
        if process is None:
            self._of_the_web(point)
            return
        self._note(point, process)
        try:
            self.on_reaching(point, process)
        except AssertionError as exc:
            raise BrokenError(exc) from exc
        if process.injected_fault and process.injected_fault.point == point:
            fault, process.injected_fault = process.injected_fault, None
            if fault.is_kill:
                raise KilledError
            frozen_at = self.true_time
            self.frozen.append(process)
            process.life.parent.switch()
            if fault.is_standstill and point != "send.begun":
                process.stood_still += self.true_time - frozen_at

    def _note(self, point: str, process: SimulatedProcess) -> None:
        if point == "send.before_claim":
            process.seen = frozenset(record.transaction_id for record in self.provider.shown())
        elif point == "send.claimed":
            process.attempt = Attempt.objects.select_related("operation").latest("pk")
            self.seen_before[process.attempt.pk] = process.seen
            self.claimed_at[process.attempt.pk] = self.true_time
        elif point == "send.before_request" and process.attempt:
            process.sending = process.attempt.operation_id
        elif point == "send.response_received":
            process.sending = None

    def _of_the_web(self, point: str) -> None:
        if self.web_dies and point == "release.committed":
            self.web_dies = False
            raise KilledError

    def _go_on(self, process: SimulatedProcess) -> None:
        """Switch to the process; what it raises is raised here, since this is its parent greenlet."""
        kept, self.running = self.running, process
        process.life.parent = greenlet.getcurrent()
        try:
            process.life.switch()
        except KilledError:
            pass
        except BrokenError as exc:
            raise AssertionError(*exc.args) from exc
        finally:
            self.running = kept


class _Points(dict[str, str]):
    """Replaces `settings.FAULT_POINTS`, so that the product's fault points call the world of this history."""

    world: World | None = None

    def get(self, name: str, default: Any = None) -> Any:
        if self.world is not None:
            self.world.reached(name)
        return default


class SimulationStage:
    """Runs all histories of a test, one after the other."""

    def __init__(self, points: _Points) -> None:
        self._points = points
        self.database = InMemoryDatabase()
        self.people = {user.full_name: user for user in User.objects.all()}

    def new_world(self, on_reaching: Callable[[str, SimulatedProcess], None]) -> World:
        self.database.begin_anew()
        django_settings.OTP_MODE = ""
        pause.clear_pause_cache()
        restore_check.forget_positions()
        for path in journal.paths():
            path.unlink()
        queued_tasks()
        self._points.world = world = World(self.database, on_reaching)
        return world

    @property
    def world(self) -> World:
        assert self._points.world is not None
        return self._points.world


@contextmanager
def stage() -> Iterator[SimulationStage]:
    """An in-memory database in place of the suite's, an in-memory broker, and the provider's end of every
    connection.
    """
    here = ConnectionHandler(
        {
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": ":memory:",
                "OPTIONS": {"transaction_mode": "IMMEDIATE"},
            }
        }
    )

    def steady_seconds() -> float:
        return made.world.steady_seconds()

    points, suite = _Points(), connections["default"]
    with ExitStack() as stack:
        stack.callback(connections.__setitem__, "default", suite)
        connections["default"] = here["default"]
        stack.enter_context(override_settings(FAULT_POINTS=points, **SETTINGS))
        stack.enter_context(mock.patch.object(app.amqp, "_producer_pool", producers[BROKER]))
        made = SimulationStage(points)
        gc.collect()
        gc.freeze()  # nothing loaded so far is garbage; scanning it took half of the time
        stack.enter_context(clock.use_clock(lambda: made.world.our_time()))
        stack.enter_context(mock.patch.object(clock, "_steady_seconds", steady_seconds))
        stack.enter_context(leading_to(lambda: made.world.provider.connect()))
        stack.enter_context(mock.patch.object(background, "start_thread", _at_once))
        yield made


def _at_once(work: Callable[[], Result]) -> Callable[[], Result]:
    """In place of a thread: a history has one order of its requests."""
    try:
        result = work()
    except GatewayError as exc:
        error = exc

        def fail() -> Result:
            raise error

        return fail
    return lambda: result


def queued_tasks() -> list[str]:
    """Take the messages that the broker holds; returns the operations they name."""
    queued: list[str] = []
    queue = _queue()
    while True:
        try:
            message = queue.get_nowait()
        except queue.Empty:
            return queued
        message.ack()
        if message.headers["task"] == SEND_TASK:
            queued.append(message.payload[0][0])


@cache
def _queue() -> SimpleQueue:
    return BROKER.SimpleQueue("celery")
