"""The running products of the browser tests: the demo, and one with something for each page of `page_list`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from payments_gateway.profile.model import ProfileName
from tests.browser.page_list import OTHER_HOLDER, SENT_TOGETHER
from tests.browser.people import APPROVER, PREPARER
from tests.pseudo_language import write_catalogue
from tools.demo import UNRECOGNISED_TRANSACTION
from tools.processes import Stack, temporary_stack

WEBHOOKS_ON = """
from django.conf import settings
from django.urls import reverse
from backoffice.core.gateway import gateway
path = reverse("webhooks:receive", args=[settings.WEBHOOK_SECRET])
gateway().callbacks.set_url(f"{settings.PUBLIC_URL}{path}")
"""

ORDER_SENT_TOGETHER = f"""
from django.utils import timezone
from backoffice.accounts.models import User
from backoffice.operations.kinds.registry import local_kinds
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.operations import Operation
now = timezone.now()
order = BulkRelease.objects.create(
    pk="{SENT_TOGETHER}", released_by=User.objects.get(full_name="{APPROVER}"), created_at=now, confirmed_at=now,
    second_factor_at=now, is_pending=False,
)
sent = Operation.objects.exclude(status__in=["pending", "rejected"]).exclude(kind__in=local_kinds())
for position, operation in enumerate(sent[:60]):
    order.items.create(position=position, operation=operation, digest=operation.digest)
"""

PAYOUTS = f"""
from django.utils import timezone
from backoffice.accounts.models import User
from backoffice.operations.batches import checking, creation, files, submission
from backoffice.operations.workflow import approvals
preparer, approver = (User.objects.get(full_name=name) for name in ("{PREPARER}", "{APPROVER}"))
def uploaded(name, rows, kind="transfer", header="currency,amount,receiver_username,memo"):
    content = "\\n".join([header, *rows]).encode()
    return files.upload_file(actor=preparer, kind=kind, name=name, content=content, language="en")
def checked(name, rows, **options):
    file = uploaded(name, rows, **options)
    files.check_columns(file.pk, actor=preparer, mapping=file.mapping)
    checking.check_file(file.pk, seconds=60)
    return file
def batch(name, first, count):
    rows = [f"NGN,{{1000 + number}}.00,person.{{number}},Payroll" for number in range(first, first + count)]
    return submission.submit_file(checked(name, rows).pk, actor=preparer)
uploaded("columns.csv", ["NGN,1.00,person.1,Payroll"])
checked("errors.csv", ["NGN,1e5,person.1,Payroll", "EUR,2.00,,Payroll", "NGN,3.00,person.3,{"long" * 30}"])
checked("valid.csv", ["NGN,1.00,person.1,Payroll", "USD,2.00,person.2,Payroll"])
batch("pending.csv", 100, 60)
approved = batch("approved.csv", 200, 3)
approvals.approve_operation(
    approved.pk, actor=approver, digest=approved.digest, second_factor_at=timezone.now(),
    confirmation=approvals.ApproverConfirmation(f"{{sum(range(1200, 1203))}}.00"),
)
creation.create_operations(approved.pk)
failed = submission.submit_file(checked("failed.csv", ["NGN,99.00,nobody.here,Payroll"]).pk, actor=preparer)
approvals.approve_operation(
    failed.pk, actor=approver, digest=failed.digest, second_factor_at=timezone.now(),
    confirmation=approvals.ApproverConfirmation("99.00"),
)
creation.create_operations(failed.pk)
"""

ROW_THAT_FAILS = f"""
from django.utils import timezone
from backoffice.accounts.models import User
from backoffice.demo.people import sandbox_totp
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.models.operations import Operation
row = Operation.objects.get(recipient="nobody.here", batch_row__isnull=False)
approver = User.objects.get(full_name="{APPROVER}")
release_operation(row.pk, actor=approver, digest=row.digest, second_factor_at=timezone.now(), otp=sandbox_totp())
"""

RECIPIENTS = f"""
from backoffice.operations.batches import submission
from backoffice.operations.models.holds import HolderChange
from backoffice.operations.models.operations import Operation
kind = {{"kind": "recipient", "header": "type,name,account,bank_code,alias,currency,notes"}}
def user(number):
    return f"user,Supplier {{number}},supplier.{{number}},,Alias {{number}},NGN,Contract {{number}}"
uploaded("recipient-columns.csv", [user(1)], **kind)
checked("recipient-errors.csv", ["bank,Somebody,12,044,,,", "nobody,Somebody,12,,,,", user(2), user(2)], **kind)
checked("recipient-valid.csv", [user(3), user(4)], **kind)
pending = checked("recipient-pending.csv", [user(number) for number in range(5, 9)], **kind)
submission.submit_recipients(pending.pk, actor=preparer, reason="Suppliers of the season")
held = Operation.objects.filter(kind="withdrawal", status="approved").first()
HolderChange.objects.create(
    operation=held, approved_name=held.recipient, name="{OTHER_HOLDER}", found_at=timezone.now()
)
"""
"""After PAYOUTS: files of recipients, and an approved withdrawal whose holder has another name at the bank."""


@contextmanager
def demo_stack(
    folder: Path, profile: ProfileName, first_command: str = "", **variables: str
) -> Iterator[Stack]:
    """Everything that `make demo` runs, with its history and what this Python code adds to it. The provider accepts one
    one-time code several times here, and people hired with break-glass may decide at once.
    """
    reusable = folder / "profile.toml"
    reusable.write_text(f'profile = "{profile}"\notp_single_use = false\n')
    extra = {
        "COUNTERSIGN_BREAK_GLASS_RESTRICTION_HOURS": "0",
        "COUNTERSIGN_GATEWAY_PROFILE": str(reusable),
        **variables,
    }
    options = {"settle_after": 1.0, "profile": profile, "extra": extra, "first_command": first_command}
    with temporary_stack(folder, **options) as running:
        running.set_sandbox(token_reuse=True)
        yield running


@contextmanager
def stack_for_every_page(folder: Path, profile: ProfileName) -> Iterator[Stack]:
    """The provider delivers a webhook of a transaction here that no operation explains: that raises an incident. Pages
    are also in the language of brackets.
    """
    write_catalogue(folder / "locale")
    settings = {"DJANGO_SETTINGS_MODULE": "tests.browser.pseudo_settings"}
    with demo_stack(folder, profile, PAYOUTS + RECIPIENTS, **settings) as running:
        running.manage("shell", "--verbosity", "0", "--command", WEBHOOKS_ON + UNRECOGNISED_TRANSACTION)
        running.manage("shell", "--verbosity", "0", "--command", ORDER_SENT_TOGETHER + ROW_THAT_FAILS)
        yield running
