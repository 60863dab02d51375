"""The guided rotation from end to end against the sandbox, and where it can go wrong."""

from datetime import timedelta
from typing import Any

import pytest
import requests
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.api_keys import rotation
from backoffice.api_keys.models import KeyTestResult, Rotation
from backoffice.api_keys.reveal import ApiKeyError
from backoffice.api_keys.rotation import (
    RotationOpenError,
    RotationProgress,
    RotationStep,
    WrongRotationStepError,
    abandon_rotation,
    progress_of,
    start_rotation,
    verify_new_key,
)
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import credentials
from backoffice.core.gateway import gateway
from backoffice.core.models import GatewayKey
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.secret import Secret
from backoffice.operations.states import Status
from backoffice.operations.workflow.approvals import cancel_operation
from payments_gateway import CredentialsError
from tests.api_keys import steps
from tests.api_keys.steps import text_of
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/settings/api-keys/rotation/"


def current() -> RotationProgress:
    return progress_of(Rotation.objects.get(is_open=True))


def begin(client: Client) -> RotationProgress:
    assert client.post(f"{PAGE}start/").status_code == 302
    return current()


def press(client: Client, button: str, **typed: str) -> Any:
    return client.post(f"{PAGE}{current().rotation.pk}/{button}/", typed, follow=True)


def create(client: Client, approver: User, sandbox: SandboxProcess) -> Operation:
    typed = {**steps.NAMED, "rotation": str(current().rotation.pk)}
    return steps.approve_and_send(steps.prepare(client, "api_key_create", **typed), approver, sandbox)


def switch(client: Client, approver: User, sandbox: SandboxProcess) -> Operation:
    made = current().created
    assert made is not None
    typed = {"target": f"made:{made.pk}", "rotation": str(current().rotation.pk)}
    return steps.approve_and_send(steps.prepare(client, "api_key_switch", **typed), approver, sandbox)


def end_observation_period() -> None:
    Rotation.objects.update(watched_until=timezone.now() - timedelta(seconds=1))


def status_at_the_provider(sandbox: SandboxProcess, key: str) -> int:
    headers = {**sandbox.headers, "X-Api-Key": key}
    return requests.get(f"{sandbox.url}/balance", headers=headers, timeout=30).status_code


def test_a_full_rotation_ends_the_old_key_and_calls_continue(
    as_administrator: Client, approver: User, relaxed: SandboxProcess
) -> None:
    assert begin(as_administrator).step == RotationStep.CREATE
    assert create(as_administrator, approver, relaxed).status == Status.SUCCEEDED
    assert current().step == RotationStep.TEST
    page = text_of(press(as_administrator, "test"))
    assert "GET /balance with the new key succeeded: 3 balances read (NGN, USD, USDT)." in page
    assert current().step == RotationStep.SWITCH
    assert switch(as_administrator, approver, relaxed).status == Status.SUCCEEDED
    assert credentials.key_in_use().name == "till"
    press(as_administrator, "monitor", minutes="5")
    assert current().step == RotationStep.MONITOR
    end_observation_period()
    assert status_at_the_provider(relaxed, relaxed.api_key) == 200
    assert retire(as_administrator, approver, relaxed).status == Status.SUCCEEDED
    assert status_at_the_provider(relaxed, relaxed.api_key) == 401
    assert gateway().balances.list("NGN")
    assert current().step == RotationStep.DONE
    press(as_administrator, "finish")
    assert not Rotation.objects.filter(is_open=True).exists()
    assert [key.name for key in GatewayKey.objects.all()] == ["till"]
    assert gateway().balances.list("NGN")
    assert recorded_of_rotations() == {
        Action.ROTATION_STARTED,
        Action.ROTATION_TESTED,
        Action.ROTATION_WATCH_STARTED,
        Action.ROTATION_FINISHED,
    }


def retire(client: Client, approver: User, sandbox: SandboxProcess) -> Operation:
    assert client.get(current().next_link).context["form"].initial["short_hash"] == current().old_hash
    typed = {"short_hash": current().old_hash, "rotation": str(current().rotation.pk)}
    return steps.approve_and_send(steps.prepare(client, "api_key_invalidate", **typed), approver, sandbox)


