"""Safeguards of payday: what people approve as a whole is exactly what is sent row by row, once, under one order."""

from tests.sabotage.workshop import Safeguard

_TESTS = "tests/operations/batches/test_batches.py"
_FILES = "tests/operations/batches/test_files.py"
_BULK = "tests/operations/pages/bulk/test_release.py"
_CELLS = "tests/operations/batches/test_cells.py"
_RETRY = "tests/operations/batches/test_retry.py"

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
        "backoffice.operations.descriptions:describe_batch",
        {
            "(total.amount, total.largest)": "(total.largest,)",
            "(row.amount, whole.amount)": "(row.amount,)",
        },
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
    Safeguard(
        "whoever approves a batch types its total where nobody enters a code",
        "backoffice.operations.kinds.batch:BatchKind.confirmation",
        {"        if KINDS[payload.row_kind].asks_for_otp:\n": "        if payload.row_kind:\n"},
        f"{_TESTS}::test_the_approver_types_the_total_where_no_person_enters_a_one_time_code",
    ),
    Safeguard(
        "the total of a batch is typed as it is",
        "backoffice.operations.policy:check_confirmation",
        {" and not confirmation.is_typed_as(typed)": " and not confirmation"},
        f"{_TESTS}::test_the_approver_types_the_total_where_no_person_enters_a_one_time_code",
    ),
    Safeguard(
        "a cancelled batch closes its rows that are not sent",
        "backoffice.operations.batches.control:cancel_due",
        {"sum(run_each_isolated(cancel_row, due, failed=ignore))": "len(due)"},
        f"{_TESTS}::test_a_cancelled_batch_sends_no_further_row",
    ),
    Safeguard(
        "rows of a file do not repeat each other unnoticed",
        "backoffice.operations.batches.earlier_payments:repeated_in_file",
        {"            if not reason or reason in reasons:\n": "            if reason is None:\n"},
        f"{_TESTS}::test_a_row_that_repeats_another_needs_its_own_reason",
    ),
    Safeguard(
        "a row needs another reason than the payment that it repeats",
        "backoffice.operations.batches.earlier_payments:EarlierPayments.problem",
        {"        if (key, row.reason) in self.by_reason:\n": "        if row.reason is None:\n"},
        f"{_TESTS}::test_a_row_needs_another_reason_than_the_payment_that_it_repeats",
    ),
    Safeguard(
        "a row equal to what is being sent becomes no second operation",
        "backoffice.operations.batches.creation:_set_duplicates",
        {"status__in=TO_SEND": "status__in=TO_SEND - {Status.SENDING}"},
        "tests/operations/workflow/test_equal_contents.py::test_a_row_equal_to_what_is_being_sent_becomes_no_second_operation",
    ),
    Safeguard(
        "a row that repeats a payment of the last 30 days is checked first",
        "backoffice.operations.batches.earlier_payments:EarlierPayments.flags",
        {" or (row.recipient_key, row.currency, row.amount) in self.repeated": ""},
        f"{_TESTS}::test_a_row_that_repeats_a_payment_of_the_last_30_days_is_checked_first",
    ),
    Safeguard(
        "a file has a limited number of rows",
        "backoffice.operations.batches.reading:read_rows",
        {"        if count > MAX_ROWS + 1:\n": "        if not count:\n"},
        f"{_FILES}::test_what_is_no_table_or_too_large_is_refused",
    ),
    Safeguard(
        "a workbook unpacks to a limited size",
        "backoffice.operations.batches.reading:_check_parts",
        {" or sum(part.file_size for part in parts) > MAX_UNPACKED": ""},
        f"{_FILES}::test_a_workbook_that_unpacks_to_too_much_is_not_unpacked",
    ),
    Safeguard(
        "a workbook declares no entities",
        "backoffice.operations.batches.reading:_check_parts",
        {'b"<!DOCTYPE" in opened.read(1_000)': "not part"},
        f"{_FILES}::test_a_workbook_with_entities_is_refused",
    ),
    Safeguard(
        "an old order releases nothing",
        "backoffice.operations.policy:check_second_factor",
        {"        and timedelta() <= clock.now() - second_factor_at <= within\n": ""},
        f"{_BULK}::test_an_old_order_releases_nothing",
    ),
    Safeguard(
        "a pause of a batch refuses none of its rows for good",
        "backoffice.operations.workflow.bulk_release:_release_one",
        {"AlreadyReleasedError, BatchPausedError, OtpMissingError": "AlreadyReleasedError, OtpMissingError"},
        f"{_BULK}::test_a_batch_that_is_paused_during_a_turn_is_sent_after_it_is_resumed",
    ),
    Safeguard(
        "an unforeseen error of one operation does not stop a bulk release",
        "backoffice.operations.workflow.bulk_release:_release_one",
        {"    except Exception:\n": "    except MemoryError:\n"},
        f"{_BULK}::test_an_unforeseen_error_of_one_operation_does_not_stop_those_behind_it",
    ),
    Safeguard(
        "an order of which nothing can be released ends",
        "backoffice.operations.workflow.bulk_release:_release_next",
        {"(set(results) == {None} or len(waiting) <= at_once)": "len(waiting) <= at_once"},
        f"{_BULK}::test_an_order_ends_if_nothing_of_a_turn_can_be_released",
    ),
    Safeguard(
        "an old order ends although an operation of it fails",
        "backoffice.operations.workflow.bulk_release:_release_next",
        {"        policy.check_second_factor(bulk_release.second_factor_at, within=ORDER_VALID)\n": ""},
        f"{_BULK}::test_an_old_order_ends_before_an_operation_that_fails_in_the_database",
    ),
    Safeguard(
        "the next code is asked for once the last one was used",
        "backoffice.operations.pages.bulk_release:_next_form",
        {" or _is_code_in_use(bulk_release)": ""},
        f"{_BULK}::test_a_one_time_code_releases_one_operation_and_the_page_asks_for_the_next",
    ),
    Safeguard(
        "no code is made too late for its request",
        "backoffice.operations.delivery.otp:_next_step",
        {" or now + timedelta(seconds=settings.SEND_WITHIN_SECONDS) > last_moment": ""},
        (
            "tests/operations/delivery/test_managed_codes.py::test_no_code_is_made_that_would_be_refused_when_"
            "the_request_begins"
        ),
    ),
    Safeguard(
        "a file that was corrected keeps its account numbers",
        "backoffice.operations.batches.columns:file_with_errors",
        {'if suffix == "xlsx" else': 'if suffix == "" else'},
        f"{_FILES}::test_a_file_of_errors_has_the_format_that_was_uploaded_and_can_be_corrected",
    ),
    Safeguard(
        "the export of a batch has every row of its file",
        "backoffice.reports.definitions.operations:operation_rows",
        {"merge(of_rows, _rows_without_operation(user, chosen), key": "merge(of_rows, key"},
        (
            "tests/reports/definitions/test_contents.py::test_a_row_that_duplicates_an_operation_is_among_the_"
            "outcomes_of_its_batch"
        ),
    ),
    Safeguard(
        "a row whose outcome is unknown is not retried",
        "backoffice.operations.batches.retried_rows:_UNPAID",
        {"(Status.FAILED, *_ENDED_UNSENT)": "(Status.FAILED, Status.UNKNOWN, *_ENDED_UNSENT)"},
        f"{_RETRY}::test_only_rows_that_were_certainly_not_paid_are_retried",
    ),
    Safeguard(
        "a row that may have been paid after all is not retried",
        "backoffice.operations.batches.retried_rows:retryable_rows",
        {"        Incident.objects.filter(of_either, kind__in=POSSIBLY_PAID),\n": ""},
        f"{_RETRY}::test_only_rows_that_were_certainly_not_paid_are_retried",
    ),
    Safeguard(
        "a row whose copy may have been paid after all is not retried",
        "backoffice.operations.batches.retried_rows:retryable_rows",
        {" | Q(operation__prepared_from=of_operation)": ""},
        f"{_RETRY}::test_only_rows_that_were_certainly_not_paid_are_retried",
    ),
    Safeguard(
        "a row whose copy was copied in turn is not retried",
        "backoffice.operations.batches.retried_rows:retryable_rows",
        {"        copies.filter(copies__isnull=False),\n": ""},
        f"{_RETRY}::test_only_rows_that_were_certainly_not_paid_are_retried",
    ),
    Safeguard(
        "a row that was retried is not offered again",
        "backoffice.operations.batches.retried_rows:retryable_rows",
        {"        retried.exclude(NEVER_APPROVED),\n": ""},
        f"{_RETRY}::test_a_row_is_retried_by_one_batch_only",
    ),
    Safeguard(
        "a payment that a later batch retries is not prepared again as well",
        "backoffice.operations.workflow.prepare:_store",
        {"        check_not_retried(Operation.objects.get(pk=prepared_from))\n": "        pass\n"},
        "tests/operations/batches/test_prepare_again.py"
        "::test_a_batch_that_retries_it_after_the_review_refuses_the_copy",
    ),
    Safeguard(
        "a row is retried once although two files of it were checked",
        "backoffice.operations.batches.submission:_store_rows",
        {"not are_retryable(file.retry_of_id, retried)": "not retried"},
        f"{_RETRY}::test_two_checked_files_do_not_retry_a_row_twice",
    ),
    Safeguard(
        "a file of rows to retry names a row that can be retried in each row",
        "backoffice.operations.batches.retried_rows:check_retried",
        {"number if number in free - named else None": "number"},
        f"{_RETRY}::test_each_row_to_retry_names_its_row_once",
    ),
    Safeguard(
        "a retried row stays the one that was retried",
        "backoffice.operations.migrations.0023_retried_rows:create_trigger",
        {"    triggers.create(schema_editor, [KEEPS_RETRIED])\n": "    return\n"},
        f"{_RETRY}::test_the_row_that_is_retried_does_not_change",
    ),
    Safeguard(
        "rows to retry are not prepared as new payouts",
        "backoffice.operations.batches.files:upload_file",
        {"    if retry_of is None and RETRIED_ROW in headers:\n": "    if not headers:\n"},
        f"{_RETRY}::test_rows_to_retry_are_not_taken_for_new_payouts",
    ),
    Safeguard(
        "a cell beyond the headings is an error",
        "backoffice.operations.batches.row_rules:cell_errors",
        {'if beyond := ", ".join(filter(None, row.cells[len(names) :])):': 'if beyond := "":'},
        f"{_CELLS}::test_a_row_with_a_cell_beyond_the_headings_has_an_error",
    ),
    Safeguard(
        "an amount does not end at its comma",
        "backoffice.operations.batches.row_rules:cell_errors",
        {"elif rest := _rest_of_amount(names, row, delimiter):": 'elif rest := "":'},
        f"{_CELLS}::test_the_end_of_an_amount_is_not_taken_for_the_next_cell",
    ),
    Safeguard(
        "a row is not lost in a cell",
        "backoffice.operations.batches.row_rules:cell_errors",
        {"if delimiter and any(": "if not found and all("},
        f"{_CELLS}::test_a_row_that_a_quotation_mark_puts_into_a_cell_is_not_lost",
    ),
    Safeguard(
        "what is wrong with a text itself stays an error of its row",
        "backoffice.operations.batches.checking:_check_row",
        {"    if given:\n": "    if given is None:\n"},
        f"{_CELLS}::test_a_row_with_a_cell_beyond_the_headings_has_an_error",
    ),
    Safeguard(
        "a file of errors keeps the cells beyond the headings, beyond its own",
        "backoffice.operations.batches.columns:file_with_errors",
        {", *cells[width:])": ")"},
        f"{_CELLS}::test_a_file_of_errors_keeps_the_cells_beyond_the_headings",
    ),
    Safeguard(
        "a number that lost digits is an error",
        "backoffice.operations.batches.row_rules:_cell_problem",
        {"doubt == CellDoubt.LONG_NUMBER or ": ""},
        f"{_CELLS}::test_a_number_that_a_spreadsheet_shortened_is_an_error",
    ),
    Safeguard(
        "what a spreadsheet shows instead of a value is an error",
        "backoffice.operations.batches.row_rules:_cell_problem",
        {" or (name in _IDENTIFIERS and _EXPONENT.fullmatch(text))": ""},
        f"{_CELLS}::test_what_a_spreadsheet_shows_instead_of_a_value_is_an_error",
    ),
    Safeguard(
        "hidden rows are not paid",
        "backoffice.operations.batches.reading:_sheet_rows",
        {"    if hidden:\n": "    if hidden is None:\n"},
        f"{_CELLS}::test_a_sheet_with_hidden_rows_is_refused",
    ),
    Safeguard(
        "a hidden sheet is not paid",
        "backoffice.operations.batches.reading:_workbook_rows",
        {" if sheet.sheet_state not in _HIDDEN_SHEET]": "]"},
        f"{_CELLS}::test_the_first_sheet_that_is_shown_is_read",
    ),
    Safeguard(
        "no row or cell of a sheet is lost because of its number",
        "backoffice.operations.batches.reading:_check_order",
        {
            "    if number <= after or not is_own or columns != sorted(set(columns)):\n": "    if not number:\n"
        },
        f"{_CELLS}::test_rows_and_cells_that_are_not_in_order_are_refused",
    ),
    Safeguard(
        "a formula without a value is no empty cell",
        "backoffice.operations.batches.reading:_check_formulas",
        {'if value is None or (not value and cell.get("t") != "str"):': "if cell is None:"},
        f"{_CELLS}::test_a_formula_without_a_stored_value_is_refused",
    ),
    Safeguard(
        "a row has a number that a sheet can have",
        "backoffice.operations.batches.reading:read_rows",
        {"        if row.number > LAST_ROW:\n": "        if not row.number:\n"},
        f"{_CELLS}::test_a_row_with_a_number_that_no_sheet_has_is_refused_at_once",
    ),
    Safeguard(
        "nothing of a check that was restarted is stored",
        "backoffice.operations.batches.checking:_lock_unchanged",
        {"    if stored != tuple(getattr(file, name) for name in fields):\n": "    if stored is None:\n"},
        f"{_CELLS}::test_a_process_stores_nothing_of_a_check_that_was_restarted",
    ),
    Safeguard(
        "a file that was submitted is not checked again",
        "backoffice.operations.batches.files:recheck_outdated",
        {"    if file.state == FileState.CHECKED:\n": "    if file:\n"},
        f"{_CELLS}::test_a_file_that_was_submitted_meanwhile_is_not_checked_again",
    ),
    Safeguard(
        "a form finds the bulk release of its own person only",
        "backoffice.operations.workflow.bulk_release:start_bulk_release",
        {"    if bulk_release.released_by_id != actor.pk:\n": "    if actor is None:\n"},
        f"{_BULK}::test_another_person_does_not_get_the_bulk_release_of_a_form",
    ),
)
