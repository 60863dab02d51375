"""Errors of the client are English in records and in the reader's language on screens."""

import errno
from collections.abc import Callable

import pytest
from django.utils import translation

from backoffice.core.web.formatting import (
    error_sentence,
    stored_error,
    system_error_template,
    with_error_sentence,
)
from backoffice.operations.models.reason_codes import (
    Blocker,
    CheckResult,
    ResponseCode,
    blocker_sentence,
    check_sentence,
    coded,
    responses_sentence,
)
from payments_gateway import (
    AddressError,
    AmountError,
    GatewayError,
    InputError,
    NotSentError,
    PaymentsGateway,
    ProviderProfile,
    ReadFailedError,
    RejectedError,
    check_address,
    parse_amount,
)
from payments_gateway.connection import NOT_REACHED
from payments_gateway.profile.values import CAPABILITIES
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import config
from tests.payments_gateway.stub import Stub

Read = Callable[[PaymentsGateway], object]

UNREADABLE = "The provider responded with HTTP {status}: a response that cannot be read ({why})."
UNREACHABLE = NotSentError.of(NOT_REACHED, why="connecting took too long")
FRENCH = (
    "Le prestataire n\u2019a pas pu être joint (la connexion a pris trop de temps). Rien n\u2019a été envoyé."
)


def refusal(text: str, code: str) -> InputError:
    with pytest.raises(AmountError) as refused:
        parse_amount(text, code)
    return refused.value


def test_an_amount_is_refused_in_the_readers_language() -> None:
    error = refusal("1.005", "NGN")
    assert error_sentence(error) == str(error) == "NGN has at most 2 decimals."
    with translation.override("fr"):
        assert error_sentence(error) == "Un montant en NGN a au plus 2 décimales."
        assert str(error) == "NGN has at most 2 decimals."


