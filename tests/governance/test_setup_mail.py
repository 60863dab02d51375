"""The one-time link by mail: to the invited person alone, without the start code, and shown if it cannot be sent."""

import logging
import re
from collections.abc import Callable

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import AuthenticatorDevice, SetupLink, User
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.governance.bootstrap import invite_second_administrator
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.notifications.receivers import mail_server
from tests.operations.kinds.staff import changes

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
CONSOLE = "django.core.mail.backends.console.EmailBackend"
LINK = re.compile(r"https://office\.example/account/set-up/([\w-]+)/")
BY_MAIL = {"mail": "1"}


@pytest.fixture(autouse=True)
def reachable(settings: Settings) -> None:
    settings.PUBLIC_URL = "https://office.example"


@pytest.fixture
def invitation(administrator: User, second_administrator: User) -> Operation:
    return changes.agreed(changes.invitation(Role.APPROVER), administrator, second_administrator)


def address_of(operation: Operation) -> str:
    return reverse("governance:handover", args=[operation.pk])


def actions_of(person: User) -> set[str]:
    return set(Entry.objects.filter(target_id=str(person.pk)).values_list("action", flat=True))


def test_the_link_is_mailed_to_the_invited_person_and_not_shown(
    administrator: User, invitation: Operation, sign_in: SignIn
) -> None:
    client, person = sign_in(Client(), administrator), SetupLink.objects.get().user
    assert f"Send link to {person.email}" in client.get(address_of(invitation)).content.decode()
    page = client.post(address_of(invitation), BY_MAIL, follow=True).content.decode()
    assert f"The link was sent to {person.email}." in page
    assert "/account/set-up/" not in page
    [sent] = mail.outbox
    assert sent.to == [person.email]
    assert isinstance(sent, mail.EmailMultiAlternatives)
    html = str(sent.alternatives[0][0])
    assert LINK.findall(str(sent.body)) == LINK.findall(html)
    assert SetupLink.digests(LINK.findall(html)[0])[0] == SetupLink.objects.get().digest
    assert Action.SETUP_LINK_MAILED in actions_of(person)
    assert Action.SETUP_LINK_SHOWN not in actions_of(person)


def test_a_mailed_link_is_neither_mailed_again_nor_shown(
    administrator: User, invitation: Operation, sign_in: SignIn
) -> None:
    client = sign_in(Client(), administrator)
    client.post(address_of(invitation), BY_MAIL)
    for again in (BY_MAIL, {}):
        assert "data-copy" not in client.post(address_of(invitation), again).content.decode()
    assert len(mail.outbox) == 1


def test_after_the_link_was_sent_the_pages_say_so_and_offer_it_no_more(
    administrator: User, invitation: Operation, sign_in: SignIn
) -> None:
    client, person = sign_in(Client(), administrator), SetupLink.objects.get().user
    assert "Pass on the link…" in client.get(invitation.get_absolute_url()).content.decode()
    client.post(address_of(invitation), BY_MAIL)
    for address in (invitation.get_absolute_url(), address_of(invitation)):
        page = client.get(address).content.decode()
        assert f"Link sent to {person.email}, " in page
        assert "Pass on the link…" not in page
        assert "There is nothing to show" not in page
    assert "<h1>One-time link</h1>" in page


def test_overview_and_team_lead_whoever_must_act_to_the_page_that_does_it(
    administrator: User, second_administrator: User, invitation: Operation, sign_in: SignIn
) -> None:
    """Each of the two until the half was passed on; then the row says that the person has not signed in."""
    person = SetupLink.objects.get().user
    link = f'href="{address_of(invitation)}">'
    for reader, half in ((administrator, "the link"), (second_administrator, "the start code")):
        client = sign_in(Client(), reader)
        overview = client.get(reverse("operations:overview")).content.decode()
        assert f"{link}Pass on {half} to {person.full_name}</a>" in overview
        assert "Nothing is waiting for you" not in overview
        team = client.get(reverse("governance:team")).content.decode()
        said = "link not passed on yet" if reader == administrator else "Invited, link valid until"
        assert said in team
        assert f"{link}Pass on {half}</a>" in team
        profile = client.get(reverse("governance:person", args=[person.pk])).content.decode()
        assert f"{link}Pass on {half}</a>" in profile
        client.post(address_of(invitation))
        for page in ("operations:overview", "governance:team"):
            assert f"Pass on {half}" not in client.get(reverse(page)).content.decode()
    assert "Invited, link valid until" in client.get(reverse("governance:team")).content.decode()


