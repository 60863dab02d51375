"""The demo's sign-in codes: there in the demo, and nowhere else."""

import re
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as product_settings
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.audit.models import Entry
from backoffice.core.gateway import gateway
from backoffice.demo import people
from backoffice.demo.people import ensure_people
from backoffice.operations.models.operations import Operation
from payments_gateway import Withdrawal
from tests import factories
from tests.accounts import steps
from tests.operations.steps import let_second_factor_age, show
from tests.sandbox_process import SandboxProcess

DEMO = {"COUNTERSIGN_DEMO": "true"}
ELSEWHERE = {
    "COUNTERSIGN_SECRET_KEY": "a-secret-of-this-test-" + "1" * 40,
    "COUNTERSIGN_ENCRYPTION_KEYS": "test:" + "B" * 43 + "=",
    "COUNTERSIGN_GATEWAY_URL": "https://api.example.com/v2",
    "COUNTERSIGN_GATEWAY_URL_V4": "https://api.example.com/v4",
}
Start = Callable[..., "subprocess.CompletedProcess[str]"]


def test_the_demos_people_are_not_created_beside_others(preparer: User, outsider: User) -> None:
    """Their password is known, so the command must not make them in another installation's database."""
    with pytest.raises(people.NotDemoDatabaseError, match="not the demo's"):
        people.ensure_people()
    assert set(User.objects.all()) == {preparer, outsider}


def test_people_hired_in_the_demo_do_not_stop_its_next_start(demo: Client, outsider: User) -> None:
    assert len(people.ensure_people()) == 7


def test_the_demo_starts_in_the_sandbox_on_loopback(start_settings: Start) -> None:
    assert start_settings(**DEMO).returncode == 0


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"COUNTERSIGN_ENVIRONMENT": "production", **ELSEWHERE},
        {"COUNTERSIGN_ENVIRONMENT": "staging", **ELSEWHERE},
        {"COUNTERSIGN_ALLOWED_HOSTS": "countersign.example"},
        {"COUNTERSIGN_ALLOWED_HOSTS": "localhost,10.0.0.5"},
        {"COUNTERSIGN_ALLOWED_HOSTS": "*"},
        {"COUNTERSIGN_GATEWAY_URL": "https://api.example.com/v2"},
        {"COUNTERSIGN_GATEWAY_URL_V4": "https://api.example.com/v4"},
    ],
    ids=lambda environment: ",".join(f"{name}={value}"[12:40] for name, value in environment.items()),
)
def test_the_demo_starts_nowhere_else(start_settings: Start, elsewhere: dict[str, str]) -> None:
    answer = start_settings(**DEMO, **elsewhere)
    assert answer.returncode != 0
    assert "ImproperlyConfigured" in answer.stderr
    assert "DEMO" in answer.stderr or "GATEWAY" in answer.stderr


@pytest.mark.parametrize(
    "change", [{"DEMO": False}, {"ENVIRONMENT": "production"}, {"ALLOWED_HOSTS": ["countersign.example"]}]
)
def test_custom_settings_cannot_install_the_demo(settings: Settings, change: dict[str, Any]) -> None:
    for name, value in {"DEMO": True, "ALLOWED_HOSTS": ["localhost"], **change}.items():
        setattr(settings, name, value)
    with pytest.raises(ImproperlyConfigured, match="runs in the demo only"):
        settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "backoffice.demo"]
    settings.ROOT_URLCONF = "tests.demo.urls"


def test_nothing_of_the_demo_is_installed_without_it(client: Client, db: None) -> None:
    people.ensure_people()
    processors = product_settings.TEMPLATES[0]["OPTIONS"]["context_processors"]
    assert "backoffice.demo" not in product_settings.INSTALLED_APPS
    assert not [name for name in processors if "demo" in name]
    page = client.get("/account/sign-in/").content.decode()
    assert not [shown for shown in (*_codes().values(), people.DEMO_PASSWORD, "demo-codes") if shown in page]


def test_the_demo_creates_seven_users_who_can_sign_in(db: None) -> None:
    people = {user.full_name: [group.name for group in user.groups.all()] for user in ensure_people()}
    assert people == {
        "Tunde Bello": ["Preparer"],
        "Ngozi Eze": ["Preparer"],
        "Amara Okafor": ["Approver"],
        "Chidi Nwosu": ["Approver"],
        "Femi Ade": ["Auditor"],
        "Zainab Musa": ["Administrator"],
        "Kemi Balogun": ["Administrator"],
    }


def test_the_demo_users_are_created_once(db: None) -> None:
    before = [user.pk for user in people.ensure_people()]
    entries = Entry.objects.count()
    assert [user.pk for user in people.ensure_people()] == before
    assert Entry.objects.count() == entries
    assert AuthenticatorDevice.objects.count() == 7


