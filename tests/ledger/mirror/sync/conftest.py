"""A provider with a long list, and the mirror's books, which agree with it whatever happens in a test."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from backoffice.ledger.mirror.totals import total_discrepancies
from backoffice.ledger.models import Mirror, Transaction
from tests.ledger.long_list import LongList
from tests.stub_provider import serving


@pytest.fixture
def provider(settings: Settings) -> Iterator[LongList]:
    with serving(LongList()) as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        yield stub


@pytest.fixture(autouse=True)
def the_books_agree(db: None) -> Iterator[None]:
    """Whatever happens in a test."""
    yield
    assert list(map(str, total_discrepancies())) == []
    assert not Mirror.objects.exists() or Mirror.objects.get().rows == Transaction.objects.count()
