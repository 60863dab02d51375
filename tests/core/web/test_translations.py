"""Every text of every page is translated: in a language of brackets, nothing but data is outside them."""

import re
from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.core.templatetags.display import _CURRENCY_NAMES
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from payments_gateway.money import CURRENCIES
from tests import factories
from tests.pseudo_language import CODE, pseudo_language, untranslated

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
DATA = re.compile(
    r"Countersign|Tunde Bello|Amara Okafor|Kemi Alade|Kemi|\bKA\b|[\w.]+@[\w.]+|Lagos"
    r"|\(\w+\)|Delivery \d+|\b[A-Z]-[0-9A-Z]{6}\b|\b[0-9A-Z]{4}(?:-[0-9A-Z]{4})+\b|ADA CHIDINMA OBI|GTBank|Access Bank"
    r"|\b(NGN|USD|USDT|UTC|WAT|CSV|XLSX|API|TRC20|ERC20|BEP20|POLYGON|SANDBOX)\b"
    r"|lundo|mardo|merkredo|ĵaŭdo|vendredo|sabato|diman\S+|Via pasvorto[^.]*\."  # Django's own texts
)
PAGES = [
    "/",
    "/operations/",
    "/operations/?tab=done",
    "/operations/?tab=all&text=nothing",
    "/operations/views/",
    "/operations/pause/",
    "/operations/prepare/withdrawal/",
    "/operations/prepare/conversion/",
    "/operations/prepare/transfer/",
    "/operations/prepare/wallet_transfer/",
    "/operations/prepare/payment/",
    "/operations/prepare/bank_account/",
    "/operations/prepare/callback_url/",
    "/operations/prepare/api_key_create/",
    "/search/",
    "/transactions/",
    "/transactions/views/",
    "/operations/off-ramp-payments/",
    "/operations/withdrawals/",
    "/money/balances/",
    "/money/bank-accounts/",
    "/money/statements/",
    "/money/wallets/",
    "/reconciliation/",
    "/reconciliation/unknown/",
    "/reconciliation/incidents/",
    "/reconciliation/continuity/",
    "/reports/",
    "/reports/exports/",
    "/reports/schedules/",
    "/reports/operations/",
    "/reports/operations/schedule/",
    "/settings/team/",
    "/settings/team/groups/",
    "/settings/team/access-review/",
    "/operations/prepare/staff_change/",
    "/settings/recipients/",
    "/settings/policies/",
    "/settings/policies/draft/",
    "/settings/policies/draft/rules/new/",
    "/settings/policies/draft/lists/",
    "/settings/policies/draft/review/",
    "/settings/policies/draft/recipients/",
    "/settings/policies/draft/replay/",
    "/settings/policies/try/",
    "/settings/api-keys/",
    "/settings/api-keys/rotation/",
    "/settings/webhooks/",
    "/settings/audit/",
    "/settings/system/",
    "/account/password/",
    "/account/shortcuts/",
]


@pytest.fixture(scope="module", autouse=True)
def language(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pseudo_language(tmp_path_factory.mktemp("locale")):
        yield


@pytest.fixture
def everything(client: Client, sign_in: SignIn) -> Client:
    """Somebody with every role, who reads this language."""
    person = factories.person("Kemi Alade", *Role)
    User.objects.filter(pk=person.pk).update(language=CODE)
    person.refresh_from_db()
    return sign_in(client, person)


@pytest.mark.parametrize("address", PAGES)
def test_every_text_of_a_page_is_translated(everything: Client, preparer: User, address: str) -> None:
    factories.prepared(preparer)
    page = everything.get(address, follow=True)
    assert page.status_code == 200
    assert untranslated(page.content.decode(), DATA) == []


@pytest.mark.parametrize("state", ["pending", "approved"])
def test_every_text_of_an_operation_is_translated(
    everything: Client, preparer: User, approver: User, state: str
) -> None:
    operation: Operation = (
        factories.prepared(preparer) if state == "pending" else factories.approved(preparer, approver)
    )
    page = everything.get(operation.get_absolute_url())
    assert untranslated(page.content.decode(), DATA) == []


OF_BREAK_GLASS = re.compile(rf"{DATA.pattern}|\broot\b|bastion-1|Nobody else is there")


def test_every_text_about_break_glass_is_translated(everything: Client, preparer: User) -> None:
    change = factories.break_glass(preparer)
    for address in ("/", "/reconciliation/incidents/", f"/reconciliation/incidents/break-glass/{change.pk}/"):
        assert untranslated(everything.get(address).content.decode(), OF_BREAK_GLASS) == []


def test_every_text_for_a_restricted_approver_is_translated(everything: Client, preparer: User) -> None:
    operation = factories.prepared(preparer)
    own = factories.break_glass(User.objects.get(full_name="Kemi Alade"))
    for address in (operation.get_absolute_url(), f"/reconciliation/incidents/break-glass/{own.pk}/"):
        assert untranslated(everything.get(address).content.decode(), OF_BREAK_GLASS) == []


@pytest.mark.parametrize("state", ["pending", "recreated", "closed"])
def test_every_text_about_a_restored_database_is_translated(
    everything: Client, preparer: User, state: str
) -> None:
    operation = factories.prepared(preparer)
    if state == "closed":
        approvals.cancel_operation(operation.pk, actor=preparer)
    incident = factories.incident_of_restore()
    recreated = factories.attempt(operation) if state == "recreated" else None
    factories.lost_attempt(incident, operation, attempt=recreated)
    factories.lost_attempt(incident, Operation(reference="W-GONE42"))
    of_machine = re.compile(rf"{DATA.pattern}|payments-1")
    for address in (incident.get_absolute_url(), operation.get_absolute_url(), "/reconciliation/incidents/"):
        assert untranslated(everything.get(address).content.decode(), of_machine) == []


def test_every_text_of_a_setup_link_is_translated(client: Client, preparer: User) -> None:
    token = staff.issue_setup_link(preparer.pk, actor=None)
    page = client.get(f"/account/set-up/{token}/", headers={"Accept-Language": CODE})
    assert untranslated(page.content.decode(), DATA) == []


@pytest.mark.parametrize("address", ["/account/sign-in/", "/account/set-up/wrong/", "/nothing/"])
def test_every_text_before_sign_in_is_translated(client: Client, address: str) -> None:
    page = client.get(address, headers={"Accept-Language": CODE}, follow=True)
    assert untranslated(page.content.decode(), DATA) == []


def test_every_name_of_a_currency_is_marked_for_translation() -> None:
    assert set(_CURRENCY_NAMES) == {currency.name for currency in CURRENCIES.values()}
