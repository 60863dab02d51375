"""The authenticator secret: typed once, approved by a second person, never shown."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations import errors
from backoffice.operations.kinds.otp_secret import OtpSecretPayload
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.otp import OtpSecret, TotpSecret, TotpSecretError, otp_secret_in_use
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations.otp_secrets import AUTHENTICATOR, prepared, stored
from tests.operations.steps import status_of, text_of

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
ADDRESS = "/operations/prepare/otp_secret/"
BASE32 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
OTHER = TotpSecret(b"abcdefghijklmnopqrst")


@pytest.fixture
def as_administrator(sign_in: SignIn, administrator: User) -> Client:
    return sign_in(Client(), administrator)


def current_code(secret: TotpSecret = AUTHENTICATOR) -> str:
    return secret.code(secret.step_at(timezone.now())).get_secret_value()


def typed(**changes: str) -> dict[str, str]:
    usual = {"submission": str(uuid.uuid4()), "change": "store", "secret": BASE32, "code": current_code()}
    return {**usual, **changes}


def review(browser: Client, **changes: str) -> Any:
    return browser.post(ADDRESS, {**typed(**changes), "step": "review"})


def submit(browser: Client) -> Operation:
    """The whole way through the form, as a browser goes it: the review carries what was typed only encrypted."""
    reviewed = review(browser)
    form = reviewed.context["form"]
    hidden = {name: form[name].value() for name in ("change", "secret", "code", "sealed")}
    assert (hidden["secret"], hidden["code"]) == ("", "")
    further = {"submission": str(reviewed.context["submission"]), "digest": reviewed.context["digest"]}
    assert browser.post(ADDRESS, {**hidden, **further, "step": "prepare"}).status_code == 302
    return Operation.objects.get(kind="otp_secret")


# The secret itself


@pytest.mark.parametrize(
    ("moment", "algorithm", "code"),
    [
        (59, "SHA1", "94287082"),
        (1111111109, "SHA1", "07081804"),
        (59, "SHA256", "46119246"),
        (59, "SHA512", "90693936"),
    ],
)
def test_codes_are_those_of_the_standard(moment: int, algorithm: str, code: str) -> None:
    keys = {"SHA1": 20, "SHA256": 32, "SHA512": 64}
    key = (b"1234567890" * 7)[: keys[algorithm]]
    secret = TotpSecret(key, algorithm, digits=8)
    assert secret.code(moment // 30).get_secret_value() == code


@pytest.mark.parametrize(
    "text",
    [
        BASE32,
        BASE32.lower(),
        " ".join(BASE32[start : start + 4] for start in range(0, 32, 4)),
        f"otpauth://totp/Provider:merchant?secret={BASE32}&issuer=Provider",
    ],
)
def test_the_secret_is_read_as_the_provider_shows_it(text: str) -> None:
    assert TotpSecret.parse(text) == AUTHENTICATOR


def test_the_parameters_of_the_address_are_honoured() -> None:
    address = f"otpauth://totp/x?secret={BASE32}&algorithm=SHA256&digits=8&period=60"
    secret = TotpSecret.parse(address)
    assert (secret.algorithm, secret.digits, secret.period) == ("SHA256", 8, 60)
    assert TotpSecret.parse(secret.address()) == secret
    assert BASE32 not in repr(secret)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GEZDGNBV",
        "not a secret!",
        f"otpauth://hotp/x?secret={BASE32}",
        f"otpauth://totp/x?secret={BASE32}&algorithm=MD5",
        f"otpauth://totp/x?secret={BASE32}&digits=12",
        f"otpauth://totp/x?secret={BASE32}&period=0",
    ],
)
def test_other_text_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(TotpSecretError) as refused:
        TotpSecret.parse(text)
    assert BASE32 not in str(refused.value)


def test_the_fingerprint_depends_on_the_key_of_this_installation(settings: Settings) -> None:
    before = AUTHENTICATOR.fingerprint()
    settings.ENCRYPTION_KEYS = [f"other:{'B' * 43}="]
    assert AUTHENTICATOR.fingerprint() != before


# The form


def test_the_review_shows_the_fingerprint_and_not_the_secret(as_administrator: Client) -> None:
    reviewed = review(as_administrator)
    assert reviewed.status_code == 200
    assert AUTHENTICATOR.fingerprint()[:4] in text_of(reviewed)
    assert BASE32 not in reviewed.content.decode()
    assert OtpSecret.objects.count() == 0


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"secret": "not a secret"}, "secret"),
        ({"secret": ""}, "secret"),
        ({"code": "000000x"}, "code"),
        ({"code": ""}, "code"),
        ({"change": "remove"}, "change"),
    ],
)
def test_an_error_is_shown_beside_its_field(
    as_administrator: Client, changes: dict[str, str], field: str
) -> None:
    refused = review(as_administrator, **changes)
    assert refused.status_code == 422
    assert list(refused.context["form"].errors) == [field]
    assert BASE32 not in refused.content.decode()


def test_a_code_of_another_secret_is_refused(as_administrator: Client) -> None:
    refused = review(as_administrator, code=current_code(OTHER))
    assert "code" in refused.context["form"].errors


def test_what_one_form_carries_is_worth_nothing_in_another(as_administrator: Client) -> None:
    sealed = review(as_administrator).context["form"]["sealed"].value()
    refused = review(as_administrator, secret="", code="", sealed=sealed)
    assert "secret" in refused.context["form"].errors


def test_nothing_typed_is_kept_as_a_draft(as_administrator: Client) -> None:
    submission = str(uuid.uuid4())
    review(as_administrator, submission=submission)
    [draft] = as_administrator.session["drafts"].values()
    assert not {"secret", "code", "sealed"} & draft.keys()


# From its preparation to its use


def test_a_second_person_puts_it_into_use(as_administrator: Client, approver: User, sign_in: SignIn) -> None:
    operation = submit(as_administrator)
    assert otp_secret_in_use() is None
    assert AUTHENTICATOR.fingerprint() == operation.payload["fingerprint"]
    page = sign_in(Client(), approver).get(operation.get_absolute_url())
    assert AUTHENTICATOR.fingerprint()[:4] in text_of(page)
    factories.approve(operation, approver)
    in_use = otp_secret_in_use()
    assert in_use is not None
    assert in_use.secret() == AUTHENTICATOR
    assert status_of(operation) == Status.SUCCEEDED


def test_it_waits_encrypted_and_bound_to_its_operation(administrator: User) -> None:
    operation = prepared(administrator)
    row = OtpSecret.objects.get()
    assert AUTHENTICATOR.key not in bytes(row.encrypted_address)
    assert BASE32.encode() not in bytes(row.encrypted_address)
    assert str(operation.pk) in row.bound_to


def reject(operation: Operation, approver: User) -> None:
    now = timezone.now()
    approvals.reject_operation(
        operation.pk, actor=approver, digest=operation.digest, second_factor_at=now, reason="Not ours"
    )


def cancel(operation: Operation, approver: User) -> None:
    approvals.cancel_operation(operation.pk, actor=operation.preparer)


def expire(operation: Operation, approver: User) -> None:
    factories.expire(operation)
    approvals.expire_operation(operation.pk)


@pytest.mark.parametrize("end", [reject, cancel, expire])
def test_it_is_deleted_with_an_operation_that_is_not_approved(
    administrator: User, approver: User, end: Callable[[Operation, User], None]
) -> None:
    end(prepared(administrator), approver)
    assert not OtpSecret.objects.exists()


def test_a_new_secret_replaces_the_one_in_use(administrator: User, approver: User) -> None:
    stored(administrator, approver)
    stored(administrator, approver, OTHER)
    assert OtpSecret.objects.get().secret() == OTHER


def test_it_is_removed_by_an_operation(administrator: User, approver: User) -> None:
    stored(administrator, approver)
    payload = OtpSecretPayload(replaces=AUTHENTICATOR.fingerprint())
    factories.approve(factories.prepared_of_kind("otp_secret", payload, administrator), approver)
    assert not OtpSecret.objects.exists()


def test_what_was_approved_replaces_exactly_what_the_approver_saw(
    administrator: User, approver: User
) -> None:
    late = prepared(administrator, OTHER)
    stored(administrator, approver)
    with pytest.raises(errors.OperationError, match="was changed after this was prepared"):
        factories.approve(late, approver)
    assert OtpSecret.objects.get(state="in_use").secret() == AUTHENTICATOR
    assert status_of(late) == Status.PENDING


def test_a_content_without_its_secret_cannot_be_applied(administrator: User, approver: User) -> None:
    operation = prepared(administrator)
    OtpSecret.objects.all().delete()
    with pytest.raises(errors.OperationError, match="no longer stored"):
        factories.approve(operation, approver)


def test_the_rotation_of_encryption_keys_covers_it(
    administrator: User, approver: User, settings: Settings
) -> None:
    stored(administrator, approver)
    new = f"new:{'B' * 43}="
    settings.ENCRYPTION_KEYS = [new, *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_secrets")
    settings.ENCRYPTION_KEYS = [new]
    assert OtpSecret.objects.get().secret() == AUTHENTICATOR


def test_the_system_page_says_that_a_secret_is_missing_and_links_to_the_form(
    settings: Settings, as_administrator: Client, administrator: User, approver: User
) -> None:
    settings.OTP_MODE = "managed"
    before = as_administrator.get("/settings/system/")
    assert "nothing that needs a one-time code is sent" in text_of(before)
    assert ADDRESS in before.content.decode()
    stored(administrator, approver)
    after = text_of(as_administrator.get("/settings/system/"))
    assert "nothing that needs a one-time code is sent" not in after
    assert AUTHENTICATOR.fingerprint()[:4] in after
