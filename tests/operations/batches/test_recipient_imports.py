"""Recipients from a file: every error beside its cell, one approval of another person, all of them or none."""

from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.ledger import accounts as ledger
from backoffice.operations import errors
from backoffice.operations.batches import submission
from backoffice.operations.kinds.recipient import RecipientChange
from backoffice.operations.models.batches import FileState, ImportedRow, RowFlag
from backoffice.operations.models.operations import Operation
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from backoffice.recipients.models import RecipientState, RecipientVersion
from backoffice.recipients.register import find_recipients, newest_versions, version_in_effect
from tests.append_only.triggers import lifted
from tests.operations.batches import payouts
from tests.operations.steps import status_of, text_of
from tests.policies.versions import levels, put_in_effect
from tests.recipients import recipient_files, registered
from tests.sandbox_process import SandboxProcess
from tools.processes import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = registered.ADDRESS
EXAMPLE = ROOT / "docs" / "operator" / "recipients-example.csv"
ADA = "bank,Ada Chidinma Obi,0123456789,044,,Her married name,Rent Lagos,NGN,Since May"


def test_the_example_of_the_documentation_has_no_error(preparer: User, sandbox: SandboxProcess) -> None:
    header, *rows = EXAMPLE.read_text().splitlines()
    file = recipient_files.checked(preparer, rows, header=header)
    assert (header, len(rows)) == (recipient_files.HEADER, 10)
    assert [row.errors for row in file.rows.order_by("number")] == [[]] * 10