def test_the_team_page_shows_how_far_a_set_up_is_and_offers_a_new_link(
    administrator: User, second_administrator: User, invitation: Operation, sign_in: SignIn
) -> None:
    """Until there is an authenticator; the new link is an operation that another administrator approves."""
    client, person = sign_in(Client(), administrator), SetupLink.objects.get().user
    client.post(address_of(invitation))
    new_link = (
        f"{reverse('operations:prepare', args=['staff_change'])}?change=second_factor&amp;person={person.pk}"
    )

    def shown(text: str) -> bool:
        pages = [reverse("governance:team"), reverse("governance:person", args=[person.pk])]
        htmls = [client.get(page).content.decode() for page in pages]
        return all(text in html and f'href="{new_link}">Create a new link</a>' in html for html in htmls)

    assert shown("Invited, link valid until ")
    User.objects.filter(pk=person.pk).update(last_login=timezone.now())
    assert shown("Second factor reset, link valid until ")
    SetupLink.objects.update(link_shown_at=None)
    assert (
        "Second factor reset, link not passed on yet. Valid until "
        in client.get(reverse("governance:team")).content.decode()
    )
    SetupLink.objects.update(expires_at=timezone.now())
    assert shown("Link expired ")
    assert "<h1>Create a new link</h1>" in client.get(new_link.replace("&amp;", "&")).content.decode()
    SetupLink.objects.all().delete()
    assert shown("No valid link.")
    person.set_password(factories.PASSWORD)
    person.save()
    assert shown("Password set, authenticator missing.")
    device = AuthenticatorDevice(user=person, confirmed=True)
    device.set_new_seed()
    device.save()
    assert not shown("authenticator missing")


def test_after_the_person_signed_in_the_pages_say_so(
    administrator: User, second_administrator: User, invitation: Operation, sign_in: SignIn
) -> None:
    client = sign_in(Client(), administrator)
    client.post(address_of(invitation), BY_MAIL)
    person = SetupLink.objects.get().user
    User.objects.filter(pk=person.pk).update(last_login=timezone.now())
    SetupLink.objects.all().delete()
    for reader, title in ((administrator, "One-time link"), (second_administrator, "Start code")):
        client = sign_in(Client(), reader)
        for address in (invitation.get_absolute_url(), address_of(invitation)):
            page = client.get(address).content.decode()
            assert f"{person.full_name} has signed in." in page
            assert "Pass on the link…" not in page
            assert "Show start code" not in page
        assert f"<h1>{title}</h1>" in page


def test_the_start_code_is_never_mailed(
    second_administrator: User, invitation: Operation, sign_in: SignIn
) -> None:
    client = sign_in(Client(), second_administrator)
    assert 'name="mail"' not in client.get(address_of(invitation)).content.decode()
    assert "data-copy" in client.post(address_of(invitation), BY_MAIL).content.decode()
    assert mail.outbox == []


@pytest.mark.parametrize("missing", [{"EMAIL_BACKEND": CONSOLE}, {"PUBLIC_URL": ""}])
def test_without_mail_the_link_is_shown(
    administrator: User, invitation: Operation, sign_in: SignIn, settings: Settings, missing: dict[str, str]
) -> None:
    """The console backend would write the link into the log."""
    for name, value in missing.items():
        setattr(settings, name, value)
    client = sign_in(Client(), administrator)
    assert 'name="mail"' not in client.get(address_of(invitation)).content.decode()
    assert "/account/set-up/" in client.post(address_of(invitation), BY_MAIL).content.decode()
    assert mail.outbox == []


def test_a_link_that_the_mail_server_refuses_is_shown_and_in_no_log(
    administrator: User,
    invitation: Operation,
    sign_in: SignIn,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    client, person = sign_in(Client(), administrator), SetupLink.objects.get().user
    with mail_server() as server:
        server.answer = "550 No"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        page = client.post(address_of(invitation), BY_MAIL).content.decode()
    [token] = set(LINK.findall(page))
    assert "The mail server did not accept the email" in page
    assert {Action.SETUP_LINK_MAILED, Action.SETUP_LINK_SHOWN} <= actions_of(person)
    of_the_server = "mail.log"  # in this process, but for the test
    assert [one for one in caplog.records if one.name != of_the_server and token in one.getMessage()] == []


def test_the_first_administrator_can_have_the_second_ones_link_mailed(
    administrator: User, sign_in: SignIn
) -> None:
    User.objects.filter(pk=administrator.pk).update(last_login=timezone.now())
    values = {"full_name": "Ibrahim Sani", "email": "ibrahim@countersign.example", **BY_MAIL}
    client = sign_in(Client(), administrator)
    page = client.post(reverse("governance:bootstrap"), values, follow=True).content.decode()
    assert "The link was sent to ibrahim@countersign.example." in page
    assert "/account/set-up/" not in page
    [sent] = mail.outbox
    assert "start code" not in str(sent.body)
    chosen = {"new_password": factories.PASSWORD, "repeated": factories.PASSWORD}
    token = LINK.findall(str(sent.body))[0]
    assert Client().post(reverse("accounts:set_up", args=[token]), chosen).status_code == 302


def test_the_first_administrator_can_have_a_new_link_mailed(administrator: User, sign_in: SignIn) -> None:
    User.objects.filter(pk=administrator.pk).update(last_login=timezone.now())
    second, earlier = invite_second_administrator(
        "ibrahim@countersign.example", full_name="Ibrahim Sani", actor=administrator
    )
    address, client = reverse("governance:renew_link", args=[second.pk]), sign_in(Client(), administrator)
    assert "Create link and send it to ibrahim@countersign.example" in client.get(address).content.decode()
    page = client.post(address, BY_MAIL, follow=True).content.decode()
    assert "The link was sent to ibrahim@countersign.example." in page
    assert "/account/set-up/" not in page
    [sent] = mail.outbox
    token = LINK.findall(str(sent.body))[0]
    assert token != earlier
    assert Client().get(reverse("accounts:set_up", args=[token])).status_code == 200
