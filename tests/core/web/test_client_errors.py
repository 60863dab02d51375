"""Errors of the client are English in records and in the reader's language on screens."""

import errno

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
    ReadFailedError,
    RejectedError,
    check_address,
    parse_amount,
)
from payments_gateway.connection import NOT_REACHED

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
