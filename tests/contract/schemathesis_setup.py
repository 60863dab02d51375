"""The document as schemathesis reads it, what it checks, and how a random request is made ready to be sent."""

import copy
import hashlib
import re
from typing import Any

import schemathesis

from payments_gateway.profile.model import ProfileName
from tests.contract import known_values
from tests.contract.case_counts import CASES, SEED
from tests.contract.openapi_document import differing, document
from tests.sandbox_process import SandboxProcess

known_values.register_formats()


def _schema_of(profile: ProfileName, cases: int) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_dict(
        copy.deepcopy(document(profile)),  # it writes the links into it that it infers
        config=schemathesis.Config.from_dict(
            {
                "seed": SEED,
                "generation": {
                    "max-examples": cases,
                    "database": "none",
                    "with-security-parameters": False,  # every request has the credentials; a check takes them away
                },
                # All checks are on. A well-formed request may still be refused: funds, OTP, KYC, an account that
                # does not exist; that it is never refused for its shape is the check below.
                "checks": {
                    "positive_data_acceptance": {"expected-statuses": [200, 400, 404, 409, 422]},
                    # What the document has for refusals; by default 413 and 414 would count as accepted.
                    "negative_data_rejection": {
                        "expected-statuses": [400, 401, 403, 404, 405, 409, 413, 414, 415, 422]
                    },
                },
            }
        ),
    )


SCHEMA = _schema_of("specification", CASES)
PUBLISHED = _schema_of("published", max(CASES // 4, 3)).include(operation_id=differing())
"""Of the `published` profile only what it does differently, with fewer cases: the rest is the same code."""

_KEY_IN_USE = SandboxProcess.api_key
_HASH_IN_USE = hashlib.sha256(_KEY_IN_USE.encode()).hexdigest()[:8]
_HASH_OF_NOBODY = "0" * 8

_ABOUT_SHAPE = re.compile(
    r" is required$| is not a known member$| is given more than once$| must be (a string|a number|true or false)$"
    r"| must not be null$| must have at (least|most) \d+ characters$|valid JSON|JSON object"
)
_MAY_BE_DEMANDED = re.compile(r"(token|otp) is required$")


@schemathesis.check
def a_valid_request_is_not_refused_for_its_shape(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> None:
    """The document and the provider agree about what is well-formed."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 400:
        return
    message = response.json()["message"]
    if _ABOUT_SHAPE.search(message) and not _MAY_BE_DEMANDED.search(message):
        raise AssertionError(f"the document allows this request, and the service says: {message}")


def make_ready(case: schemathesis.Case[Any], provider: SandboxProcess) -> None:
    """Let a random request mean something, and never end the key that all of them are sent with."""
    known_values.put_in(case, provider)
    if case.query.get("apikeyHash") == _HASH_IN_USE:
        case.query["apikeyHash"] = _HASH_OF_NOBODY
    if isinstance(case.body, dict) and case.body.get("apikey") in (_KEY_IN_USE, _HASH_IN_USE):
        case.body["apikey"] = _HASH_OF_NOBODY
