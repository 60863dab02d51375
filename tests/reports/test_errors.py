"""Every code of a failed export or an obstacle to a delivery has a sentence with its parameters."""

import string

import pytest

from backoffice.reports.errors import (
    DeliveryObstacle,
    FailureCode,
    ReportError,
    failure_sentence,
    obstacle_sentence,
)


@pytest.mark.parametrize("code", FailureCode)
def test_every_failure_is_stored_as_a_code_and_shown_as_a_sentence(code: FailureCode) -> None:
    names = [name for _, name, _, _ in string.Formatter().parse(str(code.label)) if name]
    error = ReportError(code, **dict.fromkeys(names, 12_345))

    assert error.failure == {"code": code.value, **dict.fromkeys(names, 12_345)}
    assert str(error) == failure_sentence(error.failure)
    assert "{" not in str(error)


@pytest.mark.parametrize("code", DeliveryObstacle)
def test_every_skip_reason_names_the_recipient(code: DeliveryObstacle) -> None:
    words = obstacle_sentence({"code": code.value, "person": "Femi Ade", "owner": "Ada Obi"})

    assert words.startswith("Femi Ade: ")
    assert "{" not in words