def test_the_sign_in_page_shows_every_demo_user_with_a_code(demo: Client) -> None:
    page = demo.get("/account/sign-in/").content.decode()
    for user in User.objects.all():
        assert user.full_name in page
        assert user.email in page
    assert [code for code in _codes().values() if code not in page] == []
    assert people.DEMO_PASSWORD in page


def test_the_data_on_the_sign_in_page_is_sufficient_to_sign_in(demo: Client) -> None:
    first = demo.post(
        "/account/sign-in/", {"email": "amara@countersign.example", "password": people.DEMO_PASSWORD}
    )
    page = demo.get(first["Location"])
    device = AuthenticatorDevice.objects.get(user__email="amara@countersign.example")
    shown = people.current_sign_in_code(device).text
    assert shown in page.content.decode()
    assert demo.post(first["Location"], {"code": shown})["Location"] == "/"


def test_the_second_step_shows_only_the_code_of_this_user(demo: Client) -> None:
    demo.post("/account/sign-in/", {"email": "amara@countersign.example", "password": people.DEMO_PASSWORD})
    page = demo.get("/account/second-factor/").content.decode()
    assert page.count("data-code=") == 1
    assert "tunde@countersign.example" not in page


def test_after_a_used_code_the_time_until_the_next_is_shown(demo: Client) -> None:
    device = AuthenticatorDevice.objects.get(user__email="femi@countersign.example")
    code = steps.code_of(device)
    assert device.verify_token(code)
    page = demo.get("/account/sign-in/").content.decode()
    assert code not in page
    assert "next in" in page


@pytest.fixture
def on_operation(demo: Client, sandbox: SandboxProcess) -> Client:
    """Amara on the page of a withdrawal that she may approve and send."""
    amara = User.objects.get(email="amara@countersign.example")
    client = factories.sign_in(Client(SERVER_NAME="localhost"), amara)
    factories.prepared(User.objects.get(email="tunde@countersign.example"))
    return client


def page_of(client: Client) -> str:
    return str(show(client, Operation.objects.get()).content.decode())


def shown_codes(page: str) -> dict[str, str]:
    """The code shown below each field, by the id of the field."""
    return dict(re.findall(r'data-field="(\w+)" data-code="(\d+)"', page))


@pytest.mark.parametrize("otp_type", ["totp", "otp"])
def test_the_providers_one_time_code_of_the_type_that_is_sent_is_below_its_field(
    on_operation: Client, sandbox: SandboxProcess, settings: Settings, tmp_path: Path, otp_type: str
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text(f'otp_type = "{otp_type}"')
    settings.GATEWAY_PROFILE = str(profile)
    current_code = sandbox.totp if otp_type == "totp" else sandbox.issued_otp
    before = current_code()
    page = page_of(on_operation)
    assert shown_codes(page) in ({"id_otp": before}, {"id_otp": current_code()})
    assert ("valid until used" in page) == (otp_type == "otp")


def test_a_persons_own_code_is_below_its_field_once_it_is_asked_for(on_operation: Client) -> None:
    let_second_factor_age(on_operation)
    device = AuthenticatorDevice.objects.get(user__email="amara@countersign.example")
    AuthenticatorDevice.objects.filter(pk=device.pk).update(last_t=-1)
    before = steps.code_of(device)
    shown = shown_codes(page_of(on_operation))
    assert shown["id_code"] == shown["reject_code"]
    assert shown["id_code"] in (before, steps.code_of(device))


def test_a_used_one_time_code_is_not_shown(on_operation: Client, sandbox: SandboxProcess) -> None:
    code, page = "", ""
    while code != sandbox.totp():  # the next code of the provider may begin meanwhile
        code = sandbox.totp()
        _use_at_the_provider(sandbox, code)
        page = page_of(on_operation)
    assert shown_codes(page) == {}
    assert "next in" in page


def test_without_the_sandbox_the_page_shows_no_one_time_code(
    on_operation: Client, settings: Settings
) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    page = page_of(on_operation)
    assert shown_codes(page) == {}
    assert "Sandbox console" in page


def test_outside_the_demo_no_code_is_below_a_field(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    factories.prepared(preparer)
    page = page_of(factories.sign_in(Client(), approver))
    assert 'name="otp"' in page
    assert "data-demo" not in page
    assert sandbox.totp() not in page


def _use_at_the_provider(sandbox: SandboxProcess, code: str) -> None:
    withdrawal = Withdrawal(
        account_number="0123456789",
        account_name="ADA OBI",
        bank="Access Bank",
        bank_code="044",
        currency="NGN",
        amount=Decimal(1),
    )
    gateway(deadline=5).balances.withdraw(withdrawal, otp=SecretStr(code))


def _codes() -> dict[str, str]:
    devices = AuthenticatorDevice.objects.select_related("user")
    return {device.user.email: steps.code_of(device) for device in devices}
