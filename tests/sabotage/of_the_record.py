"""What people settle together, what is news of it later, the books, the reconciliation, and the log of it all."""

from tests.sabotage.workshop import Safeguard

_RESOLVING = "backoffice/operations/services/resolving.py"
_FORM = "backoffice/operations/kinds/resolution_form.py"
_AUDIT = "backoffice/audit/services.py"
_VERIFICATION = "backoffice/audit/verification.py"
_TESTS = "tests/operations"
_AS = f"{_TESTS}/test_resolving_as_a_transaction.py"
_ACCEPTED = f"{_TESTS}/test_resolving_what_was_accepted.py"
_STATEMENT = "backoffice/ledger/books/statement.py"
_RECONCILING = "backoffice/operations/reconciling.py"
_VERDICTS = f"{_TESTS}/reconciliation/test_verdicts.py"

ON_RECORD = (
    Safeguard(
        "nobody settles alone what is people's to settle",
        "backoffice/operations/policy.py",
        {"    if person.pk == operation.maker_id:\n": "    if person.pk is None:\n"},
        f"{_TESTS}/test_resolving.py::test_whoever_proposes_it_cannot_countersign_it",
    ),
    Safeguard(
        "the transaction of a resolution is nobody else's",
        _RESOLVING,
        {
            "    if not bind_transaction(attempt, seen.transaction_id, instead_of=taken):\n": (
                "    bind_transaction(attempt, seen.transaction_id, instead_of=taken)\n    if not seen:\n"
            )
        },
        f"{_TESTS}/test_resolving_as_a_transaction.py::test_a_transaction_that_became_anothers_meanwhile_closes_nothing",
    ),
    Safeguard(
        "what may still be executed is not settled as not executed",
        _RESOLVING,
        {"(clock.now() < attempt.may_come_until or is_news)": "is_news"},
        f"{_TESTS}/test_resolving.py::test_nor_is_it_applied_while_the_service_may_still_execute_it",
    ),
    Safeguard(
        "what may still come is not settled as a transaction that failed",
        _FORM,
        {"if end == End.FAILED and clock.now() < attempt.may_come_until:": "if not end:"},
        f"{_AS}::test_a_failed_one_may_be_anothers_while_ours_may_come",
    ),
    Safeguard(
        "what the service accepted is the machine's while ours may come",
        "backoffice/operations/kinds/resolution_case.py",
        {"(is_nameless and clock.now() >= attempt.may_come_until)": "is_nameless"},
        f"{_ACCEPTED}::test_people_settle_it_only_when_it_can_come_no_more",
    ),
    Safeguard(
        "what has a transaction and is under way is the machine's",
        "backoffice/operations/kinds/resolution_case.py",
        {" and attempt.service_transaction_id is None\n": "\n"},
        f"{_ACCEPTED}::test_nobody_settles_one_whose_transaction_is_known",
    ),
    Safeguard(
        "a word is signed as the service shows it then",
        _RESOLVING,
        {"    if words.get(seen.transaction_id) != seen.status:\n": "    if not words:\n"},
        f"{_AS}::test_a_word_that_has_changed_since_is_not_settled_by_what_it_meant",
    ),
    Safeguard(
        "a resolution settles only what is open",
        _RESOLVING,
        {
            "filter(operation=operation, closed_at__isnull=True)\n": "filter(operation=operation)\n",
            "    if attempt is None or not may_be_settled(operation, attempt):\n": "    if attempt is None:\n",
        },
        f"{_TESTS}/test_resolving.py::test_if_the_machine_closes_it_first_the_resolution_is_not_applied_and_says_so",
    ),
    Safeguard(
        "a resumption ends only the pause that was signed",
        "backoffice/operations/services/pausing.py",
        {"filter(pk=payload.pause, ended_at__isnull=True)": "filter(ended_at__isnull=True)"},
        f"{_TESTS}/test_pause.py::test_a_resumption_ends_only_the_pause_that_it_names",
    ),
    Safeguard(
        "news that contradict what is closed raise an incident",
        "backoffice/operations/services/watching.py",
        {"            incidents.report(attempt.operation, kind=kind": "            dict(kind=kind"},
        f"{_TESTS}/test_watching.py::test_a_success_that_the_service_calls_failed_by_now_is_news",
    ),
    Safeguard(
        "a second debit is told also where the service named the first",
        "backoffice/operations/services/watching.py",
        {
            "            yield from ((IncidentKind.SECOND_DEBIT, debit) for debit in debits)\n": "            return\n"
        },
        f"{_TESTS}/test_watching.py::test_a_second_debit_is_news_also_where_the_service_named_the_first",
    ),
    Safeguard(
        "what another operation of ours has claimed is no second debit",
        "backoffice/operations/services/watching.py",
        {"    return unclaimed([record for": "    return list([record for"},
        f"{_TESTS}/test_watching.py::test_another_of_ours_with_the_same_content_is_no_second_debit",
    ),
    Safeguard(
        "further evidence raises a further incident",
        "backoffice/operations/services/incidents.py",
        {"        if incident.evidence == told:\n": "        if incident:\n"},
        f"{_TESTS}/test_incidents.py::test_further_evidence_reaches_those_who_had_taken_note",
    ),
    Safeguard(
        "the books: breaks are kept in the transaction of the merge",
        "backoffice/ledger/mirror/merging.py",
        {"    breaks.reexamine(itertools.chain(": "    list(itertools.chain("},
        "tests/ledger/test_breaks.py::test_a_gap_is_kept_until_the_record_comes_that_was_missing",
    ),
    Safeguard(
        "the books: a run of new records ends where another one stands",
        "backoffice/ledger/books/arrivals.py",
        {"        if are_apart or one.after": "        if one.after"},
        "tests/ledger/test_arrivals.py::test_a_run_ends_where_a_balance_does_not_follow_or_another_record_stands",
    ),
    Safeguard(
        "the books: whoever may tell the balance of the other side breaks nothing",
        "backoffice/ledger/books/chain.py",
        {'    if direction not in {"in", "out"}:\n': "    if direction is None:\n"},
        "tests/ledger/test_not_ours_to_tell.py::test_a_transfer_whose_direction_is_unknown_breaks_nothing",
    ),
    Safeguard(
        "the books: what left the list adds up nowhere",
        "backoffice/ledger/mirror/missing.py",
        {"    keep_totals(differences)\n": ""},
        "tests/ledger/test_missing.py::test_neither_the_overview_nor_the_list_adds_it_up",
    ),
    Safeguard(
        "the books: what left the list is no part of the chain",
        "backoffice/ledger/books/reading.py",
        {"filter(currency=currency, missing_since__isnull=True)": "filter(currency=currency)"},
        "tests/ledger/test_breaks.py::test_a_record_that_left_the_list_is_named_as_the_reason_and_may_come_back",
    ),
    Safeguard(
        "the books: a statement tells what does not add up",
        _STATEMENT,
        {" is not None and not self.difference": " is not None"},
        "tests/ledger/test_statement.py::test_what_does_not_add_up_is_what_the_breaks_in_the_period_say",
    ),
    Safeguard(
        "the books: the balance that the service told is held against its records",
        _STATEMENT,
        {"told if told in around else last.after)": "told)"},
        "tests/ledger/test_statement.py::test_the_balance_that_the_service_told_is_held_against_its_records",
    ),
    Safeguard(
        "the books: breaks that are not added up explain nothing",
        _STATEMENT,
        {"None if number.is_more else _sum(found)": "_sum(found[:MOST])"},
        "tests/ledger/test_statement.py::test_more_breaks_than_are_added_up_are_no_sum_and_explain_nothing",
    ),
    Safeguard(
        "reconciled: what is not listed though the list was read is missing there",
        _RECONCILING,
        {
            " if is_sure else ReconciliationResult.PENDING": " if not operation else ReconciliationResult.PENDING"
        },
        f"{_VERDICTS}::test_one_that_is_not_in_the_mirror_is_missing_only_once_the_list_was_read_an_hour_later",
    ),
    Safeguard(
        "reconciled: what a reading of the list may have passed by is too early to tell",
        _RECONCILING,
        {
            "    if mirror.day_at < attempt.closed_at + GRACE:\n": "    if mirror.day_at < attempt.closed_at:\n"
        },
        f"{_VERDICTS}::test_one_that_is_not_in_the_mirror_is_missing_only_once_the_list_was_read_an_hour_later",
    ),
    Safeguard(
        "reconciled: what is listed no more is missing there",
        _RECONCILING,
        {"    if listed.missing_since:\n": "    if not listed.currency:\n"},
        f"{_VERDICTS}::test_one_that_the_service_lists_no_more_is_missing",
    ),
    Safeguard(
        "reconciled: another amount than was signed is a difference",
        _RECONCILING,
        {"operation.amount is not None and listed.amount != operation.amount:": "operation.amount is None:"},
        f"{_VERDICTS}::test_an_operation_whose_record_says_something_else_is_different",
    ),
    Safeguard(
        "reconciled: another receiver than was signed is a difference",
        _RECONCILING,
        {"        yield from _receivers(attempt, listed)\n": "        yield from ()\n"},
        f"{_VERDICTS}::test_one_that_went_to_somebody_else_than_was_signed_is_different",
    ),
    Safeguard(
        "reconciled: a movement that may be one of ours in doubt is too early to tell",
        _RECONCILING,
        {"in in_doubt if _may_be(attempt, listed)": "in in_doubt if not listed"},
        f"{_VERDICTS}::test_a_movement_that_may_be_one_of_ours_in_doubt_is_too_early_to_tell",
    ),
    Safeguard(
        "reconciled: a movement that nobody prepared raises one incident",
        "backoffice/operations/services/verdicts.py",
        {
            "        incidents.report_movement(row.transaction, evidence": "        dict(row=row.transaction, evidence"
        },
        f"{_TESTS}/reconciliation/test_alarms.py::test_a_movement_that_is_another_since_it_was_noted_is_told_of_again_and_once",
    ),
    Safeguard(
        "nothing is recorded outside the transaction of the change",
        _AUDIT,
        {"    if not connection.in_atomic_block:\n": "    if not action:\n"},
        "tests/audit/test_append.py::test_nothing_is_recorded_outside_a_transaction",
    ),
    Safeguard(
        "two writers never follow the same entry",
        _AUDIT,
        {"filter(pk=head.pk, position=head.position, hash=head.hash)": "filter(pk=head.pk)"},
        "tests/audit/test_append.py::test_two_writers_never_follow_the_same_entry",
    ),
    Safeguard(
        "the log is verified: content",
        _VERIFICATION,
        {"    if entry.hash != entry.digest():\n": "    if not entry.hash:\n"},
        "tests/audit/test_verification.py::test_a_change_of_any_column_is_found",
    ),
    Safeguard(
        "the log is verified: order",
        _VERIFICATION,
        {"    if entry.previous_hash != previous_hash:\n": "    if not entry.previous_hash:\n"},
        "tests/audit/test_verification.py::test_a_change_of_any_column_is_found",
    ),
    Safeguard(
        "the log is verified: end",
        _VERIFICATION,
        {"    if position < before.position:\n": "    if position < 0:\n"},
        "tests/audit/test_verification.py::test_damage_to_the_whole_is_found",
    ),
)
