"""What the service told last, kept for every process and for when the service is away."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pydantic import TypeAdapter

from backoffice.core.cached_reads import KEPT_FOR, CachedRead
from backoffice.core.models import CachedReadRow
from backoffice.ledger import bank_accounts as ledger
from backoffice.ledger import callback_url, wallets
from payments_gateway import ReadFailedError
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db
COUNT = CachedRead("count", TypeAdapter(int))


def away() -> int:
    raise ReadFailedError("The service could not be reached.")


def test_what_it_told_last_stands_in_while_it_is_away() -> None:
    told = COUNT.told_now(lambda: 7)
    later = COUNT.told_now(away)
    assert (later.value, later.at, later.problem) == (7, told.at, "The service could not be reached.")


def test_the_newest_answer_counts() -> None:
    COUNT.told_now(lambda: 7)
    COUNT.told_now(lambda: 8)
    assert COUNT.last_told().value == 8


def test_nothing_is_known_before_the_first_answer() -> None:
    assert not COUNT.last_told().is_known
    assert COUNT.told_now(away).value is None


def test_after_a_day_it_is_forgotten() -> None:
    COUNT.told_now(lambda: 7)
    CachedReadRow.objects.update(at=timezone.now() - KEPT_FOR - timedelta(seconds=1))
    assert not COUNT.last_told().is_known
    CachedRead("other", TypeAdapter(int)).told_now(lambda: 1)
    assert not CachedReadRow.objects.filter(pk="count").exists()


def test_what_another_release_kept_and_this_one_cannot_read_is_not_known() -> None:
    CachedReadRow.objects.create(question="count", value='{"shape": "of another release"}', at=timezone.now())
    assert not COUNT.last_told().is_known


def test_each_answer_reads_back_as_it_was_told(sandbox: SandboxProcess) -> None:
    for now, known in (
        (wallets.refresh_wallet(), wallets.cached_wallet()),
        (ledger.refresh_own_accounts(), ledger.cached_own_accounts()),
        (callback_url.refresh_callback_url(), callback_url.cached_callback_url()),
    ):
        assert now.is_known
        assert known == now
