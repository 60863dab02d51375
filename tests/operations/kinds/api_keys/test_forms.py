"""The forms of the kinds about API keys: what they refuse, and what a review says."""

import uuid

import pytest
from django.test import Client
from django.utils import translation
from pytest_django import Settings

from backoffice.core import credentials
from backoffice.operations.kinds.api_keys.base import UNKNOWN_SCOPE
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from tests.operations.kinds.api_keys.steps import (
    CREATE,
    NAMED,
    OLD_HASH,
    UNREACHABLE,
    answer,
    listing,
    review,
)
from tests.operations.kinds.samples import SAMPLES
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"method": ""}, "method", "Select one of the options."),
        ({"method": "other"}, "method", "is not among them"),
        ({"key_name": ""}, "key_name", "Enter a name for the key."),
        ({"key_name": "x" * 121}, "key_name", "at most 120 characters"),
        ({"key_name": "till\u2028roll"}, "key_name", "one line of printable characters"),
        ({"key_name": "first key"}, "key_name", "already lists a key with this name"),
        ({"scope": ""}, "scope", "Select permissions."),
        ({"scope": "X"}, "scope", "is not among them"),
        ({"expires_in": "0"}, "expires_in", "Enter 1 or more."),
        ({"expires_in": "soon"}, "expires_in", "without decimals"),
        ({"expires_in": "3651"}, "expires_in", "at most 3650 days"),
        ({"expires_in": "121", "expires_unit": "months"}, "expires_in", "at most 120 months"),
        ({"expires_unit": "weeks"}, "expires_unit", "is not among them"),
        ({"expires_unit": ""}, "expires_unit", "days or months"),
        ({"rotation": "no-uuid"}, "rotation", "not valid"),
    ],
)
def test_an_invalid_key_is_reported_at_its_field(
    as_administrator: Client,
    sandbox: SandboxProcess,
    changes: dict[str, str],
    field: str,
    message: str,
) -> None:
    refused = review(as_administrator, "api_key_create", **{**NAMED, **changes})
    assert refused.status_code == 422
    assert message in " ".join(refused.context["form"].errors[field])


@pytest.mark.parametrize(
    ("typed", "facts"),
    [
        (NAMED, {"Name": "till", "Key expires": "90 days after creation", "Request": "POST /user/api-key"}),
        ({**NAMED, "expires_in": "1", "expires_unit": "months"}, {"Key expires": "1 month after creation"}),
        ({**NAMED, "expires_in": ""}, {"Key expires": "Set by the provider"}),
        ({"method": "full"}, {"Name": "Set by the provider", "Request": "POST /auth/api-key"}),
    ],
)
def test_the_review_describes_the_new_key(
    as_administrator: Client, sandbox: SandboxProcess, typed: dict[str, str], facts: dict[str, str]
) -> None:
    reviewed = review(as_administrator, "api_key_create", **typed)
    assert reviewed.status_code == 200
    assert dict(reviewed.context["facts"]).items() >= facts.items()


@pytest.mark.parametrize("typed", [{**NAMED, "scope": "M"}, {"method": "full"}])
def test_a_key_with_all_permissions_is_warned_of(
    as_administrator: Client, sandbox: SandboxProcess, typed: dict[str, str]
) -> None:
    assert "can move all money" in " ".join(
        review(as_administrator, "api_key_create", **typed).context["cautions"]
    )


@pytest.mark.parametrize("kind", ["api_key_invalidate", "api_key_delete", "api_key_switch"])
def test_permissions_are_in_the_readers_language(kind: str) -> None:
    payload = SAMPLES[kind].model_copy(update={"scope": "Read and pay out (Withdrawal)"})
    with translation.override("fr"):
        assert "Consulter et payer (Withdrawal)" in [value for _, value in KINDS[kind].facts(payload)]
        created = KINDS["api_key_create"].outcome_facts(CREATE, {"scope": UNKNOWN_SCOPE})
    assert [value for _, value in created] == ["Non communiquées par le prestataire"]


def test_scopes_have_plain_labels(as_administrator: Client, sandbox: SandboxProcess) -> None:
    page = as_administrator.get("/operations/prepare/api_key_create/").content.decode()
    for words in ("Full access: read, convert, pay out", "Read only: balances", "no payouts"):
        assert words in page


@pytest.mark.parametrize("kind", ["api_key_invalidate", "api_key_delete"])
def test_only_a_listed_key_can_be_ended(as_administrator: Client, sandbox: SandboxProcess, kind: str) -> None:
    refused = review(as_administrator, kind, short_hash="00000000")
    assert "Key 00000000 is not in" in " ".join(refused.context["form"].errors["short_hash"])
    assert review(as_administrator, kind, short_hash="").status_code == 422


@pytest.mark.parametrize("kind", ["api_key_invalidate", "api_key_delete"])
def test_ending_the_key_in_use_is_warned_of(
    as_administrator: Client, sandbox: SandboxProcess, kind: str
) -> None:
    own = credentials.key_in_use().short_hash
    reviewed = review(as_administrator, kind, short_hash=own)
    facts = dict(reviewed.context["facts"])
    assert facts["API key"] == "first key"
    assert facts["Short hash"] == own
    assert facts["Last used"] == "In use by Countersign"
    assert "Countersign uses this key" in reviewed.context["cautions"][0]


def test_an_unidentifiable_own_key_is_warned_of(as_administrator: Client, provider: StubProvider) -> None:
    answer(provider, {}, listed=listing((OLD_HASH, "somebody's")))
    reviewed = review(as_administrator, "api_key_delete", short_hash=OLD_HASH)
    assert "may be using this key" in reviewed.context["cautions"][0]


def test_a_key_that_was_invalidated_can_be_deleted_and_not_invalidated_again(
    as_administrator: Client, provider: StubProvider
) -> None:
    answer(provider, {}, listed=listing((OLD_HASH, "old"), ended=OLD_HASH))
    assert review(as_administrator, "api_key_invalidate", short_hash=OLD_HASH).status_code == 422
    assert review(as_administrator, "api_key_delete", short_hash=OLD_HASH).status_code == 200


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        ("api_key_create", NAMED),
        ("api_key_invalidate", {"short_hash": OLD_HASH}),
        ("api_key_delete", {"short_hash": OLD_HASH}),
    ],
)
def test_nothing_is_prepared_while_the_list_cannot_be_read(
    as_administrator: Client, settings: Settings, kind: str, typed: dict[str, str]
) -> None:
    settings.GATEWAY_URL = settings.GATEWAY_URL_V4 = UNREACHABLE
    refused = review(as_administrator, kind, **typed)
    assert refused.status_code == 422
    assert "could not be read from the provider. Nothing was prepared" in refused.content.decode()
    assert not Operation.objects.exists()


def test_a_link_prefills_the_form(as_administrator: Client, settings: Settings) -> None:
    settings.GATEWAY_URL = settings.GATEWAY_URL_V4 = UNREACHABLE
    opened = as_administrator.get(f"/operations/prepare/api_key_invalidate/?short_hash={OLD_HASH}")
    assert f'value="{OLD_HASH}" selected' in opened.content.decode()


def test_only_a_stored_key_can_be_switched_to(as_administrator: Client) -> None:
    refused = review(as_administrator, "api_key_switch", target=f"made:{uuid.uuid4()}")
    assert "no longer stored" in " ".join(refused.context["form"].errors["target"])
