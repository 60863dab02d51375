"""Steps of creating, revealing and rotating API keys."""

import uuid
from typing import Any

from django.test import Client
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.operations.delivery import send
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.sandbox_process import SandboxProcess


def prepare(client: Client, kind: str, **typed: str) -> Operation:
    """Fill in the form, read the review, prepare."""
    address = f"/operations/prepare/{kind}/"
    values = {"submission": str(uuid.uuid4()), **typed}
    review = client.post(address, {**values, "step": "review"})
    assert review.status_code == 200, review.context["form"].errors
    answer = client.post(address, {**values, "step": "prepare", "digest": review.context["digest"]})
    assert answer.status_code == 302
    return Operation.objects.get(pk=values["submission"])


def approve_and_send(operation: Operation, approver: User, sandbox: SandboxProcess) -> Operation:
    """Approve it, release it and send it; with a one-time code where the kind needs one."""
    factories.approve(operation, approver)
    release(operation, approver, sandbox.totp())
    send.send_operation(operation.pk)
    return Operation.objects.get(pk=operation.pk)


def release(operation: Operation, approver: User, otp: str) -> None:
    release_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        otp=SecretStr(otp) if KINDS[operation.kind].asks_for_otp else None,
    )


def text_of(answer: Any) -> str:
    """The page, with its white space made one."""
    return " ".join(answer.content.decode().split())


NAMED = {"method": "named", "key_name": "till", "scope": "M", "expires_in": "90", "expires_unit": "days"}
