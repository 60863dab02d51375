"""Every page that people can come to: who comes there, and how."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from playwright.sync_api import Page, expect

from backoffice.demo.people import DEMO_PASSWORD
from backoffice.operations.states import CLOSED, Status
from tests.browser import steps
from tests.browser.people import (
    ADMINISTRATOR,
    APPROVER,
    AUDITOR,
    PREPARER,
    People,
    give_password,
    wait_until,
)

NOBODY = "nobody"
SENT_TOGETHER = "00000000-0000-4000-8000-000000000000"
"""The id of an order to send several operations."""
OTHER_HOLDER = "JOHN BULL ENTERPRISES"
"""The holder that the bank names for an account whose approved holder is another."""
LONG_WORD = "Donaudampfschifffahrtsgesellschaft" * 6
_OPERATION = "/operations/00000000-0000-0000-0000-000000000000/"


@dataclass(frozen=True)
class ListedPage:
    """A page, and the person in front of it."""

    person: str
    name: str
    visit: Callable[[People, Page], object]

    def __str__(self) -> str:
        return f"{self.person.split()[0]}: {self.name}"


def at(path: str) -> Callable[[People, Page], object]:
    return lambda _office, page: page.goto(path)


def sending(path: str, button: str, **typed: str) -> Callable[[People, Page], object]:
    """What the page answers to its form, with these fields typed."""

    def visit(_office: People, page: Page) -> None:
        page.goto(path)
        for label, text in typed.items():
            page.get_by_label(label.replace("_", " "), exact=True).fill(text)
        with page.expect_navigation():
            steps.press(page, button)

    return visit


def searching(text: str) -> Callable[[People, Page], object]:
    """What the search finds, or why it does not search."""

    def visit(_office: People, page: Page) -> None:
        page.goto("/search/")
        page.get_by_label("Search for", exact=True).fill(text)
        page.locator("main form").first.evaluate("form => { form.noValidate = true; }")
        with page.expect_navigation():
            page.locator("main").get_by_role("button", name="Search", exact=True).click()

    return visit


def operation(status: Status, *, mine: bool = False) -> Callable[[People, Page], object]:
    """The oldest operation listed in this status."""
    tab = "done" if status in CLOSED else "open"
    address = f"/operations/?tab={tab}&status={status}{'&mine=on' if mine else ''}"

    def visit(_office: People, page: Page) -> None:
        listed = re.findall(r'class="row" href="([^"]+)"', page.request.get(address).text())
        page.goto(listed[-1])
        expect(steps.badge(page)).to_have_text(str(status.label))

    return visit


def first_listed(address: str, pattern: str) -> Callable[[People, Page], object]:
    """The first page of this pattern to which the list at the address links, once there is one."""

    def visit(_office: People, page: Page) -> None:
        page.goto(wait_until(lambda: re.findall(rf'href="({pattern})"', page.request.get(address).text()))[0])

    return visit


def payout_file(name: str) -> Callable[[People, Page], object]:
    """This person's file of payments."""

    def visit(_office: People, page: Page) -> None:
        page.goto("/operations/batches/files/")
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)

    return visit


def recipient_file(name: str) -> Callable[[People, Page], object]:
    """This person's file of recipients."""

    def visit(_office: People, page: Page) -> None:
        page.goto("/settings/recipients/import/")
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)

    return visit


def import_rows(people: People, page: Page) -> None:
    """The rows of the import that waits."""
    waiting("recipient_import")(people, page)
    page.goto(f"{page.url}recipients/")


def delegation(_office: People, page: Page) -> None:
    """The form with which an approver names a stand-in."""
    page.goto("/settings/delegations/")
    page.get_by_role("button", name="Name a stand-in…").click()
    expect(page.get_by_label("Stand-in")).to_be_visible()


def delegation_refused(people: People, page: Page) -> None:
    delegation(people, page)
    steps.press(page, "Review details")
    expect(page.locator("[aria-invalid=true]").first).to_be_visible()


def reviewed_delegation(people: People, page: Page) -> None:
    delegation(people, page)
    page.get_by_label("Stand-in").select_option(index=1)
    for label in ("First day", "Last day"):
        page.get_by_label(label).fill(str(datetime.now(UTC).date() + timedelta(days=60)))
    page.get_by_label("Reason").fill("Annual leave")
    steps.press(page, "Review details")
    expect(steps.button(page, "Submit for approval")).to_be_visible()


