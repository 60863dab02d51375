"""A new merchant: from an empty database to the first payment on two levels, in browsers and without a shell."""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from django_otp.oath import TOTP
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import steps
from tests.browser.people import People
from tools.processes import Stack, free_port
from tools.trial import FIRST_ADMINISTRATOR, NO_WAITING, create_first_administrator

pytestmark = [pytest.mark.browser, pytest.mark.stack]
PASSWORD = "a kettle on the second floor"
APPLY = "Approve and apply"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """What `make trial` starts, without mail: the links are shown."""
    folder = tmp_path_factory.mktemp("trial")
    extra = {**NO_WAITING, "COUNTERSIGN_EMAIL_URL": "consolemail://"}
    with Stack(folder, free_port(), free_port(), extra=extra, is_demo=False, settle_after=0.0) as running:
        yield running


@pytest.fixture(scope="module")
def shared_people(chromium: Browser, stack: Stack) -> Iterator[People]:
    with People(chromium, stack.web) as people:
        yield people


@dataclass
class Newcomer:
    """Somebody who begins with a one-time link."""

    name: str
    page: Page

    def begin(self, link: str, start_code: str = "") -> None:
        """Choose a password, set up an authenticator, store the recovery codes, and arrive at the overview."""
        self.page.goto(link)
        if start_code:
            self.page.get_by_label("Start code").fill(start_code)
        for label in ("New password", "Repeat new password"):
            self.page.get_by_label(label, exact=True).fill(PASSWORD)
        self.page.get_by_role("button", name="Save password").click()
        secret = self.page.locator("ol code").inner_text().replace(" ", "")
        self.page.get_by_label("Code").fill(f"{TOTP(base64.b32decode(secret)).token():06d}")
        self.page.get_by_role("button", name="Confirm and show recovery codes").click()
        self.page.get_by_role("button", name="I have stored these codes").click()
        expect(self.page.get_by_role("heading", level=1)).to_contain_text(self.name.split()[0])

    def choose(self, link: str) -> None:
        """Follow a link, whether or not it looks like a button."""
        links = self.page.get_by_role("main").locator("a")
        links.filter(has_text=re.compile(rf"^\s*{re.escape(link)}\s*$")).first.click()

    def press(self, button: str) -> None:
        steps.press(self.page, button)

    def fill_in(self, **typed: str) -> None:
        for name, text in typed.items():
            self.page.locator(f"#id_{name}").fill(text)

    def submit(self) -> None:
        self.press("Review details")
        self.press("Submit for approval")
        expect(steps.badge(self.page)).to_have_text("Pending")

    def approve(self, button: str = APPLY) -> str:
        """Open what waits for this person from the overview, and approve it; the address of the operation."""
        self.page.goto("/")
        self.page.locator("a.row").first.click()
        self.press(button)
        expect(self.page.get_by_role("main")).to_contain_text("Approved")
        return self.page.url

    def row_of(self, other: "Newcomer") -> Locator:
        return self.page.get_by_role("row").filter(has_text=other.name)

    def shown(self) -> str:
        """The link or the code that the page shows once."""
        return self.page.locator("dd code").inner_text()


@dataclass
class Administrators:
    """The two: the first prepares each change, the second approves it."""

    first: Newcomer
    second: Newcomer

    def create_group(self, name: str) -> None:
        self.first.page.goto("/settings/team/groups/")
        self.first.choose("Create group")
        self.first.fill_in(group_name=name, reason="Named in the approval policies")
        self.first.submit()
        self.second.approve()

    def invite(self, ticked: Mapping[str, Sequence[str]], newcomers: Sequence[Newcomer]) -> None:
        """All of them with one form, approved together. One of them passes on each link, the other the start code."""
        self.first.page.goto("/settings/team/")
        self.first.choose("Invite people")
        for number, newcomer in enumerate(newcomers, 1):
            if number > 1:
                self.first.press("Add another person")
                expect(self.first.page.locator(f"#id_p{number}-full_name")).to_be_focused()
            email = f"{newcomer.name.split()[0].lower()}@example.com"
            self.first.fill_in(**{f"p{number}-full_name": newcomer.name, f"p{number}-email": email})
            person = self.first.page.locator("fieldset", has=self.first.page.locator(f"#id_p{number}-email"))
            for label in ticked[newcomer.name]:
                person.get_by_label(label, exact=True).check()
        self.first.fill_in(reason="They join the team")
        steps.button(self.first.page, "Submit for approval").dblclick()  # each is prepared once all the same
        heading = self.first.page.get_by_role("heading", name=f"{len(newcomers)} invitations prepared")
        expect(heading).to_be_visible()
        prepared = self.first.page.url
        self.approve_together(len(newcomers))
        for newcomer in newcomers:
            self.first.page.goto(prepared)
            self.first.row_of(newcomer).get_by_text("Pass on the link…").click()
            self.first.press("Show link")
            self.second.page.goto("/")
            self.second.page.get_by_role("link", name=re.compile(newcomer.name)).first.click()
            self.second.press("Show start code")
            newcomer.begin(self.first.shown(), self.second.shown())

    def approve_together(self, number: int) -> None:
        """The second one selects everything that waits, and approves it with one button."""
        self.second.page.goto("/operations/?tab=waiting")
        self.second.page.get_by_label("Select all").check()
        self.second.press("Approve selected…")
        self.second.press(f"Approve {number} operations")
        title = f"{number} of {number} approved"
        expect(self.second.page.get_by_role("heading", name=title)).to_be_visible()


