"""What is stored is a code with parameters; the sentence is made when it is shown."""

import re
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors
from backoffice.operations.delivery.release import record_blocker
from backoffice.operations.models import reason_codes
from backoffice.operations.models.evidence import evidence_in_words, listed_transaction
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Operation, Release, verification_code
from backoffice.operations.models.reason_codes import (
    Blocker,
    CheckResult,
    DifferenceCode,
    MismatchReason,
    difference,
)
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.workflow import approvals


def test_a_refusal_is_kept_as_a_code_and_shown_as_a_sentence(operation: Operation, preparer: User) -> None:
    with pytest.raises(errors.PermissionMissingError) as refused:
        approvals.approve_operation(
            operation.pk, actor=preparer, digest=operation.digest, second_factor_at=timezone.now()
        )
    entry = Entry.objects.get(action=Action.OPERATION_ACTION_REFUSED)
    assert (entry.detail["attempted"], entry.detail["refusal"]) == ("approve", {"code": "permission_missing"})
    assert dict(entry.facts)["Refusal"] == str(refused.value) == str(Refusal.PERMISSION_MISSING.label)


@pytest.mark.parametrize("refusal", Refusal)
def test_every_refusal_is_rendered_with_its_parameters(refusal: Refusal) -> None:
    parameters = {name: f"<{name}>" for name in re.findall(r"{(\w+)}", str(refusal.label))}
    sentence = str(errors.OperationError(refusal, **parameters))
    assert all(text in sentence for text in parameters.values())
    assert "{" not in sentence


@pytest.mark.parametrize("blocker", Blocker)
def test_every_blocker_is_rendered_as_a_sentence(blocker: Blocker) -> None:
    sentence = reason_codes.blocker_sentence(blocker, {"error": "Timeout", "file": "a.jsonl"})
    assert ("Timeout" in sentence) == ("{error}" in str(blocker.label))


@pytest.mark.parametrize("result", CheckResult)
@pytest.mark.parametrize("reason", MismatchReason)
def test_every_check_result_is_rendered_as_a_sentence(result: CheckResult, reason: MismatchReason) -> None:
    known = {
        "transaction": "T-1",
        "status": "failed",
        "count": 2,
        "error": "Timeout",
        "reason": reason.value,
        "not_before": "2026-03-01T10:30:00+01:00",
    }
    names = re.findall(r"{(\w+)}", str(result.label))
    sentence = reason_codes.check_sentence(result, {name: known[name] for name in names})
    assert "{" not in sentence
    assert ("09:30 UTC" in sentence) == ("not_before" in names)
    assert (str(reason.label) in sentence) == ("reason" in names)


@pytest.mark.parametrize(
    ("code", "parameters", "words"),
    [
        (
            DifferenceCode.CURRENCY,
            {"local": "NGN", "provider": ""},
            "no currency at the provider, NGN expected",
        ),
        (
            DifferenceCode.AMOUNT,
            {"local": "5", "provider": "4", "currency": "NGN"},
            "amount 1.00 lower at the provider",
        ),
        (
            DifferenceCode.FEE,
            {"local": "5", "provider": "6", "currency": "NGN"},
            "fee 1.00 higher at the provider",
        ),
        (
            DifferenceCode.FIELD,
            {"field": "receiver", "local": "a", "provider": "b"},
            "Recipient's username: b at the provider, a expected",
        ),
        (
            DifferenceCode.OUTCOME,
            {"local": "failed", "provider": ""},
            "no status at the provider, recorded as failed",
        ),
        (
            DifferenceCode.NO_LONGER_LISTED,
            {"since": "2026-03-01T10:30:00+00:00"},
            "no longer in the provider's list since 1 Mar 2026, 10:30 UTC",
        ),
        (DifferenceCode.NOT_READ_FAR_ENOUGH, {}, "the provider's list has not been read far enough yet"),
        (
            DifferenceCode.MAY_BE_UNKNOWN_OPERATION,
            {"operations": ["W-1", "W-2"]},
            "may belong to W-1, W-2, whose outcome is unknown",
        ),
        (DifferenceCode.DIRECTION_NOT_PROVIDED, {}, "direction not provided"),
        (DifferenceCode.STATUS, {"provider": ""}, "no status at the provider"),
        (DifferenceCode.STATUS, {"provider": "reversed"}, "status at the provider: “reversed”"),
        (DifferenceCode.STATUS, {"provider": "fulfilled"}, "status at the provider: completed (“fulfilled”)"),
    ],
)
def test_every_field_difference_has_a_label(
    code: DifferenceCode, parameters: dict[str, str | list[str]], words: str
) -> None:
    assert reason_codes.difference_sentence(difference(code, **parameters)) == words


def test_evidence_shows_our_label_with_the_providers_own_word_beside_it() -> None:
    transaction = {"type": "sent", "status": "fulfilled", "currency": "USDT", "amount": "5"}
    assert dict(evidence_in_words(transaction)) == {
        "type": "Crypto sent (“sent”)",
        "amount": "USDT 5.000000",
        "status": "Completed (“fulfilled”)",
    }
    listed = listed_transaction("T-1", None, "NGN", Decimal(5), "reversed")
    assert dict(evidence_in_words({"in_list": listed})) == {"provider's list": "T-1: NGN 5.00, “reversed”"}


@pytest.mark.django_db
def test_the_database_accepts_every_kind_of_incident(operation: Operation) -> None:
    incident = Incident(operation=operation, kind="something_else", evidence={}, at=timezone.now())
    with pytest.raises(IntegrityError), transaction.atomic():
        incident.save()


@pytest.mark.django_db
@pytest.mark.parametrize("changes", [{"blocker": "else"}, {"blocker": None}, {"blocked_since": None}])
def test_the_database_refuses_a_blocker_without_time_or_with_an_unknown_code(
    released: Operation, changes: dict[str, str | None]
) -> None:
    record_blocker(released.pk, Blocker.DATABASE_SLOW)
    with pytest.raises(IntegrityError), transaction.atomic():
        Release.objects.filter(pk=released.pk).update(**changes)


def test_a_verification_code_has_sixty_bits_of_the_digest() -> None:
    digest = "0123456789abcdef" * 4
    code = verification_code(digest)
    assert re.fullmatch(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}", code)
    for position in range(15):
        other = digest[:position] + format(int(digest[position], 16) ^ 1, "x") + digest[position + 1 :]
        assert verification_code(other) != code
