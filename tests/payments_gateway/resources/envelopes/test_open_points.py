"""Where in an answer its content is, if a deployment says so; and a yes without any content."""

from typing import Any

import pytest

from payments_gateway import OutcomeUnknownError, ProviderProfile
from tests.payments_gateway.calls import DONE
from tests.payments_gateway.resources.envelopes.conftest import Answered


def test_the_paths_in_a_response_come_from_the_profile(answered: Answered) -> None:
    profile = ProviderProfile().overridden(
        {
            "created_key_paths": [["secret"]],
            "wallet_address_members": ["to"],
        }
    )
    assert (
        answered("api_keys.create", {"data": {"secret": "s"}}, profile=profile).key.get_secret_value() == "s"
    )
    wallet = answered("wallets.get", {"wallet": {"addresses": [{"to": "T9yD"}]}}, profile=profile)
    assert wallet.addresses[0].address == "T9yD"


ACKNOWLEDGED = ["callbacks.set_url", "api_keys.invalidate", "api_keys.delete"]


@pytest.mark.parametrize("name", ACKNOWLEDGED)
@pytest.mark.parametrize(
    "body", [DONE, {"message": "done"}, {"success": True}, {"data": {"apikey": "1a2b3c4d"}}]
)
def test_a_success_may_have_no_data(answered: Answered, name: str, body: dict[str, Any]) -> None:
    assert answered(name, body) == body.get("message", "")


@pytest.mark.parametrize("name", ACKNOWLEDGED)
@pytest.mark.parametrize("body", [{}, {"message": ""}, {"data": None}, {"status": "down for maintenance"}])
def test_an_object_without_a_success_flag_proves_nothing(
    answered: Answered, name: str, body: dict[str, Any]
) -> None:
    with pytest.raises(OutcomeUnknownError, match="does not confirm the request"):
        answered(name, body)
