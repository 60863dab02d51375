"""While a file is checked the provider may accept no more requests: the check pauses and continues, without errors."""

import json
from datetime import timedelta

import pytest

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations.batches import checking, files
from backoffice.operations.models.batches import FileState
from tests.operations.batches import payouts
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
HEADER = "currency,amount,bank_code,account_number,typed_name"
ROWS = [f"NGN,{1000 + number}.00,044,010000000{number},Ada Obi" for number in range(1, 6)]
NAMED = (200, '{"data": {"accountName": "Ada Obi", "bankName": "Access Bank"}}')
LIMITED = (429, '{"success": false, "message": "Too many requests"}')


def asked(provider: StubProvider) -> list[str]:
    """The last digits of the accounts whose holders were read, each once, in order."""
    return list(dict.fromkeys(json.loads(body)["accountNumber"][-1] for body in provider.resolved))


def test_a_check_pauses_at_the_rate_limit_and_continues_where_it_stopped(
    preparer: User, provider: StubProvider
) -> None:
    provider.answer_resolve = lambda: LIMITED if asked(provider)[-1] == "3" else NAMED
    file = payouts.uploaded(preparer, ROWS, kind="withdrawal", header=HEADER)
    files.check_columns(file.pk, actor=preparer, mapping=file.mapping)
    assert checking.check_file(file.pk)
    file.refresh_from_db()
    assert (file.state, file.checked_count) == (FileState.CHECKING, 2)
    assert not file.rows.filter(has_errors=True).exists()
    assert asked(provider) == ["1", "2", "3"]
    assert file.next_check_at is not None
    assert timedelta(seconds=3) < file.next_check_at - clock.now() <= timedelta(seconds=5)

    provider.resolved.clear()
    assert checking.check_due() == 0
    assert not checking.check_file(file.pk), "a message that comes too early"
    assert provider.resolved == []

    provider.answer_resolve = lambda: NAMED
    later = file.next_check_at + timedelta(seconds=1)
    with clock.use_clock(lambda: later):
        assert checking.check_due() == 1
    file.refresh_from_db()
    assert (file.state, file.checked_count, file.error_count) == (FileState.CHECKED, 5, 0)
    assert asked(provider) == ["3", "4", "5"]