def test_a_team_begins_on_pages_alone_and_makes_its_first_payment(people: People, stack: Stack) -> None:
    team = two_administrators(people, stack)
    for group in ("Treasury", "Directors"):
        team.create_group(group)
    treasurer = Newcomer("Amara Okafor", people.browser())
    director = Newcomer("Chidi Nwosu", people.browser())
    preparer = Newcomer("Tunde Bello", people.browser())
    ticked = {
        treasurer.name: ("Approver", "Treasury"),
        director.name: ("Approver", "Directors"),
        preparer.name: ("Preparer",),
    }
    team.invite(ticked, (treasurer, director, preparer))

    put_rule_into_effect(team)
    payment = steps.NewPayment(amount="6500000.00", account_number="4000999912")
    add_recipient(preparer, payment)
    treasurer.approve()
    pay_first_recipient(preparer, payment)

    path = steps.path_of(preparer.page)
    director.page.goto(path)
    expect(steps.decision(director.page)).to_contain_text("1 of Treasury · 1 approval missing")
    expect(steps.button(director.page, "Approve")).to_have_count(0)
    treasurer.approve("Approve")
    director.page.goto(path)
    director.page.get_by_label("Provider's one-time code").fill(stack.one_time_code())
    director.press("Approve and send")
    expect(steps.badge(director.page)).to_have_text("Succeeded")
    assert steps.debits(stack, payment) == [payment.amount]

    acknowledge_first_invitation(treasurer)
    team.first.page.goto("/settings/team/")
    expect(team.first.page.get_by_role("heading", name="Team", exact=True)).to_be_visible()
    expect(team.first.page.get_by_role("heading", name="First steps")).to_have_count(0)


def two_administrators(people: People, stack: Stack) -> Administrators:
    """The first by the link of the operator, the second by a link that the first one had to create again."""
    email, name = FIRST_ADMINISTRATOR
    first, second = Newcomer(name, people.browser()), Newcomer("Ibrahim Sani", people.browser())
    first.begin(create_first_administrator(stack, email, name))
    first.choose("Invite the second administrator")
    first.fill_in(full_name=second.name, email="ibrahim@example.com")
    first.press("Invite administrator")
    first.choose("I have sent the link")
    first.choose("Create a new link")
    first.press("Create and show link")
    second.begin(first.shown())
    first.choose("I have sent the link")
    expect(first.page.get_by_role("heading", name="First steps")).to_be_visible()
    return Administrators(first, second)


def put_rule_into_effect(team: Administrators) -> None:
    team.first.page.goto("/settings/policies/")
    team.first.choose("Propose new version")
    team.first.choose("Add rule")
    team.first.page.get_by_label("Withdrawals", exact=True).check()
    team.first.fill_in(currencies="NGN", above="5,000,000", needed1="1")
    team.first.page.locator("#id_of1").select_option(label="Group Treasury")
    team.first.page.get_by_text("Level 2", exact=True).click()
    team.first.fill_in(needed2="1", position="1")
    team.first.page.locator("#id_of2").select_option(label="Group Directors")
    team.first.press("Save rule")
    team.first.choose("Review and submit")
    team.first.fill_in(reason="Two groups agree on large withdrawals")
    team.first.press("Submit for approval")
    expect(steps.badge(team.first.page)).to_have_text("Pending")
    team.second.approve()
    expect(team.second.page.get_by_role("main")).to_contain_text(
        "Withdrawals above NGN 5,000,000.00 need 1 of Treasury, then 1 of Directors"
    )


def add_recipient(preparer: Newcomer, payment: steps.NewPayment) -> None:
    preparer.page.goto("/settings/recipients/")
    preparer.choose("Add recipient")
    preparer.page.get_by_label("Bank", exact=True).select_option(payment.bank_code)
    preparer.fill_in(account_number=payment.account_number, typed_name=payment.holder.title())
    preparer.fill_in(reason="The contract names it")
    preparer.submit()


def pay_first_recipient(preparer: Newcomer, payment: steps.NewPayment) -> None:
    """Choosing the recipient fills in the form."""
    preparer.page.goto("/operations/prepare/withdrawal/")
    preparer.page.get_by_label(re.compile("^Registered and recent recipients")).select_option(index=1)
    expect(preparer.page.get_by_label("Account number")).to_have_value(payment.account_number)
    preparer.page.get_by_label("Currency").select_option("NGN")
    preparer.fill_in(amount="6,500,000")
    preparer.submit()


def acknowledge_first_invitation(third: Newcomer) -> None:
    """That one person invited the second administrator alone is an incident until a third person has looked."""
    third.page.goto("/")
    third.choose("View incidents")
    third.page.get_by_role("link", name=re.compile("Ibrahim Sani")).click()
    third.page.get_by_label("What you found").fill("Spoke to both")
    third.press("Acknowledge incident")
    third.page.goto("/")
    expect(third.page.get_by_role("main")).not_to_contain_text("account change by one person alone")
