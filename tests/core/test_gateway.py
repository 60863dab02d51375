"""The one seam to the service: who is asked, how long, and in which dialect."""

from pytest_django import Settings

from backoffice.core.gateway import gateway


def test_a_call_takes_as_long_as_sending_may_unless_it_is_told(settings: Settings) -> None:
    settings.SEND_DEADLINE_SECONDS = 7.5
    assert gateway() is gateway(deadline=7.5)
    assert gateway(deadline=2) is not gateway()


def test_there_is_one_client_for_each_configuration(settings: Settings) -> None:
    first = gateway()
    assert gateway() is first
    settings.GATEWAY_API_USER = "another-merchant"
    assert gateway() is not first