def proposed_version(people: People, page: Page) -> None:
    """The version of the policies that waits, beside the one in effect."""
    waiting("approval_policy")(people, page)
    page.goto(f"/settings/policies/proposals/{page.url.rstrip('/').rpartition('/')[2]}/")


def held_payment(_office: People, page: Page) -> None:
    """A withdrawal that is not sent because the bank names another holder than was approved."""
    listed = page.request.get("/operations/?tab=open&kind=withdrawal&status=approved").text()
    addresses = re.findall(r'class="row" href="([^"]+)"', listed)
    page.goto(next(one for one in addresses if OTHER_HOLDER in page.request.get(one).text()))
    expect(page.get_by_text(OTHER_HOLDER).first).to_be_visible()


def batch_rows(text: str) -> Callable[[People, Page], object]:
    """The rows of the batch made of the file with this name."""

    def visit(_office: People, page: Page) -> None:
        listed = page.request.get("/operations/?tab=all&kind=batch").text()
        addresses = re.findall(r'class="row" href="([^"]+)"', listed)
        [address] = [one for one in addresses if text in page.request.get(one).text()]
        page.goto(f"{address}rows/")

    return visit


def batch_to_retry(people: People, page: Page) -> None:
    """The unpaid rows of a batch. Its page offers to retry them once its only row was refused by the provider."""
    batch_rows("failed.csv")(people, page)
    page.get_by_role("button", name="Retry 1 unpaid row…").click()
    expect(page.get_by_role("heading", name="Retry 1 unpaid row")).to_be_visible()


def receipt(status: Status) -> Callable[[People, Page], object]:
    """The page to print of the oldest operation listed in this status."""

    def visit(people: People, page: Page) -> None:
        operation(status)(people, page)
        page.goto(f"{page.url}receipt/")

    return visit


def case(status: Status) -> Callable[[People, Page], object]:
    """The evidence of the oldest operation listed in this status, read from the provider."""

    def visit(people: People, page: Page) -> None:
        operation(status)(people, page)
        page.goto(f"{page.url}case/")
        expect(page.locator(".asking")).to_have_count(0)

    return visit


def resolution(people: People, page: Page) -> None:
    """The form that says of an operation in review that it did not happen."""
    case(Status.REVIEW)(people, page)
    page.get_by_role("button", name="Resolve as not executed…").click()
    expect(page.get_by_label("Not executed")).to_be_checked()


def several(decision: str, press: str = "") -> Callable[[People, Page], object]:
    """What is asked before all operations are decided that wait on the first page; and what if nothing is typed."""

    def visit(_office: People, page: Page) -> None:
        listed = page.request.get("/operations/?tab=waiting").text()
        chosen = re.findall(r'name="operation" value="([^"]+)"', listed)
        assert chosen
        page.goto(f"/operations/{decision}/?" + "&".join(f"operation={one}" for one in chosen))
        if press:
            page.locator("main form").evaluate("form => { form.noValidate = true; }")
            page.get_by_role("button", name=press).click()
            expect(page.locator("[aria-invalid=true]")).to_have_count(1)

    return visit


def invite_two(_office: People, page: Page) -> None:
    page.goto("/settings/team/invite/")
    steps.press(page, "Add another person")
    expect(page.locator("#id_p2-full_name")).to_be_focused()
    for number, name in enumerate(("Sade", "Uche"), 1):
        page.locator(f"#id_p{number}-full_name").fill(f"{name} Ojo")
        page.locator(f"#id_p{number}-email").fill(f"{name.lower()}@countersign.example")
    page.locator("#id_reason").fill("They join on Monday")
    steps.press(page, "Submit for approval")
    expect(page.get_by_role("heading", name="2 invitations prepared")).to_be_visible()


def waiting(kind: str) -> Callable[[People, Page], object]:
    """An operation of this kind that the demo left pending."""

    def visit(_office: People, page: Page) -> None:
        listed = page.request.get(f"/operations/?tab=open&status=pending&kind={kind}").text()
        page.goto(re.findall(r'class="row" href="([^"]+)"', listed)[-1])
        expect(steps.badge(page)).to_have_text("Pending")

    return visit


