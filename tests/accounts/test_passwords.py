"""Which passwords are accepted and refused, and how they are typed, compared and stored."""

import re
from hashlib import sha1
from pathlib import Path

import pytest
from django.conf import global_settings
from django.contrib.auth.hashers import identify_hasher, make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.protection.passwords import CONTEXT_WORDS
from backoffice.settings_values import hash_list
from tests.accounts import steps
from tests.core.environments import PRODUCTION, settings_in
from tests.factories import PASSWORD
from tools.processes import ROOT

OF_ANY_COMPOSITION = {
    "letters of one case": "lantern gravel otter plum",
    "64 characters": "lantern gravel otter plum kettle orbit walnut sparrow copper dune ivy",
    "200 characters": "lantern gravel otter plum kettle " * 6 + "and seven more of them",
    "not of ASCII": "ọ̀nà gbogbo ń lọ sí ọjà àti ilé",
    "symbols only": "&%$;:_)(/!?+*~#'<>|",
    "digits only": "73920461859207",
}
COMMON = ("123456789012", "200001012001", "1qaz2wsx3edc", "passwordpassword", "iloveyou1234", "qwertyuiop123")


@pytest.mark.parametrize("password", OF_ANY_COMPOSITION.values(), ids=OF_ANY_COMPOSITION)
def test_a_password_of_any_characters_and_length_is_accepted(password: str) -> None:
    validate_password(password)


@pytest.mark.parametrize("password", COMMON)
def test_a_common_password_of_breaches_is_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password)


LISTED = [f"{first} gravel otter plum" for first in ("lantern", "kettle", "walnut", "copper", "orbit")]


@pytest.fixture(params=["CRLF and counts", "hashes alone"])
def breached(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> None:
    """A sorted list of breached passwords."""
    end = ":3\r\n" if request.param.startswith("CRLF") else "\n"
    hashes = sorted(sha1(text.encode(), usedforsecurity=False).hexdigest().upper() for text in LISTED)
    file = tmp_path / "breached.txt"
    file.write_bytes("".join(f"{one}{end}" for one in hashes).encode())
    settings.BREACHED_PASSWORDS_FILE = hash_list("COUNTERSIGN_BREACHED_PASSWORDS_FILE", str(file))


@pytest.mark.usefixtures("breached")
def test_a_password_of_the_list_of_breaches_is_refused() -> None:
    for password in LISTED:
        with pytest.raises(ValidationError, match="known from a breach"):
            validate_password(password)
    for password in OF_ANY_COMPOSITION.values():
        if password not in LISTED:
            validate_password(password)


def test_a_list_of_breaches_that_cannot_be_read_lets_nothing_through(
    settings: Settings, tmp_path: Path
) -> None:
    settings.BREACHED_PASSWORDS_FILE = str(tmp_path / "gone")
    with pytest.raises(FileNotFoundError):
        validate_password(LISTED[0])


@pytest.mark.parametrize("content", [None, b"", b"password\n", b"0123456789\n"])
def test_what_is_no_list_of_hashes_prevents_startup(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "list"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ImproperlyConfigured, match="COUNTERSIGN_BREACHED_PASSWORDS_FILE"):
        hash_list("COUNTERSIGN_BREACHED_PASSWORDS_FILE", str(file))


@pytest.mark.parametrize(
    "password", ["countersign2026!", "preparerapprover", "Backoffice2026!", "treasurypayout"]
)
def test_a_password_of_words_of_this_product_is_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password)


def test_a_password_of_the_host_name_is_refused(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["oldharbourtraders.example"]
    with pytest.raises(ValidationError):
        validate_password("oldharbourtraders1")


def test_the_words_of_this_product_are_documented() -> None:
    text = (ROOT / "docs" / "operator" / "people-and-keys.md").read_text()
    assert [word for word in CONTEXT_WORDS if f"`{word}`" not in text] == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    "typed",
    [PASSWORD.upper(), f" {PASSWORD}", f"{PASSWORD} ", PASSWORD[:-1]],
    ids=["case", "before", "after", "cut"],
)
def test_a_password_is_compared_exactly_as_typed(client: Client, preparer: User, typed: str) -> None:
    assert steps.give_password(client, preparer, typed).status_code == 422


@pytest.mark.django_db
def test_a_long_password_is_compared_to_its_end(client: Client, preparer: User) -> None:
    password = OF_ANY_COMPOSITION["200 characters"]
    preparer.set_password(password)
    preparer.save()
    assert steps.give_password(client, preparer, password[:-1]).status_code == 422
    assert steps.give_password(client, preparer, password).status_code == 302


def test_no_password_expires() -> None:
    """Nothing records since when a password is in use, so no age can end it."""
    names = {field.name for field in User._meta.get_fields()}
    assert {name for name in names if "password" in name or "expire" in name} == {"password"}


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["accounts:sign_in", "accounts:password"])
def test_password_fields_are_masked_and_open_to_password_managers(signed_in: Client, page: str) -> None:
    text = signed_in.get(reverse(page)).content.decode()
    fields = [field for field in re.findall(r"<input[^>]*>", text) if "password" in field]
    assert fields
    assert [field for field in fields if 'type="password"' not in field] == []
    assert [field for field in fields if not re.search(r'autocomplete="(current|new)-password"', field)] == []
    assert "onpaste" not in text


def test_no_script_prevents_pasting() -> None:
    scripts = [path.read_text() for path in (ROOT / "static").glob("*.js")]
    assert scripts
    assert [text for text in scripts if re.search(r'"(paste|beforeinput)"', text)] == []


def test_passwords_are_stored_by_a_slow_hash(settings: Settings) -> None:
    assert "PASSWORD_HASHERS" not in settings_in(PRODUCTION)  # those of Django, which the tests replace
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    stored = make_password(PASSWORD)
    hasher = identify_hasher(stored)
    assert hasher.algorithm == "pbkdf2_sha256"
    assert int(stored.split("$")[1]) >= 600_000


@pytest.mark.django_db
def test_no_account_exists_until_one_is_created() -> None:
    assert not User.objects.exists()
