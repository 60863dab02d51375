"""Safeguards of batches: what people approve as a whole is exactly what is sent row by row, once."""

from tests.sabotage.workshop import Safeguard

_TESTS = "tests/operations/batches/test_batches.py"

BATCHES = (
    Safeguard(
        "the rows of a batch have the digest that was approved",
        "backoffice.operations.seals:_read_digests",
        {"    if rows_digest(digests) != approved:\n": "    if not digests:\n"},
        f"{_TESTS}::test_one_altered_row_is_found_in_all_operations_of_its_batch",
    ),
    Safeguard(
        "an operation of a batch has the digest of its row",
        "backoffice.operations.seals:_BatchFaults.of",
        {"            and row.digest == operation.digest\n            and row.digest in digests\n": ""},
        f"{_TESTS}::test_rows_altered_after_they_became_operations_are_not_sent",
    ),
    Safeguard(
        "the rows of a batch have the content of their digests",
        "backoffice.operations.seals:_debit_of",
        {
            "    if row.digest != content_digest("
            "row_operation_id(row.batch_id, row.number), row.kind, row.payload):\n": "    if row is None:\n"
        },
        f"{_TESTS}::test_altered_rows_are_not_approved",
    ),
    Safeguard(
        "a row becomes the operation of its digest",
        "backoffice.operations.batches.creation:_drafts",
        {"            if operation.digest != row.digest:\n": "            if operation is None:\n"},
        f"{_TESTS}::test_rows_altered_after_the_approval_become_no_operations",
    ),
    Safeguard(
        "an operation of a batch is its row",
        "backoffice.operations.seals:_BatchFaults.of",
        {"            return [RecordFault.BATCH_LINK]\n": "            return []\n"},
        f"{_TESTS}::test_an_operation_without_its_row_is_not_sent",
    ),
    Safeguard(
        "no row becomes two operations",
        "backoffice.operations.migrations.0001_squashed_0015_recipients:ROW_TRIGGERS",
        {'        f"{_OTHER_ROW_CONTENT} OR {_OTHER_LINK}",\n': '        f"{_OTHER_ROW_CONTENT}",\n'},
        f"{_TESTS}::test_rows_become_operations_once_however_often_it_is_tried",
    ),
    Safeguard(
        "the preparer of a batch does not send its rows",
        "backoffice.operations.policy:check_may_release",
        {"    _check_other_person(person, operation)\n": ""},
        f"{_TESTS}::test_the_preparer_of_a_batch_does_not_send_its_rows",
    ),
    Safeguard(
        "limits look at the total of a batch",
        "backoffice.operations.kinds.batch:BatchKind.limited_amounts",
        {"(total.amount, total.largest)": "(total.largest,)"},
        f"{_TESTS}::test_limits_look_at_the_total_and_at_each_row",
    ),
    Safeguard(
        "a paused or cancelled batch releases nothing",
        "backoffice.operations.policy:check_may_release",
        {"    _check_batch(operation)\n": ""},
        f"{_TESTS}::test_a_paused_batch_is_neither_released_nor_sent",
    ),
    Safeguard(
        "a paused or cancelled batch sends nothing",
        "backoffice.operations.policy:check_may_send",
        {"    _check_batch(operation)\n": ""},
        f"{_TESTS}::test_a_paused_batch_is_neither_released_nor_sent",
    ),
    Safeguard(
        "one operation sees the rows of open batches",
        "backoffice.operations.workflow.prepare:_check_not_duplicate",
        {" or in_batches.exists()": ""},
        f"{_TESTS}::test_one_operation_does_not_repeat_a_row_of_an_open_batch_unnoticed",
    ),
    Safeguard(
        "a file is compared again when it is submitted",
        "backoffice.operations.batches.submission:_store_rows",
        {"        if any(earlier.problem(payment_of(row)) for row in chunk):\n": "        if not chunk:\n"},
        f"{_TESTS}::test_a_file_is_checked_again_if_a_row_was_prepared_meanwhile",
    ),
)
