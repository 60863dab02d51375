"""Somebody who is new: from the command line by a one-time link to the first operation, and not beyond one's own."""

import base64
import re

import pytest
from django_otp.oath import TOTP
from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.browser.people import APPROVER, People
from tools.processes import Stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]
PASSWORD = "a kettle on the second floor"
FORGE = """([address, values]) => {
    const form = Object.assign(document.createElement("form"), {method: "post", action: address});
    for (const [name, value] of Object.entries(values)) {
        form.append(Object.assign(document.createElement("input"), {type: "hidden", name, value}));
    }
    document.body.append(form);
    form.submit();
}"""


LINK = re.compile(r"/account/set-up/[\w-]+/")
REASON = "Nobody else can do it on screen"


def hire(people: People, stack: Stack, name: str, *roles: str) -> str:
    """An account as an operator of the deployment makes one, acknowledged by an approver; the link for the person."""
    email = f"{name.split()[0].lower()}@countersign.example"
    given_roles = [word for role in roles for word in ("--role", role)]
    printed: str = stack.manage(
        "staff", "create", email, "--name", name, *given_roles, "--break-glass", REASON
    )
    acknowledge(people.page_of(APPROVER), name)
    return str(LINK.findall(printed)[0])


def acknowledge(page: Page, name: str) -> None:
    """Find the incident from the overview, and close it."""
    page.goto("/")
    expect(page.get_by_role("alert").filter(has_text="1 account change by one person alone")).to_be_visible()
    page.get_by_role("link", name="View incidents").first.click()
    page.get_by_role("link", name=f"The account of {name} was created").click()
    expect(page.get_by_role("main")).to_contain_text(REASON)
    page.get_by_label("What you found").fill("Agreed with the operator")
    page.get_by_role("button", name="Acknowledge incident").click()
    expect(page.get_by_role("main")).to_contain_text("acknowledged by Amara Okafor")
    page.goto("/")
    expect(page.get_by_role("main")).not_to_contain_text("break-glass")


def choose_password(page: Page, link: str) -> None:
    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Choose your password")
    page.get_by_label("New password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat new password").fill(PASSWORD)
    page.get_by_role("button", name="Save password").click()


def enrol(page: Page) -> None:
    """Read the secret off the page into an authenticator, and type what that shows."""
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up your authenticator")
    secret = page.locator("ol code").inner_text().replace(" ", "")
    page.get_by_label("Code").fill(f"{TOTP(base64.b32decode(secret)).token():06d}")
    page.get_by_role("button", name="Confirm and show recovery codes").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your recovery codes")


def begin_work(people: People, stack: Stack, name: str, *roles: str) -> Page:
    """A page of somebody who was hired, signed in for the first time and went through all of it."""
    page = people.browser()
    choose_password(page, hire(people, stack, name, *roles))
    enrol(page)
    page.get_by_role("button", name="I have stored these codes").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(name.split()[0])
    return page


def test_a_new_user_enrols_and_sees_the_recovery_codes_once(people: People, stack: Stack) -> None:
    page = people.browser()
    link = hire(people, stack, "Ronke Adeyemi", "Preparer")
    choose_password(page, link)
    page.goto("/operations/prepare/withdrawal/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up your authenticator")
    qr_code = page.get_by_role("img", name="QR code")
    assert qr_code.evaluate("image => image.complete && image.naturalWidth") > 0
    enrol(page)

    codes = page.locator(".codes li")
    expect(codes).to_have_count(10)
    assert len(set(codes.all_inner_texts())) == 10
    page.goto("/operations/")
    expect(page.get_by_role("main")).to_contain_text("You need ten recovery codes to continue")
    expect(codes).to_have_count(0)
    page.get_by_role("button", name="I have stored my codes").click()

    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Link not valid")

    payment = steps.new_payment()
    steps.prepare(page, payment)
    [row] = steps.exported(people.page_of(APPROVER), payment)
    assert (row["Status"], row["Prepared by"]) == ("pending", "Ronke Adeyemi")


def test_a_wrong_first_code_does_not_enrol_and_keeps_the_secret(people: People, stack: Stack) -> None:
    page = people.browser()
    choose_password(page, hire(people, stack, "Bola Cole", "Preparer"))
    secret = page.locator("ol code").inner_text()
    page.get_by_label("Code").fill("12345x")
    page.get_by_role("button", name="Confirm and show recovery codes").click()
    expect(page.get_by_label("Code")).to_have_accessible_description(re.compile("Nothing was set up"))
    expect(page.locator("ol code")).to_have_text(secret)
    page.goto("/operations/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up your authenticator")


@pytest.mark.parametrize(
    ("name", "action"), [("Ife Ojo", "approve"), ("Sade Ojo", "approve-and-send"), ("Tobi Ojo", "reject")]
)
def test_a_user_with_both_roles_cannot_approve_their_own_operation(
    people: People, stack: Stack, name: str, action: str
) -> None:
    page, payment = begin_work(people, stack, name, "Preparer", "Approver"), steps.new_payment()
    path = steps.prepare(page, payment)
    for button in ("Approve", "Approve and send", "Reject"):
        expect(steps.button(page, button)).to_have_count(0)

    page.evaluate(FORGE, [f"{path}{action}/", forged_decision(people, stack, page, path)])
    expect(page.get_by_role("alert")).to_contain_text("You prepared this operation, so another person must")
    expect(steps.badge(page)).to_have_text("Pending")
    [row] = steps.exported(page, payment)
    assert (row["Status"], row["Approved by"]) == ("pending", "")
    assert steps.debits(stack, payment) == []


def forged_decision(people: People, stack: Stack, page: Page, path: str) -> dict[str, str]:
    """All that the form of an approver holds, sent with one's own proof against forged forms."""
    approver = people.page_of(APPROVER)
    approver.goto(path)
    return {
        "csrfmiddlewaretoken": page.locator("[name=csrfmiddlewaretoken]").first.input_value(),
        "digest": approver.locator("[name=digest]").first.input_value(),
        "otp": stack.one_time_code(),
        "reason": "Mine after all",
    }
