"""What holds for every kind: only an approved operation reaches the provider, and only its kind's file speaks to it."""

import ast
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.accounts.roles import PERMISSIONS, Role
from backoffice.operations import errors, jobs
from backoffice.operations.delivery import release, send
from backoffice.operations.kinds.base import LocalKind, Payload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import APPROVE, APPROVE_GOVERNANCE
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from payments_gateway.operations import OPERATIONS, CallEffect
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.policies.versions import group
from tests.requirements import opened_by
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

BACKOFFICE = Path(errors.__file__).parents[1]
CHANGING = {operation.name for operation in OPERATIONS if operation.effect is not CallEffect.READS}
OWN_KINDS = {
    "api_key_switch"
}  # kinds of our own, which call no operation of the provider that changes anything
APPLIED_HERE = {name for name, kind in KINDS.items() if isinstance(kind, LocalKind)}
SENT = [name for name in KINDS if name not in APPLIED_HERE]
ROLES = ("preparer", "approver", "auditor", "administrator", "outsider")
APPROVERS = {APPROVE: "approver", APPROVE_GOVERNANCE: "second_administrator"}
BEFORE_APPROVAL = (Status.PENDING,)
AFTER_THE_END = (Status.REJECTED, Status.EXPIRED, Status.CANCELLED)

Person = Callable[[str], User]


@pytest.fixture
def person(request: pytest.FixtureRequest) -> Person:
    return lambda name: request.getfixturevalue(name)


def preparer_of(kind: str, person: Person) -> User:
    names = {
        "preparer": Role.PREPARER,
        "administrator": Role.ADMINISTRATOR,
        "approver": Role.APPROVER,
    }
    return next(person(n) for n, role in names.items() if KINDS[kind].permission in PERMISSIONS[role])


def sample_of(kind: str, person: Person) -> Payload:
    """The sample. A delegation is of people who exist: of the approver, to somebody of the same group."""
    sample = SAMPLES[kind]
    if kind != "delegation":
        return sample
    away, stand_in = person("approver"), person("second_approver")
    today = timezone.localdate(timezone=ZoneInfo("Africa/Lagos"))  # the sample's
    of_both = {
        "person": away.pk,
        "person_name": away.full_name,
        "stand_in": stand_in.pk,
        "stand_in_name": stand_in.full_name,
        "group": group("Treasury", away, stand_in).pk,
        "first_day": today,
        "last_day": today,
    }
    return sample.model_copy(update=of_both)


def pending(kind: str, person: Person) -> Operation:
    return factories.prepared_of_kind(kind, sample_of(kind, person), preparer_of(kind, person))


def test_every_kind_has_a_sample() -> None:
    assert set(SAMPLES) == set(KINDS)


def test_every_changing_operation_of_the_api_has_a_kind() -> None:
    declared = {operation.kind for operation in OPERATIONS if operation.effect is not CallEffect.READS}
    assert declared >= set(SENT) - OWN_KINDS


@pytest.mark.parametrize("name", KINDS)
def test_stored_content_round_trips(name: str) -> None:
    assert KINDS[name].read(SAMPLES[name].stored()) == SAMPLES[name]


@pytest.mark.parametrize("name", KINDS)
def test_the_page_summarises_it_and_shows_all_approved_content(name: str) -> None:
    kind, sample = KINDS[name], SAMPLES[name]
    assert 10 < len(kind.sentence(sample)) < 200
    assert all(label and value for label, value in kind.facts(sample))
    assert kind.recipient(sample).name
    assert set(kind.initial(sample)) <= set(kind.form_type.base_fields)


def test_key_letters_and_names_are_unique() -> None:
    assert len({kind.letter for kind in KINDS.values()}) == len(KINDS)
    assert all(name == kind.name for name, kind in KINDS.items())


# What was seen of the provider another time; the wish is the same.
SEEN_LATER: dict[str, dict[str, object]] = {
    "withdrawal": {"name_not_checked": {"code": "not_reached"}},
    "conversion": {"known_rate": None},
    "payment": {
        "reference": "CS-ANOTHER",
        "business_id": "another",
        "name_not_checked": {"code": "not_reached"},
    },
    "api_key_create": {"keys_before": ()},
    "api_key_switch": {"replaced_name": "another", "replaced_hash": "77777777"},
    "api_key_invalidate": {"expires": "tomorrow", "scope": "Everything", "knows_own_key": False},
    "api_key_delete": {"expires": "tomorrow", "is_known_here": True},
    "bank_account": {"known_numbers": None},
    "callback_url": {"previous": ""},
}