def recorded_of_rotations() -> set[str]:
    return set(Entry.objects.filter(target_type="api_keys.rotation").values_list("action", flat=True))


@pytest.mark.parametrize(("count", "words"), [(1, "1 balance read (NGN)"), (2, "2 balances read (NGN)")])
def test_the_test_of_a_key_counts_one_balance_in_the_singular(count: int, words: str) -> None:
    tested = Rotation(test_result=KeyTestResult.PASSED, test_parameters={"count": count, "currencies": "NGN"})
    assert tested.test_text == f"GET /balance with the new key succeeded: {words}."


def test_calls_are_counted_after_the_switch_and_the_new_key_is_stored_once(
    as_administrator: Client, approver: User, relaxed: SandboxProcess
) -> None:
    begin(as_administrator)
    create(as_administrator, approver, relaxed)
    press(as_administrator, "test")
    gateway().balances.list("NGN")
    switch(as_administrator, approver, relaxed)
    gateway().balances.list("NGN")
    assert not Secret.objects.exists()
    assert "<dt>Requests since the switch</dt><dd>1</dd>" in text_of(as_administrator.get(PAGE))


def test_only_one_rotation_is_open_at_a_time(administrator: User) -> None:
    rotation.start_rotation(actor=administrator)
    with pytest.raises(RotationOpenError):
        rotation.start_rotation(actor=administrator)
    assert Rotation.objects.count() == 1


def test_an_abandoned_rotation_can_be_started_again(as_administrator: Client, administrator: User) -> None:
    begin(as_administrator)
    press(as_administrator, "abandon")
    assert "Abandoned" in text_of(as_administrator.get(PAGE))
    assert begin(as_administrator).step == RotationStep.CREATE


def test_abandoning_after_the_switch_changes_no_keys(
    as_administrator: Client, approver: User, relaxed: SandboxProcess
) -> None:
    begin(as_administrator)
    create(as_administrator, approver, relaxed)
    press(as_administrator, "test")
    switch(as_administrator, approver, relaxed)
    press(as_administrator, "abandon")
    assert credentials.key_in_use().name == "till"
    assert not credentials.key_in_use().counted
    assert [key.short_hash for key in credentials.former_keys()] == [
        credentials.probable_short_hash(credentials.environment_key().secret)
    ]
    assert status_at_the_provider(relaxed, relaxed.api_key) == 200


def test_a_key_refused_by_the_provider_is_not_activated(
    as_administrator: Client, approver: User, relaxed: SandboxProcess
) -> None:
    begin(as_administrator)
    made = create(as_administrator, approver, relaxed)
    expire_at_the_provider(relaxed, made)
    page = text_of(press(as_administrator, "test"))
    assert "GET /balance with the new key failed: X-Api-Key has been invalidated" in page
    assert current().step == RotationStep.TEST
    refused = switch(as_administrator, approver, relaxed)
    assert refused.status == Status.FAILED
    assert credentials.key_in_use().pk is None
    assert Secret.objects.filter(operation=made).exists()


def expire_at_the_provider(sandbox: SandboxProcess, made: Operation) -> None:
    attempt = made.attempts.get()
    assert attempt.result is not None
    body = {"apikey": attempt.result["short_hash"]}
    address = f"{sandbox.address}/v4/user/api-key/invalidate"
    requests.post(address, json=body, headers=sandbox.headers, timeout=30).raise_for_status()


def test_refused_calls_are_counted_and_switching_back_is_offered(
    as_administrator: Client, approver: User, relaxed: SandboxProcess
) -> None:
    begin(as_administrator)
    made = create(as_administrator, approver, relaxed)
    press(as_administrator, "test")
    switch(as_administrator, approver, relaxed)
    gateway().balances.list("NGN")
    expire_at_the_provider(relaxed, made)
    with pytest.raises(CredentialsError):
        gateway().balances.list("NGN")
    page = text_of(as_administrator.get(PAGE))
    assert "The provider refused requests with the new key." in page
    assert f"?target=kept%3A{credentials.former_keys()[0].pk}" in page
    counted = GatewayKey.objects.get(state="in_use")
    assert (counted.calls, counted.refused) == (2, 1)