def long_words(people: People, page: Page) -> None:
    """An operation that somebody rejected without ever pressing the space bar."""
    page.goto(steps.prepared(people, PREPARER, steps.new_payment()))
    page.get_by_text("Reject…").click()
    page.get_by_label("Reason").fill(LONG_WORD)
    steps.press(page, "Reject")
    expect(steps.badge(page)).to_have_text("Rejected")


def refused_rejection(people: People, page: Page) -> None:
    page.goto(steps.prepared(people, PREPARER, steps.new_payment()))
    page.get_by_text("Reject…").click()
    page.get_by_label("Reason").fill(" ")
    steps.press(page, "Reject")
    expect(page.locator("[aria-invalid=true]")).to_have_count(1)


def checked_account(_office: People, page: Page) -> None:
    steps.fill_in(page, steps.new_payment(), typed_name=LONG_WORD[:120])
    expect(page.get_by_label("Reason for the mismatch")).to_be_visible()


def reviewed(_office: People, page: Page) -> None:
    payment = steps.new_payment()
    steps.fill_in(page, payment)
    steps.review(page, payment)


def recipient_refused(_people: People, page: Page) -> None:
    """A recipient under the longest word that goes in, without a reason."""
    page.goto("/operations/prepare/recipient/?change=add&type=user")
    page.get_by_label("Recipient's username").fill("ngozi.eze")
    page.get_by_label("Name", exact=True).fill(LONG_WORD[:60])
    steps.press(page, "Review details")
    expect(page.locator("[aria-invalid=true]")).to_have_count(1)


def exports_of_long_words(_office: People, page: Page) -> None:
    """What was made, narrowed by the longest word that goes in."""
    page.goto(f"/reports/operations/?text={LONG_WORD[:190]}")
    steps.press(page, "Export in background")
    page.wait_for_url("**/reports/exports/*/")
    page.goto("/reports/exports/")
    expect(page.get_by_text(LONG_WORD[:190])).to_be_visible()


def new_recovery_codes(people: People, page: Page) -> None:
    """They are stored at once, because nobody may go on before that, not even somebody who has to sign in again."""
    with people.screenless_browser_of(PREPARER) as browser:
        page.goto("/account/recovery-codes/")
        page.get_by_label("Current password").fill(DEMO_PASSWORD)
        steps.press(page, "Generate ten new codes")
        expect(page.locator(".codes li")).to_have_count(10)
        browser.submit(browser.get("/account/recovery-codes/"), "/account/recovery-codes/stored/")


def form_out_of_date(_office: People, page: Page) -> None:
    page.goto("/account/sign-in/")
    page.locator("[name=csrfmiddlewaretoken]").first.evaluate("field => field.value = ''")
    page.get_by_label("Email address").fill("somebody@countersign.example")
    page.get_by_label("Password").fill("of no importance")
    steps.press(page, "Continue")
    expect(page.get_by_role("heading", level=1)).to_have_text("This form is out of date")