@pytest.mark.parametrize("name", KINDS)
def test_identical_content_is_pending_once_whatever_was_read_meanwhile(name: str, person: Person) -> None:
    preparer, sample = preparer_of(name, person), sample_of(name, person)
    assert set(SEEN_LATER.get(name, {})) <= sample.OBSERVED <= set(type(sample).model_fields)
    assert bool(sample.OBSERVED) == (name in SEEN_LATER)
    first = factories.prepared_of_kind(name, sample, preparer)
    again = sample.model_copy(update=SEEN_LATER.get(name, {}))
    with pytest.raises((errors.DuplicatePendingError, errors.DuplicatePaymentError)):
        factories.prepared_of_kind(name, again, preparer)
    assert list(Operation.objects.all()) == [first]


@pytest.mark.parametrize("role", opened_by(ROLES, on_both_engines="preparer"))
@pytest.mark.parametrize("name", KINDS)
def test_preparing_needs_the_permission_of_the_kind(name: str, role: str, person: Person) -> None:
    somebody = person(role)
    if somebody.has_perm(KINDS[name].permission):
        assert factories.prepared_of_kind(name, sample_of(name, person), somebody).status == Status.PENDING
        return
    with pytest.raises(errors.PermissionMissingError):
        factories.prepared_of_kind(name, SAMPLES[name], somebody)
    assert not Operation.objects.exists()


@pytest.mark.parametrize("role", opened_by(ROLES, on_both_engines="approver"))
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_sent_before_approval(
    name: str, role: str, person: Person, provider: StubProvider
) -> None:
    operation = pending(name, person)
    with pytest.raises(errors.OperationError):
        submit_release(operation, person(role))
    send.send_operation(operation.pk)
    jobs.send_due()
    assert provider.changes == []


@pytest.mark.parametrize("status", AFTER_THE_END)
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_sent_after_closing(
    name: str, status: Status, person: Person, provider: StubProvider
) -> None:
    operation = ended(pending(name, person), status, person)
    with pytest.raises(errors.WrongStatusError):
        submit_release(operation, person("second_approver"))
    send.send_operation(operation.pk)
    assert provider.changes == []


@pytest.mark.parametrize("role", opened_by(ROLES, on_both_engines="approver"))
@pytest.mark.parametrize("name", SENT)
def test_an_approved_operation_is_sent_once_by_permitted_roles(
    name: str, role: str, person: Person, provider: StubProvider
) -> None:
    operation = factories.approve(pending(name, person), person("approver"))
    somebody = person(role)
    if not somebody.has_perm("operations.release_operation"):
        with pytest.raises(errors.OperationError):
            submit_release(operation, somebody)
        send.send_operation(operation.pk)
        assert provider.changes == []
        return
    submit_release(operation, somebody)
    for _ in range(3):
        send.send_operation(operation.pk)
    assert len(provider.changes) == (0 if name in OWN_KINDS else 1)


@pytest.mark.parametrize("name", KINDS)
def test_identical_pending_content_is_refused(name: str, person: Person) -> None:
    preparer, sample = preparer_of(name, person), sample_of(name, person)
    first = factories.prepared_of_kind(name, sample, preparer)
    with pytest.raises(errors.OperationError) as refused:
        factories.prepared_of_kind(name, sample, preparer)
    assert isinstance(refused.value, errors.DuplicatePendingError | errors.DuplicatePaymentError)
    assert Operation.objects.get() == first


def test_only_kinds_call_changing_client_methods() -> None:
    callers = {
        (path.relative_to(BACKOFFICE).as_posix(), name)
        for path in BACKOFFICE.rglob("*.py")
        for name in calls_in(path) & CHANGING
    }
    assert {name for _, name in callers} <= CHANGING
    folders = {path.rpartition("/")[0] for path, _ in callers}
    assert folders == {"operations/kinds", "operations/kinds/api_keys"}


def test_kinds_are_sent_by_one_module() -> None:
    senders = {
        path.relative_to(BACKOFFICE).as_posix()
        for path in BACKOFFICE.rglob("*.py")
        if "kind.send" in calls_in(path)
    }
    assert senders == {"operations/delivery/send.py"}


def ended(operation: Operation, status: Status, person: Person) -> Operation:
    """The same, taken to this end by the services."""
    if status == Status.CANCELLED:
        return approvals.cancel_operation(operation.pk, actor=operation.preparer)
    if status == Status.REJECTED:
        return approvals.reject_operation(
            operation.pk,
            actor=person(APPROVERS[KINDS[operation.kind].approval_permission]),
            digest=operation.digest,
            second_factor_at=timezone.now(),
            reason="Not now",
        )
    Operation.objects.update(expires_at=timezone.now())
    expired = approvals.expire_operation(operation.pk)
    assert expired is not None
    return expired


def submit_release(operation: Operation, somebody: User) -> None:
    otp = SecretStr("123456") if KINDS[operation.kind].asks_for_otp else None
    release.release_operation(
        operation.pk,
        actor=somebody,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        otp=otp,
    )


def calls_in(path: Path) -> set[str]:
    """The last two names of everything that is called in a file: `balances.withdraw`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(".".join(ast.unparse(node.func).split(".")[-2:]))
    return found
