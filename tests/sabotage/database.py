"""Safeguards in the database: constraints and triggers. Test databases are built from the same migrations."""

from tests.sabotage.workshop import Safeguard

DATABASE = (
    Safeguard(
        "role that runs: the log is only inserted into",
        "backoffice.audit.models:Entry",
        {"    WRITES = APPEND_ONLY\n": ""},
        "tests/core/database/test_writes.py::test_every_table_with_a_trigger_against_changes_is_declared_as_such",
    ),
    Safeguard(
        "trigger: a request begins once, and not after its attempt closed",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:BEGINS_ONCE",
        {"AND (OLD.begun_at IS NOT NULL OR OLD.closed_at IS NOT NULL)": "AND 1 = 0"},
        (
            "tests/operations/test_states.py::test_the_database_refuses_a_request_that_begins_again_or_after_its_"
            "attempt_closed"
        ),
    ),
    Safeguard(
        "constraint: the preparer never approves",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:Migration",
        {
            'condition=models.Q(("approver", models.F("preparer")), _negated=True)': (
                'condition=models.Q(("approver__isnull", False))'
            )
        },
        "tests/operations/test_states.py::test_the_database_refuses_an_approval_by_the_preparer",
    ),
    Safeguard(
        "trigger: an approval names the real preparer",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:OPERATION_TRIGGERS",
        {
            '"operations_approval", _OTHER_PREPARER, "the preparer is another"': (
                '"operations_approval", "1 = 0", "the preparer is another"'
            )
        },
        "tests/operations/test_states.py::test_the_database_refuses_an_approval_that_names_another_preparer",
    ),
    Safeguard(
        "constraint: one approval for each person",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:Migration",
        {
            'fields=("operation", "approver"), name="approval_once_per_person"': (
                'fields=("operation", "approver", "approved_at"), name="approval_once_per_person"'
            )
        },
        "tests/operations/test_states.py::test_the_database_refuses_a_second_approval_by_the_same_person",
    ),
    Safeguard(
        "trigger: an approval does not change",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:OPERATION_TRIGGERS",
        {" OR NEW.approver_id <> OLD.approver_id OR NEW.digest <> OLD.digest": ""},
        "tests/operations/test_states.py::test_the_database_refuses_to_change_an_approval",
    ),
    Safeguard(
        "trigger: closed states are final",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:TRANSITIONS",
        {'    "review": (': ('    "succeeded": ("failed",),\n    "review": (')},
        "tests/operations/test_states.py::test_the_database_refuses_unlisted_transitions[succeeded-failed]",
    ),
    Safeguard(
        "trigger: sending goes back to pending never",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:TRANSITIONS",
        {'    "sending": ("approved",': '    "sending": ("pending", "approved",'},
        "tests/operations/test_states.py::test_the_database_refuses_unlisted_transitions[sending-pending]",
    ),
    Safeguard(
        "trigger: an operation begins as pending",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:OPERATION_TRIGGERS",
        {"\"NEW.status <> 'pending'\"": '"1 = 0"'},
        "tests/operations/test_states.py::test_the_database_requires_new_operations_to_be_pending",
    ),
    Safeguard(
        "trigger: content does not change",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:CONTENT",
        {'    "payload",\n': ""},
        "tests/operations/test_states.py::test_the_database_refuses_to_change_the_content",
    ),
    Safeguard(
        "trigger: the preparer does not change",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:CONTENT",
        {'    "preparer_id",\n': ""},
        "tests/operations/test_states.py::test_the_database_refuses_to_change_the_preparer",
    ),
    Safeguard(
        "trigger: only what is applied here succeeds unsent",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:_APPLIED_HERE",
        {" AND NEW.kind IN ({kinds})": ""},
        (
            "tests/operations/test_states.py::test_the_database_refuses_unlisted_transitions[approved-suc"
            "ceeded]"
        ),
    ),
    Safeguard(
        "trigger: nothing is applied that was sent once",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:_APPLIED_HERE",
        {'    "AND NOT EXISTS (SELECT 1 FROM operations_attempt WHERE operation_id = NEW.id)"\n': ""},
        (
            "tests/operations/workflow/test_local_kinds.py::test_the_database_refuses_to_apply_a_sent_operation"
        ),
    ),
    Safeguard(
        "unique index: one unknown outcome for each amount of a balance",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:Migration",
        {'fields=("balance", "amount")': 'fields=("balance", "amount", "operation")'},
        (
            "tests/operations/delivery/test_balance_queue.py::test_the_database_allows_one_unknown_outcom"
            "e_for_an_amount"
        ),
    ),
    Safeguard(
        "unique index: one request under way for each balance",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:Migration",
        {'fields=("balance",)': 'fields=("balance", "operation")'},
        (
            "tests/operations/delivery/test_balance_queue.py::test_the_database_allows_one_request_under_"
            "way_for_a_balance"
        ),
    ),
    Safeguard(
        "unique index: one open attempt for each operation",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:Migration",
        {
            'fields=("operation",),\n                        name="attempt_one_open_per_operation"': (
                'fields=("operation", "number"),\n                        name="attempt_one_open_per_operation"'
            )
        },
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_an_operation_has_at_most_one_open_attempt"
        ),
    ),
    Safeguard(
        "unique index: one transaction belongs to one attempt",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:Migration",
        {
            "models.CharField(max_length=500, null=True, unique=True)": "models.CharField(max_length=500, null=True)"
        },
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_transaction_claimed_by_another_"
            "since_the_check_closes_nothing"
        ),
    ),
    Safeguard(
        "unique index: one pause at a time",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:Migration",
        {"                        models.Value(1),\n": '                        "id",\n'},
        "tests/operations/lifecycle/test_pause.py::test_the_database_allows_one_open_pause",
    ),
    Safeguard(
        "trigger: the audit log is append-only",
        "backoffice.audit.migrations.0001_squashed_0002_append_only:CREATE_ON_SQLITE",
        {
            "CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry\n": (
                "CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry WHEN 1 = 0\n"
            )
        },
        "tests/audit/test_append_only.py::test_the_database_refuses_updates_and_deletes[update]",
    ),
    Safeguard(
        "trigger: rights that were granted stay",
        "backoffice.accounts.migrations.0007_changes_of_rights_stay:CREATE_ON_SQLITE",
        {
            "CREATE TRIGGER rights_grant_no_update BEFORE UPDATE ON accounts_rightsgrant\n": (
                "CREATE TRIGGER rights_grant_no_update BEFORE UPDATE ON accounts_rightsgrant WHEN 1 = 0\n"
            )
        },
        "tests/operations/kinds/staff/test_staff_change.py::test_the_database_refuses_to_end_the_waiting_time[backdate]",
    ),
)
