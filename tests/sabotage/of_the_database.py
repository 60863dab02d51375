"""What the database itself refuses, whatever the program does: the tests build theirs from the same migrations."""

from tests.sabotage.workshop import Safeguard

_FIRST = "backoffice/operations/migrations/0001_operations_and_their_proof.py"
_GUARDS = "backoffice/operations/migrations/0002_guard_edges_and_makers.py"
_TESTS = "tests/operations"
_STATES = f"{_TESTS}/test_states.py"

IN_THE_DATABASE = (
    Safeguard(
        "constraint: the maker never approves",
        _FIRST,
        {
            'condition=models.Q(("approver", models.F("maker")), _negated=True)': (
                'condition=models.Q(("approver__isnull", False))'
            )
        },
        f"{_STATES}::test_the_database_refuses_an_approval_by_the_maker",
    ),
    Safeguard(
        "trigger: an approval names the real maker",
        _GUARDS,
        {
            '"operations_approval", _BAD_MAKER, "the maker is another"': '"operations_approval", "1 = 0", "never"'
        },
        f"{_STATES}::test_the_database_refuses_an_approval_that_names_another_maker",
    ),
    Safeguard(
        "constraint: one approval for each person",
        _FIRST,
        {
            'fields=("operation", "approver"), name="approval_once_per_person"': (
                'fields=("operation", "approver", "at"), name="approval_once_per_person"'
            )
        },
        f"{_STATES}::test_the_database_refuses_a_second_approval_by_the_same_person",
    ),
    Safeguard(
        "trigger: a countersignature does not change",
        _GUARDS,
        {" OR NEW.approver_id <> OLD.approver_id OR NEW.digest <> OLD.digest": ""},
        f"{_STATES}::test_the_database_keeps_a_countersignature_as_it_was_given",
    ),
    Safeguard(
        "trigger: closed states are final",
        _GUARDS,
        {'    "review": (': '    "succeeded": ("failed",),\n    "review": ('},
        f"{_STATES}::test_the_database_refuses_every_other_edge[succeeded-failed]",
    ),
    Safeguard(
        "trigger: sending goes back to pending never",
        _GUARDS,
        {'    "sending": ("approved",': '    "sending": ("pending", "approved",'},
        f"{_STATES}::test_the_database_refuses_every_other_edge[sending-pending]",
    ),
    Safeguard(
        "trigger: an operation begins as pending",
        _GUARDS,
        {"\"NEW.status <> 'pending'\"": '"1 = 0"'},
        f"{_STATES}::test_the_database_lets_an_operation_begin_as_pending_only",
    ),
    Safeguard(
        "trigger: content does not change",
        _GUARDS,
        {'    "payload",\n': ""},
        f"{_STATES}::test_the_database_keeps_what_was_prepared",
    ),
    Safeguard(
        "trigger: the maker does not change",
        _GUARDS,
        {'    "maker_id",\n': ""},
        f"{_STATES}::test_the_database_keeps_the_maker",
    ),
    Safeguard(
        "trigger: only what is applied here succeeds unsent",
        "backoffice/operations/migrations/0007_pause_and_what_is_applied_here.py",
        {"AND NEW.kind IN ('resolution', 'resume') ": ""},
        f"{_STATES}::test_the_database_refuses_every_other_edge[approved-succeeded]",
    ),
    Safeguard(
        "trigger: nothing is applied that was sent once",
        "backoffice/operations/migrations/0007_pause_and_what_is_applied_here.py",
        {'    "AND NOT EXISTS (SELECT 1 FROM operations_attempt WHERE operation_id = NEW.id)"\n': ""},
        f"{_TESTS}/test_applied_here.py::test_the_database_lets_nothing_be_applied_that_was_sent_once",
    ),
    Safeguard(
        "unique index: one attempt in doubt for each balance",
        "backoffice/operations/migrations/0006_one_open_attempt_per_balance.py",
        {'fields=("balance",)': 'fields=("balance", "operation")'},
        f"{_TESTS}/test_turns.py::test_the_database_lets_one_attempt_in_doubt_stand_at_a_balance",
    ),
    Safeguard(
        "unique index: one open attempt for each operation",
        _FIRST,
        {
            'fields=("operation",),\n                name="attempt_one_open_per_operation"': (
                'fields=("operation", "number"),\n                name="attempt_one_open_per_operation"'
            )
        },
        f"{_TESTS}/test_last_look.py::test_an_operation_has_one_open_attempt_at_most",
    ),
    Safeguard(
        "unique index: one transaction belongs to one attempt",
        _FIRST,
        {
            "models.CharField(max_length=100, null=True, unique=True)": "models.CharField(max_length=100, null=True)"
        },
        f"{_TESTS}/confirming/test_doubts.py::test_a_transaction_that_another_took_since_we_looked_closes_nothing",
    ),
    Safeguard(
        "unique index: one pause stands",
        "backoffice/operations/migrations/0007_pause_and_what_is_applied_here.py",
        {"                        Value(1), condition": '                        "id", condition'},
        f"{_TESTS}/test_pause.py::test_the_database_lets_only_one_pause_stand",
    ),
    Safeguard(
        "trigger: the audit log is append-only",
        "backoffice/audit/migrations/0002_append_only.py",
        {
            "CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry\n": (
                "CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry WHEN 1 = 0\n"
            )
        },
        "tests/audit/test_append_only.py::test_the_database_refuses[update]",
    ),
)