PAGES = [
    ListedPage(NOBODY, "sign-in", at("/account/sign-in/")),
    ListedPage(NOBODY, "sign-in for a page", at("/operations/?tab=done")),
    ListedPage(
        NOBODY,
        "sign-in refused",
        sending("/account/sign-in/", "Continue", **{"Email address": "somebody@countersign.example"}),
    ),
    ListedPage(NOBODY, "form out of date", form_out_of_date),
    ListedPage(NOBODY, "second factor", lambda _office, page: give_password(page, ADMINISTRATOR)),
    ListedPage(PREPARER, "overview", at("/")),
    ListedPage(PREPARER, "open operations", at("/operations/")),
    ListedPage(PREPARER, "filters that nothing fits", at("/operations/?tab=done&text=nobody&currency=USD")),
    ListedPage(
        PREPARER, "filters that make no sense", at("/operations/?tab=done&since=yesterday&status=lost")
    ),
    ListedPage(PREPARER, "own pending operation", operation(Status.PENDING, mine=True)),
    ListedPage(PREPARER, "rejected operation", operation(Status.REJECTED)),
    ListedPage(PREPARER, "unknown outcomes", at("/reconciliation/unknown/")),
    ListedPage(PREPARER, "incidents", at("/reconciliation/incidents/")),
    ListedPage(PREPARER, "reconciliation", at("/reconciliation/")),
    ListedPage(
        PREPARER, "reconciliation that nothing fits", at("/reconciliation/?result=missing_at_provider")
    ),
    ListedPage(PREPARER, "pause", at("/operations/pause/")),
    ListedPage(PREPARER, "pause refused", sending("/operations/pause/", "Pause payments")),
    ListedPage(PREPARER, "resumption of nothing", at("/operations/prepare/resume/")),
    ListedPage(PREPARER, "case in review", case(Status.REVIEW)),
    ListedPage(PREPARER, "resolution", resolution),
    ListedPage(PREPARER, "withdrawal", at("/operations/prepare/withdrawal/")),
    ListedPage(
        PREPARER,
        "withdrawal refused",
        sending("/operations/prepare/withdrawal/", "Review details", Amount="1e5"),
    ),
    ListedPage(PREPARER, "withdrawal with another name", checked_account),
    ListedPage(PREPARER, "review", reviewed),
    ListedPage(PREPARER, "recipients", at("/settings/recipients/")),
    ListedPage(PREPARER, "recipients that nothing fits", at("/settings/recipients/?q=nobody")),
    ListedPage(PREPARER, "import recipients", at("/settings/recipients/import/")),
    ListedPage(PREPARER, "columns of recipients", recipient_file("recipient-columns.csv")),
    ListedPage(PREPARER, "recipients with errors", recipient_file("recipient-errors.csv")),
    ListedPage(PREPARER, "valid recipients", recipient_file("recipient-valid.csv")),
    ListedPage(
        PREPARER,
        "a recipient",
        first_listed("/settings/recipients/?q=Harbour", r"/settings/recipients/[0-9a-f-]{36}/"),
    ),
    ListedPage(PREPARER, "a new recipient", at("/operations/prepare/recipient/?change=add")),
    ListedPage(PREPARER, "a new address", at("/operations/prepare/recipient/?change=add&type=address")),
    ListedPage(PREPARER, "recipient refused", recipient_refused),
    ListedPage(PREPARER, "balances", at("/money/balances/")),
    ListedPage(PREPARER, "transactions", at("/transactions/")),
    ListedPage(PREPARER, "transactions that no filter fits", at("/transactions/?currency=EUR")),
    ListedPage(PREPARER, "bank accounts", at("/money/bank-accounts/")),
    ListedPage(
        PREPARER, "account refused", sending("/money/bank-accounts/", "Look up name", Account_number="12")
    ),
    ListedPage(PREPARER, "conversion", at("/operations/prepare/conversion/")),
    ListedPage(PREPARER, "transfer", at("/operations/prepare/transfer/")),
    ListedPage(PREPARER, "wallet transfer", at("/operations/prepare/wallet_transfer/")),
    ListedPage(
        PREPARER,
        "wallet transfer refused",
        sending("/operations/prepare/wallet_transfer/", "Review details", Address="0x12"),
    ),
    ListedPage(PREPARER, "payment", at("/operations/prepare/payment/")),
    ListedPage(
        PREPARER,
        "payment refused",
        sending("/operations/prepare/payment/", "Review details"),
    ),
    ListedPage(PREPARER, "provider summary", at("/transactions/summary/")),
    ListedPage(PREPARER, "wallets", at("/money/wallets/")),
    ListedPage(PREPARER, "payments", at("/operations/off-ramp-payments/")),
    ListedPage(PREPARER, "payments from a file", at("/operations/batches/files/")),
    ListedPage(PREPARER, "columns of a file", payout_file("columns.csv")),
    ListedPage(PREPARER, "file with errors", payout_file("errors.csv")),
    ListedPage(PREPARER, "valid file", payout_file("valid.csv")),
    ListedPage(PREPARER, "submitted file", payout_file("pending.csv")),
    ListedPage(PREPARER, "unpaid rows", batch_to_retry),
    ListedPage(APPROVER, "waiting batch", waiting("batch")),
    ListedPage(APPROVER, "rows of a waiting batch", batch_rows("pending.csv")),
    ListedPage(APPROVER, "rows of an approved batch", batch_rows("approved.csv")),
    ListedPage(APPROVER, "waiting import", waiting("recipient_import")),
    ListedPage(APPROVER, "rows of a waiting import", import_rows),
    ListedPage(APPROVER, "waiting recipient", waiting("recipient")),
    ListedPage(APPROVER, "payment to another holder", held_payment),
    ListedPage(APPROVER, "delegations", at("/settings/delegations/")),
    ListedPage(APPROVER, "delegation", delegation),
    ListedPage(APPROVER, "delegation refused", delegation_refused),
    ListedPage(APPROVER, "delegation to review", reviewed_delegation),
    ListedPage(PREPARER, "operations of a kind", at("/operations/withdrawals/?since=2026-01-01&text=o")),
    ListedPage(PREPARER, "not allowed", at("/settings/audit/")),
    ListedPage(PREPARER, "nothing there", at(_OPERATION)),
    ListedPage(PREPARER, "keyboard shortcuts", at("/account/shortcuts/")),
    ListedPage(PREPARER, "my account", at("/account/")),
    ListedPage(PREPARER, "password", at("/account/password/")),
    ListedPage(PREPARER, "password refused", sending("/account/password/", "Change password")),
    ListedPage(PREPARER, "authenticator", at("/account/authenticator/")),
    ListedPage(PREPARER, "recovery codes", at("/account/recovery-codes/")),
    ListedPage(PREPARER, "new recovery codes", new_recovery_codes),
    ListedPage(APPROVER, "overview", at("/")),
    ListedPage(APPROVER, "waiting operations", at("/operations/?tab=waiting")),
    ListedPage(APPROVER, "done operations", at("/operations/?tab=done")),
    ListedPage(APPROVER, "several to approve", several("approve")),
    ListedPage(APPROVER, "several to reject", several("reject")),
    ListedPage(APPROVER, "several rejections refused", several("reject", press="Reject ")),
    ListedPage(APPROVER, "several to send", at("/operations/send/?tab=waiting")),
    ListedPage(APPROVER, "none to send", at("/operations/send/?operation=W-000000")),
    ListedPage(APPROVER, "sent together", at(f"/operations/send/{SENT_TOGETHER}/")),
    ListedPage(APPROVER, "view to save", at("/operations/views/?tab=done&currency=NGN")),
    ListedPage(APPROVER, "search", at("/search/")),
    ListedPage(APPROVER, "found", searching("access")),
    ListedPage(APPROVER, "search refused", searching("x")),
    ListedPage(ADMINISTRATOR, "people found", searching("or")),
    *[ListedPage(APPROVER, f"{status} operation", operation(status)) for status in Status],
    *[
        ListedPage(APPROVER, f"waiting {kind}", waiting(kind))
        for kind in ("transfer", "wallet_transfer", "payment", "callback_url")
    ],
    ListedPage(
        APPROVER, "an incident", first_listed("/reconciliation/incidents/", r"/reconciliation/incidents/\d+/")
    ),
    ListedPage(APPROVER, "rejection refused", refused_rejection),
    ListedPage(APPROVER, "long words", long_words),
    ListedPage(APPROVER, "reports", at("/reports/")),
    ListedPage(APPROVER, "report refused", at("/reports/operations.csv?since=yesterday")),
    ListedPage(APPROVER, "a report", at("/reports/transactions/")),
    ListedPage(APPROVER, "no export", at("/reports/exports/")),
    ListedPage(APPROVER, "an export", sending("/reports/operations/", "Export in background")),
    ListedPage(APPROVER, "exports", exports_of_long_words),
    ListedPage(APPROVER, "no schedule", at("/reports/schedules/")),
    ListedPage(APPROVER, "a schedule", at("/reports/operations/schedule/")),
    ListedPage(
        APPROVER,
        "schedule refused",
        sending("/reports/operations/schedule/", "Save schedule", Time_zone="Atlantis"),
    ),
    ListedPage(AUDITOR, "overview", at("/")),
    ListedPage(AUDITOR, "pending operation", operation(Status.PENDING)),
    ListedPage(AUDITOR, "statements", at("/money/statements/")),
    ListedPage(AUDITOR, "a statement", at("/money/statements/?currency=NGN")),
    ListedPage(AUDITOR, "balance continuity", at("/reconciliation/continuity/")),
    ListedPage(AUDITOR, "transaction", first_listed("/transactions/", r"/transactions/\d+/")),
    ListedPage(AUDITOR, "receipt", receipt(Status.SUCCEEDED)),
    ListedPage(AUDITOR, "record", receipt(Status.UNKNOWN)),
    ListedPage(AUDITOR, "reports", at("/reports/")),
    ListedPage(AUDITOR, "audit log", at("/settings/audit/")),
    ListedPage(AUDITOR, "audit log without entries", at("/settings/audit/?about=unheard-of")),
    ListedPage(AUDITOR, "verdict", sending("/settings/audit/", "Verify log")),
    ListedPage(AUDITOR, "system", at("/settings/system/")),
    ListedPage(ADMINISTRATOR, "overview", at("/")),
    ListedPage(ADMINISTRATOR, "open operations", at("/operations/")),
    ListedPage(ADMINISTRATOR, "audit log", at("/settings/audit/?group=operation")),
    ListedPage(ADMINISTRATOR, "bank accounts", at("/money/bank-accounts/")),
    ListedPage(ADMINISTRATOR, "new bank account", at("/operations/prepare/bank_account/")),
    ListedPage(ADMINISTRATOR, "webhooks", at("/settings/webhooks/")),
    ListedPage(
        ADMINISTRATOR, "a webhook delivery", first_listed("/settings/webhooks/", r"/settings/webhooks/\d+/")
    ),
    ListedPage(ADMINISTRATOR, "new callback address", at("/operations/prepare/callback_url/")),
    ListedPage(ADMINISTRATOR, "team", at("/settings/team/")),
    ListedPage(ADMINISTRATOR, "team groups", at("/settings/team/groups/")),
    ListedPage(ADMINISTRATOR, "team access review", at("/settings/team/access-review/")),
    ListedPage(ADMINISTRATOR, "team person", first_listed("/settings/team/", r"/settings/team/\d+/")),
    ListedPage(ADMINISTRATOR, "team invitation", at("/settings/team/invite/")),
    ListedPage(
        ADMINISTRATOR,
        "team invitation refused",
        sending("/settings/team/invite/", "Submit for approval", Full_name="Sade Ojo"),
    ),
    ListedPage(ADMINISTRATOR, "team invitations prepared", invite_two),
    ListedPage(ADMINISTRATOR, "team links to pass on", at("/settings/team/links/")),
    ListedPage(ADMINISTRATOR, "team start codes to pass on", at("/settings/team/start-codes/")),
    ListedPage(ADMINISTRATOR, "my account", at("/account/")),
    ListedPage(ADMINISTRATOR, "notifications", at("/account/notifications/")),
    ListedPage(ADMINISTRATOR, "undelivered notifications", at("/settings/system/notifications/")),
    ListedPage(ADMINISTRATOR, "waiting invitation", waiting("staff_change")),
    ListedPage(ADMINISTRATOR, "waiting version of the policies", waiting("approval_policy")),
    ListedPage(ADMINISTRATOR, "old and new version of the policies", proposed_version),
    ListedPage(ADMINISTRATOR, "approval policies", at("/settings/policies/")),
    ListedPage(ADMINISTRATOR, "new version of the policies", at("/settings/policies/draft/")),
    ListedPage(ADMINISTRATOR, "review of a new version", at("/settings/policies/draft/review/")),
    ListedPage(ADMINISTRATOR, "new rule", at("/settings/policies/draft/rules/new/")),
    ListedPage(ADMINISTRATOR, "edited rule", at("/settings/policies/draft/rules/1/")),
    ListedPage(ADMINISTRATOR, "lists of the policies", at("/settings/policies/draft/lists/")),
    ListedPage(ADMINISTRATOR, "requirements for recipients", at("/settings/policies/draft/recipients/")),
    ListedPage(ADMINISTRATOR, "replay of the policies", at("/settings/policies/draft/replay/")),
    ListedPage(
        ADMINISTRATOR,
        "operation to try",
        at("/settings/policies/try/?kind=withdrawal&currency=NGN&amount=20000000&preparer=1"),
    ),
    ListedPage(ADMINISTRATOR, "API keys", at("/settings/api-keys/?now=1")),
    ListedPage(ADMINISTRATOR, "guided rotation", at("/settings/api-keys/rotation/")),
    ListedPage(ADMINISTRATOR, "new API key", at("/operations/prepare/api_key_create/")),
    ListedPage(
        APPROVER, "no secret to show", at("/settings/api-keys/secret/00000000-0000-0000-0000-000000000000/")
    ),
]
