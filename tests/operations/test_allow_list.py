"""The allow-list where it decides: when a payment is prepared, approved, released and claimed."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core.web.formatting import local_time
from backoffice.operations import errors
from backoffice.operations.allow_list import (
    cools_until,
    demanded_by_deployment,
    paid_by,
    problem_of_row,
    recipient_warnings,
)
from backoffice.operations.approval.waiting import deciders, operations_waiting_for
from backoffice.operations.delivery import send
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.recipient import RecipientChange, RecipientPayload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.refusals.sentences import sentence
from backoffice.operations.states import Status
from backoffice.recipients.models import RecipientState, RecipientVersion
from backoffice.recipients.register import version_in_effect
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.batches import payouts
from tests.operations.kinds.samples import SAMPLES
from tests.operations.provider_list import NAMED
from tests.operations.steps import show, status_of, text_of
from tests.policies.versions import put_in_effect
from tests.recipients import registered
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def allow_list(settings: Settings) -> Settings:
    settings.ALLOW_LIST = frozenset({"withdrawal", "transfer"})
    return settings


@pytest.fixture
def ada(preparer: User, approver: User) -> RecipientVersion:
    """The recipient of `factories.payload`, whom two people agreed on."""
    return registered.agreed(registered.bank_account(), preparer, approver)


def retire(version: RecipientVersion, preparer: User, approver: User) -> RecipientVersion:
    return registered.agreed(registered.changed(version, RecipientChange.RETIRE), preparer, approver)


def claim(operation: Operation) -> send.SendClaim | None:
    release = Release.objects.select_related("operation").get(pk=operation.pk)
    return send.claim_operation(operation.pk, send.preflight_read(release))


def test_without_an_allow_list_everybody_is_paid(preparer: User) -> None:
    assert factories.prepared(preparer).status == Status.PENDING


def test_a_recipient_outside_the_register_is_not_prepared(preparer: User, allow_list: Settings) -> None:
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.prepared(preparer)
    assert not Operation.objects.exists()
    assert factories.prepared_of_kind("wallet_transfer", SAMPLES["wallet_transfer"], preparer)


def test_a_suggestion_is_no_approval(preparer: User, allow_list: Settings) -> None:
    registered.suggested(preparer)
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.prepared(preparer)


def test_an_approved_recipient_is_paid(
    preparer: User, approver: User, ada: RecipientVersion, allow_list: Settings, provider: StubProvider
) -> None:
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver)
    assert claim(operation) is not None


def test_a_retired_recipient_is_refused_at_the_approval(
    preparer: User, approver: User, ada: RecipientVersion, allow_list: Settings
) -> None:
    operation = factories.prepared(preparer)
    retire(ada, preparer, approver)
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.approve(operation, approver)
    assert status_of(operation) == Status.PENDING


def test_a_retired_recipient_is_refused_at_the_release(
    preparer: User, approver: User, ada: RecipientVersion, allow_list: Settings
) -> None:
    operation = factories.approved(preparer, approver)
    retire(ada, preparer, approver)
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.release(operation, approver)


def test_a_retired_recipient_is_refused_at_the_claim_itself(
    preparer: User, approver: User, ada: RecipientVersion, allow_list: Settings, provider: StubProvider
) -> None:
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver)
    retire(ada, preparer, approver)
    with pytest.raises(errors.RecipientNotApprovedError):
        claim(operation)
    assert provider.changes == []


def test_a_kind_that_was_listed_since_is_refused_at_the_claim(
    preparer: User, approver: User, settings: Settings, provider: StubProvider
) -> None:
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver)
    settings.ALLOW_LIST = frozenset({"withdrawal"})
    with pytest.raises(errors.RecipientNotApprovedError):
        claim(operation)
    assert provider.changes == []


FORGED: dict[str, dict[str, Any]] = {
    "retired, made approved again": {"state": RecipientState.APPROVED},
    "without a seal": {"state": RecipientState.APPROVED, "seal": None},
}


@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED)
def test_a_forged_recipient_is_not_paid(
    preparer: User, approver: User, ada: RecipientVersion, allow_list: Settings, changes: dict[str, Any]
) -> None:
    operation = factories.approved(preparer, approver)
    gone = retire(ada, preparer, approver)
    with lifted(connection):
        RecipientVersion.objects.filter(pk=gone.pk).update(**changes)
    with pytest.raises(errors.RecipientAlteredError):
        factories.release(operation, approver)
    assert inspect(full=True).violations["altered_recipient"]


def test_a_recipient_of_another_key_is_not_paid_under_its_seal(
    preparer: User, approver: User, ada: RecipientVersion, allow_list: Settings
) -> None:
    with lifted(connection):
        RecipientVersion.objects.filter(pk=ada.pk).update(key="bank:044:9999999999")
    with pytest.raises(errors.RecipientAlteredError):
        factories.prepared(preparer, account_number="9999999999")


def test_the_currency_of_the_register_holds(preparer: User, approver: User, allow_list: Settings) -> None:
    registered.agreed(registered.bank_account(currency="USD"), preparer, approver)
    with pytest.raises(errors.RecipientCurrencyError, match="in USD only"):
        factories.prepared(preparer)
    assert factories.prepared(preparer, currency="USD", amount="10.00")


@pytest.mark.parametrize(
    "changes",
    [
        {"outgoing_amount": Decimal("150000.00"), "incoming_amount": None},
        {"outgoing_amount": None},  # calculated at the provider's rate
        {"payment_type": "profile", "service_username": "ngozi.eze"},
    ],
)
def test_the_currency_of_the_register_holds_for_the_payout_of_a_payment(
    preparer: User, approver: User, settings: Settings, changes: dict[str, Any]
) -> None:
    settings.ALLOW_LIST = frozenset({"payment"})
    registered.agreed(registered.bank_account(currency="USD"), preparer, approver)
    registered.agreed(registered.user(currency="USD"), preparer, approver)
    in_naira = SAMPLES["payment"].model_copy(update=changes)
    with pytest.raises(errors.RecipientCurrencyError, match="in USD only"):
        factories.prepared_of_kind("payment", in_naira, preparer)
    in_dollars = in_naira.model_copy(update={"outgoing_currency": "USD", "reference": "CS-1"})
    assert factories.prepared_of_kind("payment", in_dollars, preparer)


# The network of an address

EVM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def sent_on(network: str, amount: str = "10.00") -> Payload:
    changes = {"address": EVM, "network": network, "amount": Decimal(amount)}
    return SAMPLES["wallet_transfer"].model_copy(update=changes)


@pytest.fixture
def on_erc20(preparer: User, approver: User, settings: Settings) -> RecipientVersion:
    """An address that two people agreed on for one network, with the allow-list."""
    settings.ALLOW_LIST = frozenset({"wallet_transfer"})
    return registered.agreed(registered.address(EVM, network="ERC20"), preparer, approver)


def now_on(version: RecipientVersion, networks: str) -> RecipientPayload:
    before = {"network": networks, "network_before": version.network}
    return registered.changed(version).model_copy(update=before)


def test_the_network_of_the_register_holds(preparer: User, on_erc20: RecipientVersion) -> None:
    with pytest.raises(errors.RecipientNetworkError, match="on ERC20 only"):
        factories.prepared_of_kind("wallet_transfer", sent_on("BEP20"), preparer)
    assert factories.prepared_of_kind("wallet_transfer", sent_on("ERC20"), preparer)


def test_another_network_is_refused_at_every_later_step(
    preparer: User,
    approver: User,
    on_erc20: RecipientVersion,
    provider: StubProvider,
) -> None:
    both = registered.agreed(now_on(on_erc20, "ERC20, BEP20"), preparer, approver)
    pending, approved, released = (
        factories.prepared_of_kind("wallet_transfer", sent_on("BEP20", amount), preparer)
        for amount in ("1.00", "2.00", "3.00")
    )
    approved, released = (factories.approve(one, approver) for one in (approved, released))
    factories.release(released, approver, otp="")
    registered.agreed(now_on(both, "ERC20"), preparer, approver)
    with pytest.raises(errors.RecipientNetworkError):
        factories.approve(pending, approver)
    with pytest.raises(errors.RecipientNetworkError):
        factories.release(approved, approver, otp="")
    with pytest.raises(errors.RecipientNetworkError):
        claim(released)
    assert provider.changes == []


def test_a_further_network_is_agreed_on_and_begins_cooling_again(
    as_preparer: Client, approver: User, on_erc20: RecipientVersion, preparer: User, sandbox: SandboxProcess
) -> None:
    form = f"/operations/prepare/recipient/?change=change&recipient={on_erc20.recipient}"
    assert 'name="networks" value="BEP20"' in as_preparer.get(form).content.decode()
    values = {
        "change": "change",
        "type": "address",
        "recipient": str(on_erc20.recipient),
        "networks": ["ERC20", "BEP20"],
        "name": on_erc20.name,
        "reason": "They confirmed it",
        "submission": str(uuid.uuid4()),
    }
    url = "/operations/prepare/recipient/"
    review = as_preparer.post(url, {**values, "step": "review"})
    assert review.status_code == 200, review.context["form"].errors
    assert review.content.decode().count('name="networks"') == 2
    values |= {"step": "prepare", "digest": review.context["digest"]}
    assert as_preparer.post(url, values).status_code == 302
    operation = Operation.objects.get(kind="recipient", status=Status.PENDING)
    assert "ERC20, BEP20 (before: ERC20)" in text_of(as_preparer.get(operation.get_absolute_url()))
    factories.approve(operation, approver)
    both = version_in_effect(on_erc20.key)
    assert both is not None
    assert both.networks == ("ERC20", "BEP20")
    assert both.details_since > on_erc20.details_since
    assert not both.is_altered
    assert both.values["network"] == ""
    for place, network in enumerate(both.networks, start=1):
        assert factories.prepared_of_kind("wallet_transfer", sent_on(network, f"{place}.00"), preparer)


def test_the_row_of_a_file_on_another_network_is_refused(preparer: User, on_erc20: RecipientVersion) -> None:
    def paid(network: str) -> str:
        row = paid_by(KINDS["wallet_transfer"], sent_on(network))
        return problem_of_row("wallet_transfer", row, demanded_by_deployment())

    assert "on ERC20 only" in paid("BEP20")
    assert paid("ERC20") == ""


def test_without_the_allow_list_another_network_is_a_caution_to_both(
    as_preparer: Client, as_approver: Client, preparer: User, on_erc20: RecipientVersion, settings: Settings
) -> None:
    settings.ALLOW_LIST = frozenset()
    operation = factories.prepared_of_kind("wallet_transfer", sent_on("BEP20"), preparer)
    caution = "This address is approved on ERC20 only, and this payment is on BEP20."
    assert caution in text_of(show(as_approver, operation))
    required = demanded_by_deployment()
    assert recipient_warnings(operation.pk, KINDS["wallet_transfer"], sent_on("ERC20"), required) == []


def test_an_address_is_saved_on_its_networks_only(
    preparer: User, on_erc20: RecipientVersion, settings: Settings
) -> None:
    settings.ALLOW_LIST = frozenset()
    put_in_effect({"when": {"recipient": "saved"}, "levels": [{"needed": 3}]})
    needed = [
        factories.prepared_of_kind("wallet_transfer", sent_on(network, amount), preparer).approvals_needed
        for network, amount in (("ERC20", "1.00"), ("BEP20", "2.00"))
    ]
    assert needed == [3, 1]


# Cooling


def test_cooling_holds_the_payment_and_not_its_approval(
    preparer: User, approver: User, ada: RecipientVersion, allow_list: Settings, provider: StubProvider
) -> None:
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver)
    allow_list.RECIPIENT_COOLING_HOURS = 24
    with pytest.raises(errors.RecipientCoolingError):
        claim(operation)
    second = factories.approved(preparer, approver)
    with pytest.raises(errors.RecipientCoolingError, match="can be paid from") as caught:
        factories.release(second, approver)
    with timezone.override("Africa/Lagos"):  # where the reader is
        assert f"can be paid from {local_time(ada.details_since + timedelta(hours=24))}." in sentence(
            caught.value.refusal
        )
    assert {*provider.changes} <= {"POST /v2/bank/resolve"}


def test_cooling_begins_with_what_is_paid_and_not_with_notes(
    preparer: User, approver: User, ada: RecipientVersion, settings: Settings
) -> None:
    settings.RECIPIENT_COOLING_HOURS = 24
    noted = registered.agreed(registered.changed(ada, notes="Since May"), preparer, approver)
    assert cools_until(noted) == cools_until(ada) == ada.details_since + timedelta(hours=24)
    renamed = registered.agreed(registered.changed(noted, name="ADA EZE"), preparer, approver)
    assert renamed.details_since > ada.details_since
    gone = retire(renamed, preparer, approver)
    again = registered.agreed(
        registered.bank_account(name="ADA EZE", replaces=gone.number), preparer, approver
    )
    assert again.details_since > renamed.details_since


def test_cooling_holds_registered_recipients_without_an_allow_list_too(
    preparer: User, approver: User, second_approver: User, settings: Settings, provider: StubProvider
) -> None:
    settings.RECIPIENT_COOLING_HOURS = 24
    released = factories.approved(preparer, approver)
    factories.release(released, approver)
    ada = registered.agreed(registered.bank_account(), preparer, approver)
    with pytest.raises(errors.RecipientCoolingError):
        claim(released)
    held = factories.approved(preparer, approver)
    with pytest.raises(errors.RecipientCoolingError):
        factories.release(held, approver)
    settings.RECIPIENT_COOLING_EXTRA_APPROVAL = True
    assert held not in operations_waiting_for(approver)
    assert held in operations_waiting_for(second_approver)
    retire(ada, preparer, approver)
    assert held in operations_waiting_for(approver)
    assert factories.release(held, approver)


def test_without_an_allow_list_cooling_does_not_hold_who_is_not_registered(
    preparer: User, approver: User, settings: Settings, provider: StubProvider
) -> None:
    settings.RECIPIENT_COOLING_HOURS = 24
    registered.suggested(preparer)
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver)
    assert claim(operation) is not None


def test_below_the_ceiling_a_new_recipient_is_paid_at_once(
    preparer: User, approver: User, ada: RecipientVersion, allow_list: Settings, provider: StubProvider
) -> None:
    allow_list.RECIPIENT_COOLING_HOURS = 24
    allow_list.RECIPIENT_COOLING_CEILINGS = {"NGN": Decimal("300000.00")}
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver)
    assert claim(operation) is not None
    above = factories.approved(preparer, approver, amount="300000.01")
    with pytest.raises(errors.RecipientCoolingError):
        factories.release(above, approver)
    other_currency = factories.approved(preparer, approver, currency="USD", amount="1.00")
    with pytest.raises(errors.RecipientCoolingError):
        factories.release(other_currency, approver)


def test_the_ceiling_is_for_all_payments_together(
    preparer: User, approver: User, ada: RecipientVersion, allow_list: Settings, provider: StubProvider
) -> None:
    provider.answer_post = lambda: NAMED
    allow_list.RECIPIENT_COOLING_HOURS = 24
    allow_list.RECIPIENT_COOLING_CEILINGS = {"NGN": Decimal("300000.00")}
    first = factories.release(factories.approved(preparer, approver, amount="200000.00"), approver)
    second = factories.approved(preparer, approver, amount="150000.00")
    factories.release(second, approver)
    assert send.send_operation(first.pk)
    with pytest.raises(errors.RecipientCoolingError):
        claim(second)


def test_one_more_approval_takes_the_place_of_cooling(
    preparer: User,
    approver: User,
    second_approver: User,
    ada: RecipientVersion,
    allow_list: Settings,
    provider: StubProvider,
    as_approver: Client,
) -> None:
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver)
    allow_list.RECIPIENT_COOLING_HOURS = 24
    allow_list.RECIPIENT_COOLING_EXTRA_APPROVAL = True
    with pytest.raises(errors.ApprovalsMissingError):
        claim(operation)
    assert status_of(operation) == Status.APPROVED
    assert "With one more approval" in text_of(show(as_approver, operation))
    factories.approve(Operation.objects.get(pk=operation.pk), second_approver)
    assert claim(operation) is not None


def test_the_rules_alone_decide_when_it_is_approved_and_one_more_when_it_is_released(
    preparer: User, approver: User, second_approver: User, ada: RecipientVersion, allow_list: Settings
) -> None:
    allow_list.RECIPIENT_COOLING_HOURS = 24
    allow_list.RECIPIENT_COOLING_EXTRA_APPROVAL = True
    operation = factories.approved(preparer, approver)
    with pytest.raises(errors.ApprovalsMissingError):
        factories.release(operation, approver)
    with pytest.raises(errors.AlreadyApprovedError):
        factories.approve(operation, approver)
    factories.approve(operation, second_approver)
    assert factories.release(operation, second_approver)


def test_what_lacks_only_the_approval_in_place_of_cooling_waits_for_who_can_give_it(
    preparer: User, approver: User, second_approver: User, ada: RecipientVersion, allow_list: Settings
) -> None:
    allow_list.RECIPIENT_COOLING_HOURS = 24
    allow_list.RECIPIENT_COOLING_EXTRA_APPROVAL = True
    allow_list.RECIPIENT_COOLING_CEILINGS = {"NGN": Decimal("300000.00")}
    within = factories.approved(preparer, approver)
    above = factories.approved(preparer, approver, amount="300000.01")
    assert set(operations_waiting_for(approver)) == {within}  # to be sent
    assert set(operations_waiting_for(second_approver)) == {within, above}
    assert deciders(above) == {second_approver.pk}
    factories.approve(above, second_approver)
    assert set(operations_waiting_for(approver)) == {within, above}  # to be sent


def test_what_was_sent_counts_for_what_waits_too(
    preparer: User,
    approver: User,
    second_approver: User,
    ada: RecipientVersion,
    allow_list: Settings,
    provider: StubProvider,
) -> None:
    allow_list.RECIPIENT_COOLING_HOURS = 24
    allow_list.RECIPIENT_COOLING_EXTRA_APPROVAL = True
    allow_list.RECIPIENT_COOLING_CEILINGS = {"NGN": Decimal("300000.00")}
    first = factories.release(factories.approved(preparer, approver, amount="200000.00"), approver)
    second = factories.approved(preparer, approver, amount="150000.00")
    assert second in operations_waiting_for(approver)
    assert claim(first) is not None
    assert second not in operations_waiting_for(approver)
    assert second in operations_waiting_for(second_approver)


def test_the_page_says_what_cooling_holds_and_until_when(
    preparer: User, approver: User, ada: RecipientVersion, allow_list: Settings, as_approver: Client
) -> None:
    operation = factories.approved(preparer, approver)
    allow_list.RECIPIENT_COOLING_HOURS = 24
    page = text_of(show(as_approver, operation))
    assert "Cannot be sent yet" in page
    assert "added or changed recently, and can be paid from" in page
    assert "/release/" not in page


def test_the_rows_of_a_batch_need_approved_recipients(
    preparer: User, approver: User, allow_list: Settings
) -> None:
    file = payouts.checked(preparer, payouts.transfers(2))
    errors_of_rows = [row.errors for row in file.rows.order_by("number")]
    assert [errors[0][0] for errors in errors_of_rows] == ["receiver_username"] * 2
    allow_list.ALLOW_LIST = frozenset()
    batch = payouts.prepared(preparer, payouts.transfers(2))
    allow_list.ALLOW_LIST = frozenset({"transfer"})
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.approve(batch, approver)
    for row in batch.rows.order_by("number"):
        username = row.payload["receiver_username"]
        registered.agreed(registered.user(username, name=f"Person {row.number}"), preparer, approver)
    assert status_of(batch) == Status.PENDING
    assert factories.approve(batch, approver).status == Status.APPROVED


# Policies


def test_a_user_is_paid_under_exactly_the_approved_name(
    preparer: User, approver: User, allow_list: Settings
) -> None:
    allow_list.ALLOW_LIST = frozenset()
    shouted = SAMPLES["transfer"].model_copy(update={"receiver_username": "NGOZI.EZE"})
    before = factories.prepared_of_kind("transfer", shouted, preparer)
    file = ["NGN,1000.00,NGOZI.EZE,week 46,"]
    batch = payouts.prepared(preparer, file)
    allow_list.ALLOW_LIST = frozenset({"transfer", "payment"})
    registered.agreed(registered.user("ngozi.eze"), preparer, approver)
    to_profile = {"payment_type": "profile", "service_username": "NGOZI.EZE"}
    refusals: list[Callable[[], Operation]] = [
        lambda: factories.prepared_of_kind("transfer", shouted, preparer),
        lambda: factories.prepared_of_kind(
            "payment", SAMPLES["payment"].model_copy(update=to_profile), preparer
        ),
        lambda: factories.approve(before, approver),
        lambda: factories.approve(batch, approver),
    ]
    for refused in refusals:
        with pytest.raises(errors.RecipientUsernameError, match=r"approved as ngozi\.eze only"):
            refused()
    field, problem = payouts.checked(preparer, file).rows.get().errors[0]
    assert (field, "approved as ngozi.eze only" in problem) == ("receiver_username", True)
    exact = SAMPLES["transfer"].model_copy(update={"amount": Decimal("61000.00")})
    assert factories.prepared_of_kind("transfer", exact, preparer)


def test_saved_means_approved_in_the_register(preparer: User, approver: User) -> None:
    put_in_effect({"when": {"recipient": "saved"}, "levels": [{"needed": 3}]})
    registered.suggested(preparer)
    needed = [factories.prepared(preparer).approvals_needed]
    ada = registered.agreed(registered.bank_account(), preparer, approver)
    needed.append(factories.prepared(preparer).approvals_needed)
    retire(ada, preparer, approver)
    needed.append(factories.prepared(preparer).approvals_needed)
    assert needed == [1, 3, 1]


def test_a_forged_recipient_satisfies_no_condition(
    preparer: User, approver: User, ada: RecipientVersion
) -> None:
    put_in_effect({"when": {"recipient": "not_saved"}, "levels": [{"needed": 2}]})
    with lifted(connection):
        RecipientVersion.objects.filter(pk=ada.pk).update(
            since=timezone.now() - timedelta(days=1), seal="x:y"
        )
    assert factories.prepared(preparer).approvals_needed == 2


def test_a_version_of_which_the_approval_is_gone_is_found(
    preparer: User, approver: User, ada: RecipientVersion
) -> None:
    assert "altered_recipient" not in inspect(full=True).violations
    with lifted(connection):
        RecipientVersion.objects.filter(pk=ada.pk).delete()
    assert version_in_effect(ada.key) is None
    assert Operation.objects.get().reference in str(inspect(full=True).violations["altered_recipient"])
