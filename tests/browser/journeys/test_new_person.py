"""Somebody who is new: from the command line to the first operation, and not beyond one's own."""

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


def hire(stack: Stack, name: str, *roles: str) -> str:
    """An account as an operator of the deployment makes one; its e-mail address."""
    email = f"{name.split()[0].lower()}@countersign.example"
    given_roles = [word for role in roles for word in ("--role", role)]
    stack.manage(
        "staff", "create", email, "--name", name, *given_roles, "--password-stdin", given=f"{PASSWORD}\n"
    )
    return email


def give_password(page: Page, email: str) -> None:
    page.goto("/account/sign-in/")
    page.get_by_label("Email address").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()


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
    give_password(page, hire(stack, name, *roles))
    enrol(page)
    page.get_by_role("button", name="I have stored these codes").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(name.split()[0])
    return page


def test_a_new_user_enrols_and_sees_the_recovery_codes_once(people: People, stack: Stack) -> None:
    page = people.browser()
    give_password(page, hire(stack, "Kemi Adeyemi", "Preparer"))
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

    payment = steps.new_payment()
    steps.prepare(page, payment)
    [row] = steps.exported(people.page_of(APPROVER), payment)
    assert (row["Status"], row["Prepared by"]) == ("pending", "Kemi Adeyemi")


def test_a_wrong_first_code_does_not_enrol_and_keeps_the_secret(people: People, stack: Stack) -> None:
    page = people.browser()
    give_password(page, hire(stack, "Bola Cole", "Preparer"))
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