@pytest.mark.parametrize("is_refused", [False, True], ids=["while it works", "when it is refused"])
def test_an_approved_switch_back_activates_the_old_key(
    as_administrator: Client, approver: User, relaxed: SandboxProcess, *, is_refused: bool
) -> None:
    begin(as_administrator)
    made = create(as_administrator, approver, relaxed)
    press(as_administrator, "test")
    switch(as_administrator, approver, relaxed)
    if is_refused:
        expire_at_the_provider(relaxed, made)
    [old] = credentials.former_keys()
    back = steps.prepare(as_administrator, "api_key_switch", target=f"kept:{old.pk}")
    assert steps.approve_and_send(back, approver, relaxed).status == Status.SUCCEEDED
    assert credentials.key_in_use().pk == old.pk
    assert [key.name for key in credentials.former_keys()] == ["till"]
    assert "Countersign no longer uses the new key" in text_of(as_administrator.get(PAGE))


@pytest.mark.parametrize("button", ["test", "monitor", "finish"])
def test_an_action_of_another_step_is_refused(as_administrator: Client, button: str) -> None:
    begin(as_administrator)
    page = text_of(press(as_administrator, button, minutes="5"))
    assert "no longer at this step" in page
    assert current().step == RotationStep.CREATE


def test_a_closed_rotation_accepts_no_steps(administrator: User) -> None:
    rotation = start_rotation(actor=administrator)
    abandon_rotation(rotation.pk, actor=administrator)
    with pytest.raises(WrongRotationStepError):
        abandon_rotation(rotation.pk, actor=administrator)
    with pytest.raises(ApiKeyError):
        verify_new_key(rotation.pk, actor=administrator)


def test_an_invalid_observation_period_is_refused(
    as_administrator: Client, approver: User, relaxed: SandboxProcess
) -> None:
    begin(as_administrator)
    create(as_administrator, approver, relaxed)
    press(as_administrator, "test")
    switch(as_administrator, approver, relaxed)
    answer = press(as_administrator, "monitor", minutes="1000000")
    assert answer.status_code == 422
    assert current().rotation.watched_until is None


def test_a_key_that_was_not_created_is_reported_and_can_be_prepared_again(
    as_administrator: Client, administrator: User, relaxed: SandboxProcess
) -> None:
    begin(as_administrator)
    typed = {**steps.NAMED, "rotation": str(current().rotation.pk)}
    operation = steps.prepare(as_administrator, "api_key_create", **typed)
    assert f"{operation.reference}: pending" in text_of(as_administrator.get(PAGE))
    cancel_operation(operation.pk, actor=administrator)
    page = text_of(as_administrator.get(PAGE))
    assert f"{operation.reference}</a> was not executed: cancelled." in page
    assert "Prepare new key" in page


def test_the_operation_of_a_step_links_to_the_rotation(
    as_administrator: Client, as_approver: Client, relaxed: SandboxProcess
) -> None:
    begin(as_administrator)
    typed = {**steps.NAMED, "rotation": str(current().rotation.pk)}
    step = steps.prepare(as_administrator, "api_key_create", **typed)
    alone = steps.prepare(as_administrator, "api_key_create", **{**steps.NAMED, "key_name": "by itself"})
    assert f'<a href="{PAGE}">Open rotation</a>' in text_of(as_approver.get(step.get_absolute_url()))
    assert "Open rotation" not in text_of(as_approver.get(alone.get_absolute_url()))


def test_readers_see_the_progress_and_cannot_change_it(
    as_administrator: Client, as_approver: Client, relaxed: SandboxProcess
) -> None:
    begin(as_administrator)
    page = text_of(as_approver.get(PAGE))
    assert "1. Create a new key" in page
    assert "<button" not in page.partition("<main")[2]
    assert press(as_approver, "abandon").status_code == 403


def test_the_rotation_page_takes_at_most_eight_queries(
    as_administrator: Client,
    approver: User,
    relaxed: SandboxProcess,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    begin(as_administrator)
    create(as_administrator, approver, relaxed)
    press(as_administrator, "test")
    switch(as_administrator, approver, relaxed)
    press(as_administrator, "monitor", minutes="5")
    end_observation_period()
    credentials.clear_key_cache()
    with django_assert_max_num_queries(8):
        as_administrator.get(PAGE)