def test_every_error_is_beside_its_cell_and_nothing_is_added(
    preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    registered.agreed(registered.user("known.one", name="Known One"), preparer, approver)
    file = recipient_files.checked(
        preparer,
        [
            "bank,Ada Obi,12345,044,,,,,",
            "iban,Ada Obi,0123456789,044,,,,,",
            "address,Ada Obi,not-an-address,,TRC20,,,,",
            "user,,someone,,,,,EUR,",
            "user,Known One,known.one,,,,,,",
            "user,New,new.one,,,,,,",
            "user,New again,New.One,,,,,,",
            "iban,,,,,,,EUR,",
            "user,,known.one,,,,,EUR,",
            "bank,,12345,999,,,,EUR,",
            "user,,new.one,,,,,,",
        ],
    )
    found = {row.number: {name for name, _ in row.errors} for row in file.rows.order_by("number")}
    assert found == {
        2: {"account"},
        3: {"type"},
        4: {"account"},
        5: {"name", "currency"},
        6: {"account"},
        7: set(),
        8: {"account"},
        9: {"type", "name", "account", "currency"},
        10: {"name", "account", "currency"},
        11: {"name", "account", "bank_code", "currency"},
        12: {"name", "account"},
    }
    assert (file.state, file.error_count) == (FileState.CHECKED, 10)
    with pytest.raises(errors.FileNotReadyError):
        submission.submit_recipients(file.pk, actor=preparer, reason="They are right")
    assert newest_versions().count() == 1


def test_one_approval_of_another_person_adds_all(
    preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    retired = registered.agreed(registered.user("person.before", name="Before"), preparer, approver)
    registered.agreed(registered.changed(retired, RecipientChange.RETIRE), preparer, approver)
    rows = [ADA, f"address,Ngozi Eze,{ADDRESS},,TRC20,,,USDT,", "user,Before,person.before,,,,,,"]
    operation = recipient_files.prepared(preparer, rows)
    assert operation.status == Status.PENDING
    assert newest_versions().filter(state=RecipientState.APPROVED).count() == 0
    with pytest.raises(errors.PermissionMissingError):
        recipient_files.approve(operation, preparer)
    assert recipient_files.approve(operation, approver).status == Status.SUCCEEDED
    found = {one.key: one for one in newest_versions()}
    assert {one.state for one in found.values()} == {RecipientState.APPROVED}
    ada = found["bank:044:0123456789"]
    assert (ada.alias, ada.currency, ada.notes) == (
        "Rent Lagos",
        "NGN",
        "Since May · Ada Chidinma Obi: Her married name",
    )
    assert found["user:person.before"].number == 3
    assert all((one.operation, one.is_altered) == (operation.pk, False) for one in found.values())
    entry = Entry.objects.get(action=Action.RECIPIENTS_IMPORTED)
    assert entry.detail["rows"] == operation.payload["recipients_digest"]
    assert "altered_recipient" not in inspect(full=True).violations


def test_the_name_at_the_bank_is_read_for_each_row(preparer: User, sandbox: SandboxProcess) -> None:
    file = recipient_files.checked(preparer, ["bank,Somebody Else,0123456789,044,,,,,"])
    [row] = file.rows.all()
    assert [name for name, _ in row.errors] == ["name_reason"]
    file = recipient_files.checked(preparer, ["bank,Somebody Else,0123456789,044,,Married name,,,"])
    [row] = file.rows.all()
    assert (row.errors, row.flags) == ([], [RowFlag.NAME_DIFFERENT])


@pytest.mark.parametrize(
    ("row", "alias", "notes"),
    [
        ("bank,Lagos Supplies,0123456789,044,,Trades as,,,", "Lagos Supplies", "Trades as"),
        (
            "bank,Lagos Supplies,0123456789,044,,Trades as,Rent,,May",
            "Rent",
            "May · Lagos Supplies: Trades as",
        ),
        (
            "bank,Lagos Supplies,0123456789,044,,Trades as,LAGOS SUPPLIES Ltd,,",
            "LAGOS SUPPLIES Ltd",
            "Trades as",
        ),
        ("bank,Lagos\u00a0  Supplies,0123456789,044,,Trades as,,,", "Lagos Supplies", "Trades as"),
        ("user,Lagos Supplies,lagos.supplies,,,,,,", "", ""),
    ],
)
def test_a_recipient_is_found_by_the_name_in_the_file(
    preparer: User, approver: User, sandbox: SandboxProcess, row: str, alias: str, notes: str
) -> None:
    recipient_files.approve(recipient_files.prepared(preparer, [row]), approver)
    version = newest_versions().get()
    assert (version.alias, version.notes) == (alias, notes)
    assert list(find_recipients("lagos supplies")) == [version]


def test_a_name_by_which_the_name_at_the_bank_is_found_is_not_kept_beside_it(
    preparer: User, sandbox: SandboxProcess
) -> None:
    *names, last = ledger.resolve_account_holder("0123456789", "044").account_name.split()
    for typed, alias in ((" ".join(names), ""), (" ".join([last, *names]), " ".join([last, *names]))):
        [row] = recipient_files.checked(preparer, [f"bank,{typed},0123456789,044,,Checked,,,"]).rows.all()
        assert row.payload is not None
        assert row.payload["details"]["alias"] == alias


def test_a_name_and_a_reason_that_the_notes_cannot_hold_are_refused(
    preparer: User, sandbox: SandboxProcess
) -> None:
    row = f"bank,Lagos Supplies,0123456789,044,,{'r' * 180},Rent,,{'n' * 110}"
    [checked] = recipient_files.checked(preparer, [row]).rows.all()
    assert [name for name, _ in checked.errors] == ["notes"]


@pytest.mark.parametrize("bank", ["44", "Access Bank"])
def test_a_file_names_a_bank_as_a_spreadsheet_does(
    preparer: User, sandbox: SandboxProcess, bank: str
) -> None:
    file = recipient_files.checked(preparer, [ADA.replace("044", bank)])
    [row] = file.rows.all()
    assert (row.errors, row.cells["bank_code"]) == ([], "044")


def test_look_alikes_are_found_in_the_register_and_in_the_file_and_shown_first(
    sign_in: Callable[[Client, User], Client], preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    registered.agreed(registered.bank_account(number="0123456788", name="Old Supplier"), preparer, approver)
    registered.agreed(registered.user("ngozi.eze", name="Person 2"), preparer, approver)
    rows = [
        *recipient_files.users(2),
        ADA,
        "user,Ngozi E.,ngozi_eze,,,,,,",
        "user,Pia One,pia.one,,,,,,",
        "user,Pia Two,pia.onee,,,,,,",
    ]
    operation = recipient_files.prepared(preparer, rows)
    found = {row.number: set(row.flags) for row in operation.imported_rows.all()}
    assert found == {
        2: set(),
        3: {RowFlag.SAME_NAME},
        4: {RowFlag.SIMILAR_ACCOUNT, RowFlag.NAME_DIFFERENT},
        5: {RowFlag.SIMILAR_ACCOUNT},
        6: {RowFlag.SIMILAR_ACCOUNT},
        7: {RowFlag.SIMILAR_ACCOUNT},
    }
    assert (operation.payload["similar_accounts"], operation.payload["same_names"]) == (4, 1)
    client = sign_in(Client(), approver)
    text = text_of(client.get(f"/operations/{operation.pk}/recipients/"))
    assert text.index("0123456789") < text.index("person001117")
    assert "Old Supplier, 0123456788" in text
    assert "Row 7: Pia Two, pia.onee" in text
    first = text_of(client.get(f"/operations/{operation.pk}/recipients/?show=first"))
    assert "person001117" not in first
    assert "similar to that of another recipient: 4" in text_of(client.get(operation.get_absolute_url()))


def test_a_rejected_import_adds_nobody(preparer: User, approver: User) -> None:
    operation = recipient_files.prepared(preparer, recipient_files.users(3))
    approvals.reject_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        second_factor_at=Operation.objects.get(pk=operation.pk).prepared_at,
        reason="Two of them left",
    )
    assert not RecipientVersion.objects.exists()


def test_one_recipient_that_was_added_meanwhile_stops_the_whole_import(
    preparer: User, approver: User
) -> None:
    operation = recipient_files.prepared(preparer, recipient_files.users(3))
    taken = operation.imported_rows.get(number=3).payload["account"]
    registered.agreed(registered.user(taken, name="Person 2"), preparer, approver)
    with pytest.raises(errors.ImportOutdatedError, match="Person 2"):
        recipient_files.approve(operation, approver)
    assert status_of(operation) == Status.PENDING
    assert newest_versions().count() == 1


def test_a_file_that_is_outdated_when_it_is_submitted_is_checked_again(
    preparer: User, approver: User
) -> None:
    file = recipient_files.checked(preparer, recipient_files.users(2))
    taken = file.rows.first()
    assert taken is not None
    registered.agreed(registered.user(taken.cells["account"], name="Person 1"), preparer, approver)
    with pytest.raises(errors.ImportOutdatedError):
        submission.submit_recipients(file.pk, actor=preparer, reason="They are right")
    file.refresh_from_db()
    assert file.state == FileState.CHECKING
    assert not Operation.objects.filter(pk=file.pk).exists()


def test_rows_altered_after_submission_are_not_approved(preparer: User, approver: User) -> None:
    operation = recipient_files.prepared(preparer, recipient_files.users(2))
    row = operation.imported_rows.get(number=2)
    with pytest.raises(DatabaseError), transaction.atomic():
        ImportedRow.objects.filter(pk=row.pk).update(payload={**row.payload, "account": "mallory"})
    with lifted(connection):
        ImportedRow.objects.filter(pk=row.pk).update(
            payload={**row.payload, "account": "mallory", "key": "user:mallory"}
        )
    with pytest.raises(errors.AlteredRecordError):
        recipient_files.approve(operation, approver)
    assert not RecipientVersion.objects.exists()


def test_no_row_is_added_after_the_decision(preparer: User, approver: User) -> None:
    operation = recipient_files.prepared(preparer, recipient_files.users(2))
    recipient_files.approve(operation, approver)
    with pytest.raises(DatabaseError), transaction.atomic():
        ImportedRow.objects.create(
            operation=operation, number=9, payload={}, digest="", recipient_key="user:mallory"
        )


def test_a_recipient_that_is_gone_after_an_import_is_found(preparer: User, approver: User) -> None:
    operation = recipient_files.prepared(preparer, recipient_files.users(2))
    recipient_files.approve(operation, approver)
    version = newest_versions().first()
    assert version is not None
    with lifted(connection):
        RecipientVersion.objects.filter(pk=version.pk).delete()
    assert operation.reference in str(inspect(full=True).violations["altered_recipient"])
    assert version_in_effect(version.key) is None


def test_submitted_twice_it_is_one_import(preparer: User) -> None:
    file = recipient_files.checked(preparer, recipient_files.users(2))
    both = {submission.submit_recipients(file.pk, actor=preparer, reason="They are right") for _ in range(2)}
    assert len(both) == 1


def test_recipients_are_not_submitted_as_payouts_nor_the_other_way_round(
    preparer: User, sandbox: SandboxProcess
) -> None:
    with pytest.raises(errors.FileNotReadyError):
        submission.submit_file(recipient_files.checked(preparer, recipient_files.users(1)).pk, actor=preparer)
    file = payouts.checked(preparer, payouts.transfers(1))
    with pytest.raises(errors.FileNotReadyError):
        submission.submit_recipients(file.pk, actor=preparer, reason="They are right")


def test_the_pages_lead_from_the_file_to_the_import(
    sign_in: Callable[[Client, User], Client], preparer: User
) -> None:
    file = recipient_files.checked(preparer, recipient_files.users(2))
    client = sign_in(Client(), preparer)
    refused = client.post(f"{file.get_absolute_url()}submit/", {"reason": ""})
    assert refused.status_code == 422
    assert "Enter how you know" in text_of(refused)
    answer = client.post(f"{file.get_absolute_url()}submit/", {"reason": "They are right"})
    assert answer.headers["Location"] == f"/operations/{file.pk}/"
    assert "Add 2 recipients from suppliers.csv" in text_of(client.get(f"/operations/{file.pk}/"))


def test_an_import_needs_the_approvals_that_a_single_recipient_needs(
    preparer: User, approver: User, second_approver: User
) -> None:
    put_in_effect({"when": {"kinds": ["recipient"]}, **levels((2, {}))})
    operation = recipient_files.prepared(preparer, recipient_files.users(1))
    assert operation.approvals_needed == 2
    assert recipient_files.approve(operation, approver).status == Status.PENDING
    assert recipient_files.approve(operation, second_approver).status == Status.SUCCEEDED
