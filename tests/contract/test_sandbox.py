"""The running provider, attacked with data that the document allows and with data that it forbids."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, seed, settings

from tests.contract.case_counts import CASES, SEED
from tests.contract.schemathesis_setup import PUBLISHED, SCHEMA, make_ready
from tests.sandbox_process import SandboxProcess

SETTINGS = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))


@SCHEMA.parametrize()
@SETTINGS
def test_each_operation_conforms_to_the_document(
    case: schemathesis.Case[Any], provider: SandboxProcess
) -> None:
    make_ready(case, provider)
    case.call_and_validate(base_url=provider.address, headers=provider.headers)


@PUBLISHED.parametrize()
@SETTINGS
def test_each_operation_that_differs_conforms_to_the_published_profile(
    case: schemathesis.Case[Any], published: SandboxProcess
) -> None:
    make_ready(case, published)
    case.call_and_validate(base_url=published.address, headers=published.headers)


def test_call_sequences_conform_to_the_document(provider: SandboxProcess) -> None:
    """What one call gives goes into the next: a key that was made is listed, ended and deleted; a payment is read."""

    @seed(SEED)
    class Histories(SCHEMA.as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            provider.reset()
            provider.options(token_reuse=True)

        def before_call(self, case: schemathesis.Case[Any]) -> None:
            make_ready(case, provider)

        def get_call_kwargs(self, case: schemathesis.Case[Any]) -> dict[str, Any]:
            return {"base_url": provider.address, "headers": provider.headers}

    Histories.run(settings=settings(SETTINGS, max_examples=max(CASES // 4, 3), stateful_step_count=8))
    assert provider.ledger()["differences"] == []
