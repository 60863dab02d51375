"""Every page that people can come to: who comes there, and how."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page, expect

from backoffice.operations.states import CLOSED, Status
from tests.browser import steps
from tests.browser.office import (
    ADMINISTRATOR,
    AUDITOR,
    CHECKER,
    MAKER,
    Office,
    give_password,
)

NOBODY = "nobody"
LONG_WORD = "Donaudampfschifffahrtsgesellschaft" * 6
_OPERATION = "/operations/00000000-0000-0000-0000-000000000000/"


@dataclass(frozen=True)
class Place:
    """A page, and the person in front of it."""

    person: str
    name: str
    come: Callable[[Office, Page], object]

    def __str__(self) -> str:
        return f"{self.person.split()[0]}: {self.name}"


def at(path: str) -> Callable[[Office, Page], object]:
    return lambda _office, page: page.goto(path)


def sending(path: str, button: str, **typed: str) -> Callable[[Office, Page], object]:
    """What the page answers to its form, with these fields typed."""

    def come(_office: Office, page: Page) -> None:
        page.goto(path)
        for label, text in typed.items():
            page.get_by_label(label.replace("_", " "), exact=True).fill(text)
        steps.press(page, button)
        page.wait_for_load_state()

    return come


def searching(text: str) -> Callable[[Office, Page], object]:
    """What the search finds, or why it does not look."""

    def come(_office: Office, page: Page) -> None:
        page.goto("/search/")
        page.get_by_label("Search for", exact=True).fill(text)
        page.locator("main").get_by_role("button", name="Search", exact=True).click()
        page.wait_for_load_state()

    return come


def operation(status: Status, *, mine: bool = False) -> Callable[[Office, Page], object]:
    """The oldest operation listed in this status."""
    tab = "done" if status in CLOSED else "open"
    address = f"/operations/?tab={tab}&status={status}{'&mine=on' if mine else ''}"

    def come(_office: Office, page: Page) -> None:
        listed = re.findall(r'class="row" href="([^"]+)"', page.request.get(address).text())
        page.goto(listed[-1])
        expect(steps.badge(page)).to_have_text(status.label)

    return come


def case(status: Status) -> Callable[[Office, Page], object]:
    """The evidence of the oldest operation listed in this status, told by the service."""

    def come(office: Office, page: Page) -> None:
        operation(status)(office, page)
        page.goto(f"{page.url}case/")
        expect(page.locator(".asking")).to_have_count(0)

    return come


def resolution(office: Office, page: Page) -> None:
    """The form that says of an operation in review that it did not happen."""
    case(Status.REVIEW)(office, page)
    page.get_by_role("button", name="It did not happen…").click()
    expect(page.get_by_label("It did not happen")).to_be_checked()


def several(decision: str, press: str = "") -> Callable[[Office, Page], object]:
    """What is asked before all operations are decided that wait on the first page; and what if nothing is typed."""

    def come(_office: Office, page: Page) -> None:
        listed = page.request.get("/operations/?tab=waiting").text()
        chosen = re.findall(r'name="operation" value="([^"]+)"', listed)
        assert chosen
        page.goto(f"/operations/{decision}/?" + "&".join(f"operation={one}" for one in chosen))
        if press:
            page.locator("main form").evaluate("form => { form.noValidate = true; }")
            page.get_by_role("button", name=press).click()
            expect(page.locator("[aria-invalid=true]")).to_have_count(1)

    return come


def waiting(kind: str) -> Callable[[Office, Page], object]:
    """An operation of this kind that the demo left to be countersigned."""

    def come(_office: Office, page: Page) -> None:
        listed = page.request.get(f"/operations/?tab=open&status=pending&kind={kind}").text()
        page.goto(re.findall(r'class="row" href="([^"]+)"', listed)[-1])
        expect(steps.badge(page)).to_have_text("Pending")

    return come


def long_words(office: Office, page: Page) -> None:
    """An operation that somebody rejected without ever pressing the space bar."""
    page.goto(steps.prepared(office, MAKER, steps.new_payment()))
    page.get_by_text("Reject…").click()
    page.get_by_label("Reason").fill(LONG_WORD)
    steps.press(page, "Reject")
    expect(steps.badge(page)).to_have_text("Rejected")


def refused_rejection(office: Office, page: Page) -> None:
    page.goto(steps.prepared(office, MAKER, steps.new_payment()))
    page.get_by_text("Reject…").click()
    page.get_by_label("Reason").fill(" ")
    steps.press(page, "Reject")
    expect(page.locator("[aria-invalid=true]")).to_have_count(1)


def checked_account(_office: Office, page: Page) -> None:
    steps.fill_in(page, steps.new_payment(), typed_name=LONG_WORD[:120])
    expect(page.get_by_label("Why the other name is right")).to_be_visible()


def reviewed(_office: Office, page: Page) -> None:
    payment = steps.new_payment()
    steps.fill_in(page, payment)
    steps.review(page, payment)


def saved_account(office: Office, page: Page) -> None:
    """One that is refused a name; it is saved from an operation first, under the longest word that goes in."""
    page.goto(steps.prepared(office, MAKER, steps.new_payment()))
    page.get_by_text("Save the account…").click()
    page.get_by_label("Name of the account").fill(LONG_WORD[:60])
    steps.press(page, "Save the account")
    page.goto("/operations/accounts/")
    page.get_by_role("link", name=f"Change {LONG_WORD[:60]}").click()
    page.get_by_label("Name of the account").fill("")
    steps.press(page, "Rename")
    expect(page.locator("[aria-invalid=true]")).to_have_count(1)


def exports_of_long_words(_office: Office, page: Page) -> None:
    """What was made, narrowed by the longest word that goes in."""
    page.goto(f"/reports/operations/?text={LONG_WORD[:190]}")
    steps.press(page, "Make it in the background")
    page.wait_for_url("**/reports/exports/*/")
    page.goto("/reports/exports/")
    expect(page.get_by_text(LONG_WORD[:190])).to_be_visible()


def new_recovery_codes(office: Office, page: Page) -> None:
    """They are stored at once, because nobody may go on before that, not even somebody who has to sign in again."""
    with office.screenless_browser_of(MAKER) as browser:
        page.goto("/account/recovery-codes/")
        steps.press(page, "Draw ten new codes")
        expect(page.locator(".codes li")).to_have_count(10)
        browser.send(browser.get("/account/recovery-codes/"), "/account/recovery-codes/kept/")


def form_out_of_date(_office: Office, page: Page) -> None:
    page.goto("/account/sign-in/")
    page.locator("[name=csrfmiddlewaretoken]").first.evaluate("field => field.value = ''")
    page.get_by_label("E-mail address").fill("somebody@countersign.example")
    page.get_by_label("Password").fill("of no importance")
    steps.press(page, "Continue")
    expect(page.get_by_role("heading", level=1)).to_have_text("This form is out of date")


PLACES = [
    Place(NOBODY, "sign-in", at("/account/sign-in/")),
    Place(NOBODY, "sign-in for a page", at("/operations/?tab=done")),
    Place(
        NOBODY,
        "sign-in refused",
        sending("/account/sign-in/", "Continue", **{"E-mail address": "somebody@countersign.example"}),
    ),
    Place(NOBODY, "form out of date", form_out_of_date),
    Place(NOBODY, "second factor", lambda _office, page: give_password(page, ADMINISTRATOR)),
    Place(MAKER, "overview", at("/")),
    Place(MAKER, "open operations", at("/operations/")),
    Place(MAKER, "filters that nothing fits", at("/operations/?tab=done&text=nobody&currency=USD")),
    Place(MAKER, "filters that make no sense", at("/operations/?tab=done&since=yesterday&status=lost")),
    Place(MAKER, "own pending operation", operation(Status.PENDING, mine=True)),
    Place(MAKER, "rejected operation", operation(Status.REJECTED)),
    Place(MAKER, "unknown outcomes", at("/operations/unknown/")),
    Place(MAKER, "incidents", at("/operations/incidents/")),
    Place(MAKER, "reconciliation", at("/reconciliation/")),
    Place(MAKER, "reconciliation that nothing fits", at("/reconciliation/?verdict=missing_at_provider")),
    Place(MAKER, "pause", at("/operations/pause/")),
    Place(MAKER, "pause refused", sending("/operations/pause/", "Stop all sending now")),
    Place(MAKER, "resumption of nothing", at("/operations/prepare/resume/")),
    Place(MAKER, "case in review", case(Status.REVIEW)),
    Place(MAKER, "resolution", resolution),
    Place(MAKER, "withdrawal", at("/operations/prepare/withdrawal/")),
    Place(MAKER, "withdrawal refused", sending("/operations/prepare/withdrawal/", "Review…", Amount="1e5")),
    Place(MAKER, "withdrawal with another name", checked_account),
    Place(MAKER, "review", reviewed),
    Place(MAKER, "saved accounts", at("/operations/accounts/")),
    Place(MAKER, "a saved account", saved_account),
    Place(MAKER, "balances", at("/money/balances/")),
    Place(MAKER, "transactions", at("/transactions/")),
    Place(MAKER, "transactions that no filter fits", at("/transactions/?currency=EUR")),
    Place(MAKER, "bank accounts", at("/money/bank-accounts/")),
    Place(MAKER, "account refused", sending("/money/bank-accounts/", "Show the holder", Account_number="12")),
    Place(MAKER, "wallet transfer", at("/operations/prepare/wallet_transfer/")),
    Place(
        MAKER,
        "wallet transfer refused",
        sending("/operations/prepare/wallet_transfer/", "Review…", Network="TRC20", Address="0x12"),
    ),
    Place(MAKER, "payment", at("/operations/prepare/payment/")),
    Place(
        MAKER, "payment refused", sending("/operations/prepare/payment/", "Review…", Country_of_the_bank="NG")
    ),
    Place(MAKER, "wallets", at("/money/wallets/")),
    Place(MAKER, "payments", at("/payments/")),
    Place(MAKER, "not allowed", at("/audit/")),
    Place(MAKER, "nothing there", at(_OPERATION)),
    Place(MAKER, "my account", at("/account/")),
    Place(MAKER, "password", at("/account/password/")),
    Place(MAKER, "password refused", sending("/account/password/", "Change the password")),
    Place(MAKER, "authenticator", at("/account/authenticator/")),
    Place(MAKER, "recovery codes", at("/account/recovery-codes/")),
    Place(MAKER, "new recovery codes", new_recovery_codes),
    Place(CHECKER, "overview", at("/")),
    Place(CHECKER, "waiting operations", at("/operations/?tab=waiting")),
    Place(CHECKER, "done operations", at("/operations/?tab=done")),
    Place(CHECKER, "several to approve", several("approve")),
    Place(CHECKER, "several to reject", several("reject")),
    Place(CHECKER, "several rejections refused", several("reject", press="Reject ")),
    Place(CHECKER, "filters to save", at("/operations/filters/?tab=done&currency=NGN")),
    Place(CHECKER, "search", at("/search/")),
    Place(CHECKER, "found", searching("access")),
    Place(CHECKER, "search refused", searching("x")),
    Place(ADMINISTRATOR, "people found", searching("or")),
    *[Place(CHECKER, f"{status} operation", operation(status)) for status in Status],
    *[
        Place(CHECKER, f"waiting {kind}", waiting(kind))
        for kind in ("transfer", "wallet_transfer", "payment", "callback_url")
    ],
    Place(CHECKER, "rejection refused", refused_rejection),
    Place(CHECKER, "long words", long_words),
    Place(CHECKER, "reports", at("/reports/")),
    Place(CHECKER, "report refused", at("/reports/operations.csv?since=yesterday")),
    Place(CHECKER, "a report", at("/reports/transactions/")),
    Place(CHECKER, "no export", at("/reports/exports/")),
    Place(CHECKER, "an export", sending("/reports/operations/", "Make it in the background")),
    Place(CHECKER, "exports", exports_of_long_words),
    Place(CHECKER, "no schedule", at("/reports/schedules/")),
    Place(CHECKER, "a schedule", at("/reports/operations/schedule/")),
    Place(
        CHECKER,
        "schedule refused",
        sending("/reports/operations/schedule/", "Keep the schedule", Time_zone="Atlantis"),
    ),
    Place(AUDITOR, "overview", at("/")),
    Place(AUDITOR, "pending operation", operation(Status.PENDING)),
    Place(AUDITOR, "reports", at("/reports/")),
    Place(AUDITOR, "audit log", at("/audit/")),
    Place(AUDITOR, "audit log without entries", at("/audit/?about=nobody")),
    Place(AUDITOR, "verdict", sending("/audit/", "Verify")),
    Place(ADMINISTRATOR, "overview", at("/")),
    Place(ADMINISTRATOR, "open operations", at("/operations/")),
    Place(ADMINISTRATOR, "audit log", at("/audit/?group=operation")),
    Place(ADMINISTRATOR, "bank accounts", at("/money/bank-accounts/")),
    Place(ADMINISTRATOR, "new bank account", at("/operations/prepare/bank_account/")),
    Place(ADMINISTRATOR, "webhooks", at("/webhooks/")),
    Place(ADMINISTRATOR, "new callback address", at("/operations/prepare/callback_url/")),
    Place(ADMINISTRATOR, "my account", at("/account/")),
    Place(ADMINISTRATOR, "API keys", at("/keys/?now=1")),
    Place(ADMINISTRATOR, "guided rotation", at("/keys/rotation/")),
    Place(ADMINISTRATOR, "new API key", at("/operations/prepare/api_key_create/")),
    Place(CHECKER, "no secret to show", at("/keys/secret/00000000-0000-0000-0000-000000000000/")),
]
