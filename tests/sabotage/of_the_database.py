"""What the database itself refuses, whatever the program does: the tests build theirs from the same migrations."""

from tests.sabotage.workshop import Safeguard

_TABLES = "backoffice/operations/migrations/0001_initial.py"
_TRIGGERS = "backoffice/operations/migrations/0002_status_and_content_triggers.py"
_TESTS = "tests/operations"
_STATES = f"{_TESTS}/test_states.py"

IN_THE_DATABASE = (
    Safeguard(
        "constraint: the maker never approves",
        _TABLES,
        {
            'condition=models.Q(("approver", models.F("maker")), _negated=True)': (
                'condition=models.Q(("approver__isnull", False))'
            )
        },
        f"{_STATES}::test_the_database_refuses_an_approval_by_the_maker",
    ),
    Safeguard(
        "trigger: an approval names the real maker",
        _TRIGGERS,
        {
            '"operations_approval", _OTHER_MAKER, "the maker is another"': (
                '"operations_approval", "1 = 0", "the maker is another"'
            )
        },
        f"{_STATES}::test_the_database_refuses_an_approval_that_names_another_maker",
    ),
    Safeguard(
        "constraint: one approval for each person",
        _TABLES,
        {
            'fields=("operation", "approver"), name="approval_once_per_person"': (
                'fields=("operation", "approver", "at"), name="approval_once_per_person"'
            )
        },
        f"{_STATES}::test_the_database_refuses_a_second_approval_by_the_same_person",
    ),
    Safeguard(
        "trigger: a countersignature does not change",
        _TRIGGERS,
        {" OR NEW.approver_id <> OLD.approver_id OR NEW.digest <> OLD.digest": ""},
        f"{_STATES}::test_the_database_keeps_a_countersignature_as_it_was_given",
    ),
    Safeguard(
        "trigger: closed states are final",
        _TRIGGERS,
        {'    "review": (': '    "succeeded": ("failed",),\n    "review": ('},
        f"{_STATES}::test_the_database_refuses_every_other_edge[succeeded-failed]",
    ),
    Safeguard(
        "trigger: sending goes back to pending never",
        _TRIGGERS,
        {'    "sending": ("approved",': '    "sending": ("pending", "approved",'},
        f"{_STATES}::test_the_database_refuses_every_other_edge[sending-pending]",
    ),
    Safeguard(
        "trigger: an operation begins as pending",
        _TRIGGERS,
        {"\"NEW.status <> 'pending'\"": '"1 = 0"'},
        f"{_STATES}::test_the_database_lets_an_operation_begin_as_pending_only",
    ),
    Safeguard(
        "trigger: content does not change",
        _TRIGGERS,
        {'    "payload",\n': ""},
        f"{_STATES}::test_the_database_keeps_what_was_prepared",
    ),
    Safeguard(
        "trigger: the maker does not change",
        _TRIGGERS,
        {'    "maker_id",\n': ""},
        f"{_STATES}::test_the_database_keeps_the_maker",
    ),
    Safeguard(
        "trigger: only what is applied here succeeds unsent",
        _TRIGGERS,
        {"AND NEW.kind IN ('resolution', 'resume') ": ""},
        f"{_STATES}::test_the_database_refuses_every_other_edge[approved-succeeded]",
    ),
    Safeguard(
        "trigger: nothing is applied that was sent once",
        _TRIGGERS,
        {'    "AND NOT EXISTS (SELECT 1 FROM operations_attempt WHERE operation_id = NEW.id)"\n': ""},
        f"{_TESTS}/test_applied_here.py::test_the_database_lets_nothing_be_applied_that_was_sent_once",
    ),
    Safeguard(
        "unique index: one attempt in doubt for each balance",
        _TABLES,
        {'fields=("balance",)': 'fields=("balance", "operation")'},
        f"{_TESTS}/test_turns.py::test_the_database_lets_one_attempt_in_doubt_stand_at_a_balance",
    ),
    Safeguard(
        "unique index: one open attempt for each operation",
        _TABLES,
        {
            'fields=("operation",),\n                        name="attempt_one_open_per_operation"': (
                'fields=("operation", "number"),\n                        name="attempt_one_open_per_operation"'
            )
        },
        f"{_TESTS}/test_last_look.py::test_an_operation_has_one_open_attempt_at_most",
    ),
    Safeguard(
        "unique index: one transaction belongs to one attempt",
        _TABLES,
        {
            "models.CharField(max_length=500, null=True, unique=True)": "models.CharField(max_length=500, null=True)"
        },
        f"{_TESTS}/confirming/test_doubts.py::test_a_transaction_that_another_took_since_we_looked_closes_nothing",
    ),
    Safeguard(
        "unique index: one pause stands",
        _TABLES,
        {"                        models.Value(1),\n": '                        "id",\n'},
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