def test_an_address_is_refused_in_the_readers_language() -> None:
    with pytest.raises(AddressError) as refused:
        check_address("TRC20", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u")
    with translation.override("fr"):
        assert error_sentence(refused.value).startswith("La somme de contrôle ne correspond pas")


def test_the_providers_own_words_are_never_translated() -> None:
    with translation.override("fr"):
        assert error_sentence(RejectedError("Approved", 400)) == "Approved"


def test_a_stored_error_is_english_and_shown_in_the_readers_language() -> None:
    with translation.override("fr"):
        stored = stored_error(UNREACHABLE)
    assert (
        stored["error"] == "The provider could not be reached (connecting took too long). Nothing was sent."
    )
    response = coded(ResponseCode.ERROR, **stored)
    assert responses_sentence([response]) == stored["error"]
    with translation.override("fr"):
        assert responses_sentence([response]) == FRENCH
        assert FRENCH in blocker_sentence(Blocker.PROVIDER_UNREADABLE, stored)
        assert FRENCH in check_sentence(CheckResult.PROVIDER_UNREADABLE, stored)


def test_the_reason_within_an_error_is_shown_in_the_readers_language_too() -> None:
    error = ReadFailedError.of(UNREADABLE, 200, why="it contains no data")
    stored = stored_error(error)
    with translation.override("fr"):
        assert error_sentence(error) == with_error_sentence(stored)["error"]
        assert error_sentence(error).endswith("la réponse est illisible (elle ne contient pas de données).")


def test_the_member_at_fault_is_named_in_the_readers_language() -> None:
    template = "The provider responded with HTTP {status}: a response that cannot be read ({place}: {why})."
    error = ReadFailedError.of(template, 200, place="data.0.amount", why="missing")
    with translation.override("fr"):
        assert error_sentence(error).endswith("(data.0.amount\u00a0: valeur absente).")
        assert with_error_sentence(stored_error(error))["error"] == error_sentence(error)


MEMBERS_IN_FRENCH: list[tuple[Read, object, str]] = [
    (
        lambda client: client.balances.list(),
        {"data": {}},
        "toutes ces valeurs sont absentes\u00a0: balances, balance",
    ),
    (lambda client: client.balances.list(), {}, "data est absent"),
    (lambda client: client.balances.list(), {"data": "text"}, "data n\u2019est pas un objet"),
    (lambda client: client.balances.list(), {"data": {"balances": {}}}, "balances est un objet vide"),
    (
        lambda client: client.balances.list(),
        {"data": {"balances": 7}},
        "balances n\u2019est ni un objet ni une liste",
    ),
    (
        lambda client: client.balances.list(),
        {"data": {"balances": [7]}},
        "un élément de balances n\u2019est pas un objet",
    ),
    (lambda client: client.wallets.get(), {"data": {"addresses": 7}}, "addresses n\u2019est pas une liste"),
    (
        lambda client: client.wallets.get(),
        {"data": {"addresses": [7]}},
        "un élément de addresses n\u2019est ni un objet ni un texte",
    ),
    (
        lambda client: client.wallets.get(),
        {"data": 7},
        "aucune de ces valeurs n\u2019est un objet\u00a0: wallet, data.wallet, data",
    ),
    (
        lambda client: client.accounts.list(),
        {"data": {}},
        "aucune de ces valeurs n\u2019est une liste\u00a0: accounts, data",
    ),
    (
        lambda client: client.accounts.list(),
        {"data": [{"assets": []}]},
        "un compte n\u2019a ni accountName ni aucune valeur dans assets",
    ),
    (
        lambda client: client.accounts.list(),
        {"data": [{"assets": [{"id": []}]}]},
        "id n\u2019est pas un texte",
    ),
    (lambda client: client.api_keys.scopes(), {"data": {"Master": None}}, "Master n\u2019a pas de code"),
    (lambda client: client.extras.rates(), {"data": {}}, "elle ne contient aucune paire de devises"),
    (lambda client: client.extras.payment("P-1"), {"data": {}}, "_id est absent"),
    (lambda client: client.extras.wallet_config(), {"state": False}, "state est faux"),
]


@pytest.mark.parametrize(("read", "body", "french"), MEMBERS_IN_FRENCH)
def test_a_failed_read_names_the_member_in_the_readers_language(
    read: Read, body: object, french: str
) -> None:
    profile = ProviderProfile(capabilities=CAPABILITIES)
    with (
        Stub(stub.answer(200, body)) as provider,
        PaymentsGateway(config(provider.url, profile=profile)) as client,
        pytest.raises(ReadFailedError) as failed,
    ):
        read(client)
    expected = f"Le prestataire a répondu par le code HTTP 200, mais la réponse est illisible ({french})."
    with translation.override("fr"):
        assert (
            error_sentence(failed.value)
            == with_error_sentence(stored_error(failed.value))["error"]
            == expected
        )
    assert "{" not in str(failed.value)
    assert error_sentence(failed.value) == str(failed.value)


def test_braces_in_a_reason_of_a_deployment_are_shown_as_they_are() -> None:
    error = ReadFailedError.of(UNREADABLE, 409, why="see {page} and {status}")
    assert str(error).endswith("(see {page} and 409).")


@pytest.mark.parametrize(
    ("error", "french"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "le disque est plein"),
        (PermissionError(errno.EACCES, "Permission denied"), "accès refusé"),
        (TimeoutError("timed out"), "délai dépassé"),
        (OSError(errno.EIO, "Input/output error"), "défaillance du disque ou du réseau"),
    ],
)
def test_an_error_of_the_system_is_shown_in_the_readers_language(error: OSError, french: str) -> None:
    template = system_error_template(error)
    with translation.override("fr"):
        assert with_error_sentence({"error": template, "error_template": template})["error"] == french


def test_an_error_stored_without_its_template_is_shown_as_stored() -> None:
    with translation.override("fr"):
        assert responses_sentence([coded(ResponseCode.ERROR, error="Old text")]) == "Old text"


def test_an_error_longer_than_its_place_is_stored_as_text_only() -> None:
    stored = stored_error(GatewayError.of("{why} failed", why="x" * 600), limit=250)
    assert stored == {"error": "x" * 250}


def test_an_error_of_a_response_names_its_status() -> None:
    error = GatewayError.of("HTTP {status}: {why}", 502, why="no answer")
    assert (str(error), error.status) == ("HTTP 502: no answer", 502)
