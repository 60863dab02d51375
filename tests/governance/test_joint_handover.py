"""The links or start codes of several people on one page: the rules of the page of one hold for each of them."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from pytest_django import Settings

from backoffice.accounts.models import SetupLink, User
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.web.mail import MailNotSentError
from backoffice.governance.pages import handover, joint_handover
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.accounts import steps
from tests.operations.kinds.staff import changes

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
CONSOLE = "django.core.mail.backends.console.EmailBackend"
LINKS, CODES = reverse("governance:links"), reverse("governance:start_codes")
NAMES = ("Ada Obi", "Bo Li", "Sade Ojo")
HANDED_OVER = (Action.SETUP_LINK_SHOWN, Action.SETUP_LINK_MAILED, Action.START_CODE_SHOWN)
LINK = re.compile(r"https://office\.example/account/set-up/([\w-]+)/")


@pytest.fixture(autouse=True)
def reachable(settings: Settings) -> None:
    settings.PUBLIC_URL = "https://office.example"


@pytest.fixture
def invitations(administrator: User, second_administrator: User) -> list[Operation]:
    """Three, prepared by the first administrator and approved by the second."""
    return [invited(name, administrator, second_administrator) for name in NAMES]


def invited(name: str, preparer: User, approver: User) -> Operation:
    return changes.agreed(changes.invitation(Role.APPROVER, name=name), preparer, approver)


def references(*operations: Operation) -> dict[str, list[str]]:
    return {"operation": [one.reference for one in operations]}


def shown_in(answer: Any) -> list[str]:
    """The links or start codes on the page, in their order."""
    return re.findall(r'data-copy="([^"]+)"', answer.content.decode())


def is_never_stored(answer: Any) -> bool:
    """Whether the middleware of post/redirect/get leaves the page alone."""
    return answer.shown_once is True


def recorded(*actions: Action) -> list[tuple[str, int, str]]:
    """What was handed over, by whom and to whom, in the order in which it was recorded."""
    entries = Entry.objects.filter(action__in=actions or HANDED_OVER).order_by("position")
    return [(one.action, one.actor_id or 0, one.target_label) for one in entries]


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def stale(client: Client) -> Client:
    steps.age_second_factor(client, minutes=6)
    return client


def test_all_links_are_shown_once_and_each_is_recorded_by_itself(
    administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    client, chosen = sign_in(Client(), administrator), references(*invitations)
    answer = client.post(LINKS, chosen)
    tokens = [LINK.findall(one)[0] for one in shown_in(answer)]
    stored = {link.operation: link.digest for link in SetupLink.objects.all()}
    assert [stored[one.pk] for one in invitations] == [SetupLink.digests(token)[0] for token in tokens]
    assert [entry[:2] for entry in recorded()] == [(Action.SETUP_LINK_SHOWN, administrator.pk)] * 3
    details = Entry.objects.filter(action=Action.SETUP_LINK_SHOWN).values_list("detail", flat=True)
    assert {one["operation"] for one in details} == {str(one.pk) for one in invitations}
    assert "no-store" in answer.headers["Cache-Control"]
    assert is_never_stored(answer)
    again = client.post(LINKS, chosen)
    assert (again.status_code, shown_in(again)) == (409, [])
    assert text_of(again).count("There is nothing to show") == 3
    assert len(recorded()) == 3


def test_the_approver_sees_all_start_codes_once(
    second_administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    client, chosen = sign_in(Client(), second_administrator), references(*invitations)
    answer = client.post(CODES, chosen)
    codes = shown_in(answer)
    stored = {link.operation: link.code_digest for link in SetupLink.objects.all()}
    assert [stored[one.pk] for one in invitations] == [SetupLink.code_digests(code)[0] for code in codes]
    assert [entry[:2] for entry in recorded()] == [(Action.START_CODE_SHOWN, second_administrator.pk)] * 3
    assert "no-store" in answer.headers["Cache-Control"]
    assert is_never_stored(answer)
    assert shown_in(client.post(CODES, chosen)) == []
    assert len(recorded()) == 3


@pytest.mark.parametrize("page", [LINKS, CODES])
def test_opening_the_page_shows_nothing_and_uses_nothing_up(
    administrator: User,
    second_administrator: User,
    invitations: list[Operation],
    sign_in: SignIn,
    page: str,
) -> None:
    before = list(SetupLink.objects.order_by("pk").values())
    reader = administrator if page == LINKS else second_administrator
    client = sign_in(Client(), reader)
    for query in ({}, references(*invitations), {**references(*invitations), "mail": "1"}):
        answer = client.get(page, query)
        assert shown_in(answer) == []
        assert all(name in text_of(answer) for name in NAMES)
        assert "no-store" in answer.headers["Cache-Control"]
    assert list(SetupLink.objects.order_by("pk").values()) == before
    assert (recorded(), mail.outbox) == ([], [])


def test_each_person_sees_only_their_own_half(
    administrator: User, second_administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    """Not the other half on the other page either, whatever is posted; a third administrator not even the names."""
    turned = invited("Ruth Ako", second_administrator, administrator)
    third = factories.person("Third Person", Role.ADMINISTRATOR)
    chosen = references(*invitations, turned)
    before = list(SetupLink.objects.order_by("pk").values())
    for reader, page in ((third, LINKS), (third, CODES)):
        client = sign_in(Client(), reader)
        for answer in (client.post(page, chosen), client.get(page, chosen)):
            assert shown_in(answer) == []
            assert not any(name in text_of(answer) for name in (*NAMES, "Ruth Ako"))
    for reader, page, foreign in (
        (administrator, CODES, invitations),
        (administrator, LINKS, [turned]),
        (second_administrator, LINKS, invitations),
        (second_administrator, CODES, [turned]),
    ):
        assert shown_in(sign_in(Client(), reader).post(page, references(*foreign))) == []
    assert list(SetupLink.objects.order_by("pk").values()) == before
    assert recorded() == []
    assert len(shown_in(sign_in(Client(), administrator).post(LINKS, chosen))) == 3
    assert len(shown_in(sign_in(Client(), administrator).post(CODES, chosen))) == 1
    assert len(shown_in(sign_in(Client(), second_administrator).post(CODES, chosen))) == 3


def test_without_a_fresh_second_factor_nothing_is_shown(
    administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    client, chosen = stale(sign_in(Client(), administrator)), references(*invitations)
    assert "Your authenticator code" in text_of(client.get(LINKS, chosen))
    for more in ({}, {"code": steps.wrong_code(steps.authenticator(administrator))}, {"mail": "1"}):
        answer = client.post(LINKS, chosen | more)
        assert (answer.status_code, shown_in(answer)) == (422, [])
    assert (recorded(), mail.outbox) == ([], [])


def test_one_authenticator_code_is_enough_for_all(
    administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    client, chosen = stale(sign_in(Client(), administrator)), references(*invitations)
    answer = client.post(LINKS, chosen | {"code": steps.code_of(steps.authenticator(administrator))})
    assert len(shown_in(answer)) == 3


def test_a_second_factor_that_ends_in_between_is_refused_for_each_of_the_others(
    administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    fresh, old = timezone.now(), timezone.now() - timedelta(minutes=6)
    with patch.object(joint_handover, "second_factor_at", side_effect=[fresh, old, old]):
        answer = sign_in(Client(), administrator).post(LINKS, references(*invitations))
    assert (answer.status_code, len(shown_in(answer))) == (200, 1)
    assert text_of(answer).count("Your last authenticator code is more than five minutes old.") == 2
    assert "2 links could not be shown or sent. The reasons are below." in text_of(answer)
    assert len(recorded()) == 1


def test_what_was_seen_before_or_has_expired_is_named_and_the_others_are_shown(
    administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    client = sign_in(Client(), administrator)
    client.post(reverse("governance:handover", args=[invitations[0].pk]))
    SetupLink.objects.filter(operation=invitations[1].pk).update(expires_at=timezone.now())
    page = client.get(LINKS, references(*invitations))
    assert "Ada Obi" in text_of(page)
    assert "You viewed the link, " in text_of(page)
    assert "The link has expired or was replaced." in text_of(page)
    assert re.findall(r'name="operation" value="([^"]+)"', page.content.decode()) == [
        invitations[2].reference
    ]
    answer = client.post(LINKS, references(*invitations))
    assert (answer.status_code, len(shown_in(answer))) == (200, 1)
    assert text_of(answer).count("There is nothing to show: the link was used, has expired") == 2
    assert len(recorded()) == 2


def test_an_altered_link_is_not_shown_beside_the_others(
    administrator: User, second_administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    SetupLink.objects.filter(operation=invitations[1].pk).update(code_digest="0" * 64)
    answer = sign_in(Client(), administrator).post(LINKS, references(*invitations))
    assert len(shown_in(answer)) == 2
    assert "There is nothing to show" in text_of(answer)


def test_all_links_are_mailed_each_to_its_person_and_the_list_says_so(
    administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    client, query = sign_in(Client(), administrator), urlencode(references(*invitations), doseq=True)
    listed = client.get(f"{reverse('governance:invited')}?{query}").content.decode()
    assert f'href="{LINKS}?{query.replace("&", "&amp;")}">Send 3 links by email…' in listed
    confirmation = text_of(client.get(f"{LINKS}?{query}"))
    assert all(f"{name.split()[0].lower()}@countersign.example" in confirmation for name in NAMES)
    assert "Send 3 links by email" in confirmation
    landed = client.post(f"{LINKS}?{query}", references(*invitations) | {"mail": "1"}, follow=True)
    assert landed.redirect_chain == [(f"{reverse('governance:invited')}?{query}", 302)]
    assert "3 links were sent." in text_of(landed)
    assert text_of(landed).count("Link sent by email, ") == 3
    assert shown_in(landed) == []
    sent = {tuple(one.to): LINK.findall(str(one.body))[0] for one in mail.outbox}
    stored = {(link.user.email,): link.digest for link in SetupLink.objects.select_related("user")}
    assert {to: SetupLink.digests(token)[0] for to, token in sent.items()} == stored
    assert [entry[:2] for entry in recorded()] == [(Action.SETUP_LINK_MAILED, administrator.pk)] * 3


def test_a_link_whose_mail_fails_is_shown_beside_its_person_and_the_others_are_sent(
    administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    send_really = handover.mail_setup_link

    def send(person: User, address: str, **more: Any) -> None:
        if person.full_name == "Bo Li":
            raise MailNotSentError
        send_really(person, address, **more)

    client, query = sign_in(Client(), administrator), urlencode(references(*invitations), doseq=True)
    with patch.object(handover, "mail_setup_link", send):
        answer = client.post(f"{LINKS}?{query}", references(*invitations) | {"mail": "1"})
    assert {one.to[0] for one in mail.outbox} == {"ada@countersign.example", "sade@countersign.example"}
    [address] = shown_in(answer)
    link = SetupLink.objects.get(operation=invitations[1].pk)
    assert SetupLink.digests(LINK.findall(address)[0])[0] == link.digest
    assert "The mail server did not accept the email. Pass the link on yourself" in text_of(answer)
    assert text_of(answer).count("Link sent by email.") == 2
    assert is_never_stored(answer)
    to_bo = Entry.objects.filter(target_id=str(link.user_id), action__in=HANDED_OVER).order_by("position")
    assert [one.action for one in to_bo] == [Action.SETUP_LINK_MAILED, Action.SETUP_LINK_SHOWN]
    listed = text_of(client.get(f"{reverse('governance:invited')}?{query}"))
    assert (listed.count("Link sent by email, "), listed.count("You viewed the link, ")) == (2, 1)


def test_a_mail_server_that_does_not_answer_in_time_uses_up_no_further_link(
    administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    with patch.object(joint_handover, "monotonic", side_effect=[0, 1, 21, 42]):
        answer = sign_in(Client(), administrator).post(LINKS, references(*invitations) | {"mail": "1"})
    assert len(mail.outbox) == len(recorded()) == 1
    assert text_of(answer).count("Not sent: the mail server did not respond in time.") == 2
    assert "Pass on 2 more links…" in text_of(answer)
    assert SetupLink.objects.filter(link_shown_at=None).count() == 2


def test_start_codes_are_never_mailed(
    second_administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    client = sign_in(Client(), second_administrator)
    assert "by email" not in text_of(client.get(CODES))
    assert len(shown_in(client.post(CODES, references(*invitations) | {"mail": "1"}))) == 3
    assert mail.outbox == []


def test_without_mail_the_links_are_shown(
    administrator: User, invitations: list[Operation], sign_in: SignIn, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = CONSOLE
    client = sign_in(Client(), administrator)
    listed = text_of(client.get(reverse("governance:invited"), references(*invitations)))
    assert "Show 3 links…" in listed
    assert "by email" not in text_of(client.get(LINKS))
    assert len(shown_in(client.post(LINKS, references(*invitations) | {"mail": "1"}))) == 3
    assert len(recorded(Action.SETUP_LINK_SHOWN)) == 3


@pytest.mark.parametrize("page", [LINKS, CODES])
def test_a_form_of_another_site_shows_nothing(
    administrator: User, invitations: list[Operation], sign_in: SignIn, page: str
) -> None:
    client = sign_in(Client(enforce_csrf_checks=True), administrator)
    assert client.post(page, references(*invitations)).status_code == 403
    assert recorded() == []


@pytest.mark.parametrize("chosen", [{}, {"operation": ["a\0b"]}, {"operation": ["OP-NONE"]}])
def test_without_a_person_nothing_is_shown(
    administrator: User, invitations: list[Operation], sign_in: SignIn, chosen: dict[str, Any]
) -> None:
    client = sign_in(Client(), administrator)
    answer = client.post(LINKS, chosen)
    assert (answer.status_code, shown_in(answer)) == (409, [])
    assert client.get(LINKS, chosen).status_code == 200
    assert recorded() == []


def test_after_a_joint_approval_and_on_the_overview_one_button_leads_to_all_codes(
    administrator: User, second_administrator: User, sign_in: SignIn
) -> None:
    waiting = [
        changes.proposed(changes.invitation(Role.APPROVER, name=name), administrator) for name in NAMES[:2]
    ]
    client, before = sign_in(Client(), second_administrator), sign_in(Client(), administrator)
    decided = {"operation": [f"{one.reference}:{one.digest}" for one in waiting]}
    result = client.post(reverse("operations:bulk_approve"), decided).content.decode()
    query = urlencode(references(*waiting), doseq=True).replace("&", "&amp;")
    assert f'href="{CODES}?{query}">Show 2 start codes…</a>' in result
    overview = client.get(reverse("operations:overview")).content.decode()
    assert f'href="{CODES}">Show 2 start codes…</a>' in overview
    assert (
        f'href="{LINKS}">Pass on 2 links…</a>' in before.get(reverse("operations:overview")).content.decode()
    )


def test_the_page_of_one_returns_to_the_list_and_names_the_next_person(
    administrator: User, second_administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    query = urlencode(references(*invitations), doseq=True)
    for reader, back in ((administrator, reverse("governance:invited")), (second_administrator, CODES)):
        client = sign_in(Client(), reader)
        addresses = [f"{reverse('governance:handover', args=[one.pk])}?{query}" for one in invitations]
        escaped = [one.replace("&", "&amp;") for one in addresses]
        assert escaped[0] in client.get(f"{back}?{query}").content.decode()
        first = client.post(addresses[0]).content.decode()
        assert "2 more to pass on. Next: Bo Li." in first
        assert f'href="{escaped[1]}">Next: Bo Li</a>' in first
        returns = f'href="{back}?{query}">I have passed it on</a>'.replace("&", "&amp;")
        assert returns in first
        client.post(addresses[1])
        last = client.post(addresses[2]).content.decode()
        assert "Next: " not in last
        assert returns in last


def test_a_mailed_link_returns_to_the_list_as_well(
    administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    query = urlencode(references(*invitations), doseq=True)
    address = f"{reverse('governance:handover', args=[invitations[0].pk])}?{query}"
    answer = sign_in(Client(), administrator).post(address, {"mail": "1"})
    assert answer.headers["Location"] == f"{reverse('governance:invited')}?{query}"


@pytest.mark.usefixtures("warm_caches")
def test_one_page_takes_twenty_people_and_leads_to_the_others(
    administrator: User, second_administrator: User, sign_in: SignIn
) -> None:
    many = [invited(f"P{number:02} Obi", administrator, second_administrator) for number in range(21)]
    client = sign_in(Client(), second_administrator)
    client.get(CODES, references(*many))
    with CaptureQueriesContext(connection) as queries:
        page = client.get(CODES, references(*many))
    assert len(queries) <= 6
    assert "1 more remains." in text_of(page)
    listed = re.findall(r'name="operation" value="([^"]+)"', page.content.decode())
    assert listed == [one.reference for one in many[:20]]
    answer = client.post(CODES, {"operation": listed})
    assert len(shown_in(answer)) == 20
    assert "Show 1 more start code…" in text_of(answer)
    assert len(shown_in(client.post(CODES, references(*many)))) == 0  # the first twenty again
    assert len(shown_in(client.post(CODES, references(many[20])))) == 1


def test_an_operation_that_is_not_applied_yet_has_nothing_to_pass_on(
    administrator: User, sign_in: SignIn
) -> None:
    waiting = changes.proposed(changes.invitation(Role.APPROVER), administrator)
    answer = sign_in(Client(), administrator).post(LINKS, references(waiting))
    assert (answer.status_code, shown_in(answer)) == (409, [])
