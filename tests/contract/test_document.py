"""The document itself: valid OpenAPI, and no more and no less than the specification."""

import pytest
import schemathesis

from payments_gateway._transport import Door
from payments_gateway.operations import OPERATIONS, Operation
from tests.contract.document import described, document, of_the_specification

BASES = {Door.V2: "/v2", Door.V2_OPEN: "/v2", Door.V4: "/v4"}
CREDENTIALS: dict[Door, list[dict[str, list[str]]]] = {
    Door.V2: [{"apiKey": [], "apiUser": [], "userVersion": []}],
    Door.V2_OPEN: [],
    Door.V4: [{"apiKey": [], "apiUser": []}],
}


def test_the_document_is_valid_openapi() -> None:
    schemathesis.openapi.from_dict(document()).validate()


def test_it_describes_exactly_the_operations_of_the_specification() -> None:
    ours = {(each.name, each.method, BASES[each.door] + each.path) for each in OPERATIONS}
    theirs = {(name, method, path) for name, (method, path, _) in of_the_specification().items()}
    assert theirs == ours


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_operation_names_the_credentials_of_its_base_address(operation: Operation) -> None:
    _, _, description = described()[operation.name]
    assert description.get("security", document()["security"]) == CREDENTIALS[operation.door]
