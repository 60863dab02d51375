"""The running service, attacked with data that the document allows and with data that it forbids."""

import re
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings

from tests.contract import known
from tests.contract.document import document
from tests.contract.profile import CASES, SEED
from tests.sandbox_process import SandboxProcess

known.register_formats()

SCHEMA = schemathesis.openapi.from_dict(
    document(),
    config=schemathesis.Config.from_dict(
        {
            "seed": SEED,
            "generation": {
                "max-examples": CASES,
                "database": "none",
                "with-security-parameters": False,  # every request has the credentials; checks take them away
            },
            # A well-formed request may still be refused: funds, token, KYC, an account that does not exist. That it
            # is never refused for its shape is the check below.
            "checks": {
                "positive_data_acceptance": {"expected-statuses": [200, 400, 404, 409, 422]},
            },
        }
    ),
)

_ABOUT_SHAPE = re.compile(
    r" is required$| is not a known member$| is given more than once$| must be (a string|a number|true or false)$"
    r"| must not be null$| must have at (least|most) \d+ characters$|valid JSON|JSON object"
)
_MAY_BE_DEMANDED = re.compile(r"(token|otp) is required$")


@schemathesis.check
def a_valid_request_is_not_refused_for_its_shape(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> None:
    """The document and the service agree about what is well-formed."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 400:
        return
    message = response.json()["message"]
    if _ABOUT_SHAPE.search(message) and not _MAY_BE_DEMANDED.search(message):
        raise AssertionError(f"the document allows this request, and the service says: {message}")


@SCHEMA.parametrize()
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_an_operation_keeps_to_the_document(case: schemathesis.Case[Any], service: SandboxProcess) -> None:
    known.put_in(case, service)
    case.call_and_validate(base_url=service.address, headers=service.headers)
