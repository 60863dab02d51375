"""Safeguards of resolutions, later discrepancies, the books, reconciliation and the audit log."""

from tests.sabotage.workshop import Safeguard

_PAID = "tests/operations/outcome/test_paid_elsewhere.py::"
_OVERDUE = "tests/operations/lifecycle/test_overdue_checkpoints.py"

RECORD = (
    Safeguard(
        "nobody resolves an unknown outcome alone",
        "backoffice.operations.policy:_check_other_person",
        {"    if person.pk == operation.preparer_id:\n": "    if person.pk is None:\n"},
        "tests/operations/outcome/test_resolution.py::test_the_preparer_cannot_approve_the_resolution",
    ),
    Safeguard(
        "the transaction of a resolution is nobody else's",
        "backoffice.operations.outcome.resolution:_claim_transaction",
        {
            "    if not claim_transaction(attempt, seen.transaction_id, instead_of=replaced):\n": (
                "    claim_transaction(attempt, seen.transaction_id, instead_of=replaced)\n    if not seen:\n"
            )
        },
        (
            "tests/operations/outcome/test_resolved_as_transaction.py::test_a_transaction_claimed_by_anot"
            "her_meanwhile_closes_nothing"
        ),
    ),
    Safeguard(
        "what may still be executed is not settled as not executed",
        "backoffice.operations.outcome.resolution:_approved_outcome",
        {
            "        clock.now() < attempt.execution_deadline or is_claimed_since\n": "        is_claimed_since\n"
        },
        (
            "tests/operations/outcome/test_resolution.py::test_not_executed_is_not_applied_before_the_exe"
            "cution_deadline"
        ),
    ),
    Safeguard(
        "what may still come is not settled as a transaction that failed",
        "backoffice.operations.kinds.resolution.kind:ResolutionForm._check_failed",
        {
            "if outcome == ResolvedOutcome.FAILED and clock.now() < attempt.execution_deadline:": "if not outcome:"
        },
        (
            "tests/operations/outcome/test_resolved_as_transaction.py::test_a_failed_transaction_cannot_b"
            "e_chosen_before_the_execution_deadline"
        ),
    ),
    Safeguard(
        "what the provider accepted is left to the checks while ours may appear",
        "backoffice.operations.kinds.resolution.case:may_be_resolved",
        {
            "        has_no_transaction and clock.now() >= attempt.execution_deadline\n": "        has_no_transaction\n"
        },
        (
            "tests/operations/outcome/test_resolved_after_acceptance.py::test_an_accepted_operation_is_re"
            "solved_only_after_the_execution_deadline"
        ),
    ),
    Safeguard(
        "what has a transaction and is under way is the machine's",
        "backoffice.operations.kinds.resolution.case:may_be_resolved",
        {" and attempt.provider_transaction_id is None\n": "\n"},
        (
            "tests/operations/outcome/test_resolved_after_acceptance.py::test_one_with_a_known_transactio"
            "n_cannot_be_resolved"
        ),
    ),
    Safeguard(
        "a status is resolved as the provider shows it then",
        "backoffice.operations.outcome.resolution:_check_evidence_unchanged",
        {
            (
                "    if seen is not None and (current is None or current.status != seen.status):\n"
            ): "    if seen is not None and current is None:\n"
        },
        (
            "tests/operations/outcome/test_resolved_as_transaction.py::test_a_status_changed_since_the_pr"
            "oposal_is_not_applied"
        ),
    ),
    Safeguard(
        "a resolution settles only what is open",
        "backoffice.operations.outcome.resolution:_lock_open_attempt",
        {
            "filter(operation=operation, closed_at__isnull=True)\n": "filter(operation=operation)\n",
            "    if attempt is None or not may_be_resolved(operation, attempt):\n": "    if attempt is None:\n",
        },
        (
            "tests/operations/outcome/test_resolution.py::test_a_resolution_is_not_applied_if_a_check_clo"
            "sed_it_first"
        ),
    ),
    Safeguard(
        "nobody names the transaction that paid an operation alone",
        "backoffice.operations.policy:_check_other_person",
        {"    if person.pk == operation.preparer_id:\n": "    if person.pk is None:\n"},
        f"{_PAID}test_the_person_who_names_it_cannot_approve",
    ),
    Safeguard(
        "the transaction that paid an operation matches it",
        "backoffice.operations.kinds.resolution.case:payment_problem",
        {
            'if direction(record) == "in" or not kind.is_match(payload, record):': 'if direction(record) == "in":'
        },
        f"{_PAID}test_a_transaction_that_does_not_match_is_refused[amount]",
    ),
    Safeguard(
        "the transaction that paid an operation is not older than it",
        "backoffice.operations.kinds.resolution.case:read_payment",
        {"prepared_at) - Attempt.CLOCK_SKEW\n": "prepared_at) - 999 * Attempt.CLOCK_SKEW\n"},
        f"{_PAID}test_a_transaction_that_does_not_match_is_refused[older]",
    ),
    Safeguard(
        "the transaction that paid an operation is no other operation's",
        "backoffice.operations.kinds.resolution.case:claim_problem",
        {"if attempt else other.exclude(operation=operation)\n": "if attempt else other.none()\n"},
        f"{_PAID}test_a_transaction_of_another_operation_is_refused",
    ),
    Safeguard(
        "a claim since the proposal is found",
        "backoffice.operations.outcome.resolution:_add_payment",
        {"    operation.attempts.filter(provider": "    Attempt.objects.filter(provider"},
        f"{_PAID}test_a_transaction_claimed_meanwhile_closes_nothing",
    ),
    Safeguard(
        "the transaction that paid an operation is read again before it closes it",
        "backoffice.operations.outcome.resolution:_check_payment",
        {
            "    if record is None or record.status != seen.status or payment_problem(operation, record):\n": (
                "    if record is None:\n"
            )
        },
        f"{_PAID}test_a_transaction_that_changed_since_closes_nothing",
    ),
    Safeguard(
        "an altered operation is not closed as paid",
        "backoffice.operations.outcome.resolution:_check_payment",
        {"    if stop_if_altered(operation.pk):\n": "    if not operation.pk:\n"},
        f"{_PAID}test_an_altered_operation_is_not_closed_as_paid",
    ),
    Safeguard(
        "what was sent meanwhile is not closed as paid without a request",
        "backoffice.operations.outcome.resolution:_add_payment",
        {
            "    if operation.status != Status.APPROVED:\n        raise _known_outcome(operation)\n": "",
            "    if not may_be_paid_elsewhere(operation) or found is None or seen is None:\n": (
                "    if found is None or seen is None:\n"
            ),
        },
        f"{_PAID}test_an_operation_that_was_sent_meanwhile_is_not_resolved",
    ),
    Safeguard(
        "what is released is not closed as paid",
        "backoffice.operations.kinds.resolution.case:may_be_paid_elsewhere",
        {"        and not Release.objects.filter(operation=operation).exists()\n": ""},
        f"{_PAID}test_a_release_at_the_same_time_is_not_overtaken",
    ),
    Safeguard(
        "what a journal shows as sent is not closed as paid without it",
        "backoffice.operations.kinds.resolution.case:may_be_paid_elsewhere",
        {"        and not LostAttempt.objects.keeps_open(operation)\n": ""},
        f"{_PAID}test_what_a_journal_shows_as_sent_is_left_to_the_checks",
    ),
    Safeguard(
        "nothing is sent while a resolution says that it is paid",
        "backoffice.operations.policy:_check_not_paid",
        {
            "    if pending := pending_resolution(operation):\n        raise": (
                "    if pending := pending_resolution(operation):\n        _ ="
            )
        },
        f"{_PAID}test_it_is_not_sent_cancelled_or_expired_while_the_resolution_waits",
    ),
    Safeguard(
        "nothing ends as unsent while a resolution says that it is paid",
        "backoffice.operations.lifecycle.transitions:_check_may_end",
        {
            "    if operation.status == Status.APPROVED and (": "    if operation.status == Status.PENDING and ("
        },
        f"{_PAID}test_it_is_not_sent_cancelled_or_expired_while_the_resolution_waits",
    ),
    Safeguard(
        "trigger: what is sent succeeds without a request only by an approved resolution",
        "backoffice.operations.migrations.0021_paid_elsewhere:_PAID_ELSEWHERE",
        {"resolution.status IN ('approved', 'succeeded'))": "resolution.id IS NOT NULL)"},
        f"{_PAID}test_the_database_lets_no_unapproved_resolution_close_it",
    ),
    Safeguard(
        "trigger: what is released is not closed as paid",
        "backoffice.operations.migrations.0021_paid_elsewhere:_PAID_ELSEWHERE",
        {'    "AND NOT EXISTS (SELECT 1 FROM operations_release WHERE operation_id = NEW.id)"\n': ""},
        f"{_PAID}test_the_database_closes_nothing_as_paid_that_is_released",
    ),
    Safeguard(
        "constraint: an attempt without a releaser is of a resolution",
        "backoffice.operations.migrations.0021_paid_elsewhere:Migration",
        {'                        ("resolution__isnull", False),\n': ""},
        f"{_PAID}test_the_database_keeps_no_attempt_that_neither_a_person_nor_a_resolution_made",
    ),
    Safeguard(
        "a resumption ends only the pause that was signed",
        "backoffice.operations.lifecycle.pause:resume_payments",
        {"filter(pk=payload.pause, ended_at__isnull=True)": "filter(ended_at__isnull=True)"},
        "tests/operations/lifecycle/test_pause.py::test_a_resumption_ends_only_its_own_pause",
    ),
    Safeguard(
        "reports that contradict what is closed raise an incident",
        "backoffice.operations.reconciliation.store:_raise_incident",
        {
            "            incidents.raise_incident(row.attempt.operation, kind=kind": (
                "            dict(row=row.attempt.operation, kind=kind"
            )
        },
        (
            "tests/operations/reconciliation/test_later_contradictions.py::test_a_success_later_reported_"
            "failed_raises_an_incident"
        ),
    ),
    Safeguard(
        "a second debit is raised also where the provider named the first",
        "backoffice.operations.reconciliation.store:_raise_incident",
        {
            "        incidents.raise_incident(attempt.operation, kind=kind": (
                "        dict(row=attempt.operation, kind=kind"
            )
        },
        (
            "tests/operations/reconciliation/test_later_contradictions.py::test_a_second_debit_after_a_na"
            "med_transaction_raises_an_incident"
        ),
    ),
    Safeguard(
        "a second debit is raised also if it was listed before the end",
        "backoffice.operations.reconciliation.runner:_read_entries",
        {"            scope.rows.update(similar": "            set().update(similar"},
        (
            "tests/operations/reconciliation/test_later_contradictions.py::test_a_second_debit_listed_bef"
            "ore_closing_raises_an_incident"
        ),
    ),
    Safeguard(
        "an incident that was closed hides no executed debit",
        "backoffice.operations.lifecycle.incidents:raise_incident",
        {"(earlier.is_open and _is_known(": "(_is_known("},
        (
            "tests/operations/lifecycle/test_incidents.py::test_a_final_status_raises_nothing_while_the_i"
            "ncident_is_open_and_another_once_it_is_closed"
        ),
    ),
    Safeguard(
        "one attempt that cannot be compared stops no other",
        "backoffice.operations.reconciliation.runner:_compare_attempt",
        {"    except Exception:\n": "    except ZeroDivisionError:\n"},
        (
            "tests/operations/reconciliation/test_incidents_raised.py::test_an_incomparable_row_is_report"
            "ed_and_does_not_stop_the_others"
        ),
    ),
    Safeguard(
        "an open attempt that looks different hides no debit of a closed one",
        "backoffice.operations.reconciliation.rules:compare_transaction",
        {"any(_all_fields_match(attempt, listed) for attempt in possible)": "possible"},
        (
            "tests/operations/reconciliation/test_later_contradictions.py::test_an_open_operation_of_anot"
            "her_kind_does_not_explain_a_debit"
        ),
    ),
    Safeguard(
        "what an open attempt may have caused is no second debit yet",
        "backoffice.operations.reconciliation.rules:compare_transaction",
        {"        resembled = []\n": "        pass\n"},
        (
            "tests/operations/reconciliation/test_later_contradictions.py::test_an_identical_operation_of"
            "_ours_is_not_a_second_debit"
        ),
    ),
    Safeguard(
        "further evidence raises a further incident",
        "backoffice.operations.lifecycle.incidents:raise_incident",
        {"        return earlier.evidence == fields or (": "        return bool(earlier) or ("},
        (
            "tests/operations/lifecycle/test_incidents.py::test_new_evidence_after_an_acknowledgement_rai"
            "ses_another_incident"
        ),
    ),
    Safeguard(
        "the books: breaks are kept in the transaction of the merge",
        "backoffice.ledger.mirror.merge:_write",
        {"    breaks.update_breaks(\n        itertools.chain(": "    list(\n        itertools.chain("},
        ("tests/ledger/statements/test_breaks.py::test_a_break_is_stored_until_the_missing_record_arrives"),
    ),
    Safeguard(
        "the books: a run of new records ends where another one stands",
        "backoffice.ledger.statements.breaks:run_ends",
        {"        if is_separated or one.after": "        if one.after"},
        ("tests/ledger/statements/test_run_ends.py::test_a_run_ends_at_a_break_or_at_another_record"),
    ),
    Safeguard(
        "the books: who may report the balance of the other side breaks nothing",
        "backoffice.ledger.statements.chain:balance_effect",
        {'    if direction not in {"in", "out"}:\n': "    if direction is None:\n"},
        (
            "tests/ledger/statements/test_unknown_direction.py::test_a_transfer_of_unknown_direction_brea"
            "ks_no_continuity"
        ),
    ),
    Safeguard(
        "the books: what left the list adds up nowhere",
        "backoffice.ledger.mirror.merge:_mark_missing",
        {"    update_totals(differences)\n": ""},
        "tests/ledger/mirror/test_missing.py::test_a_missing_record_is_not_in_the_totals_shown",
    ),
    Safeguard(
        "the books: what left the list is no part of the chain",
        "backoffice.ledger.statements.chain_reader:listed_transactions",
        {"filter(currency=currency, missing_since__isnull=True)": "filter(currency=currency)"},
        (
            "tests/ledger/statements/test_breaks.py::test_a_record_that_left_the_list_is_named_as_the_"
            "reason_and_may_come_back"
        ),
    ),
    Safeguard(
        "the books: a statement reports what does not add up",
        "backoffice.ledger.statements.statement:Statement.adds_up",
        {" is not None and not self.difference": " is not None"},
        ("tests/ledger/statements/test_statement.py::test_the_difference_equals_the_breaks_in_the_period"),
    ),
    Safeguard(
        "the books: the reported balance is compared with its records",
        "backoffice.ledger.statements.statement:_reported_before",
        {"reported if reported in balances_nearby else last.after)": "reported)"},
        (
            "tests/ledger/statements/test_statement.py::test_the_balance_that_the_provider_reported_is_co"
            "mpared_with_its_records"
        ),
    ),
    Safeguard(
        "the books: breaks that are not added up explain nothing",
        "backoffice.ledger.statements.statement:_break_sum",
        {"None if number.is_more else _sum(found)": "_sum(found[:MAX_COUNTED])"},
        ("tests/ledger/statements/test_statement.py::test_too_many_breaks_are_not_summed"),
    ),
    Safeguard(
        "reconciled: what is not listed though the list was read is missing there",
        "backoffice.operations.reconciliation.rules:_compare_unlisted",
        {
            " if is_list_read else ReconciliationResult.PENDING": " if not operation else ReconciliationResult.PENDING"
        },
        (
            "tests/operations/reconciliation/test_rules.py::test_an_unmirrored_operation_is_missing_only_"
            "after_a_list_read_an_hour_later"
        ),
    ),
    Safeguard(
        "reconciled: what a read of the list may have missed is pending",
        "backoffice.operations.reconciliation.rules:_is_list_read_since",
        {
            "    if mirror.day_pass_begun_at < attempt.closed_at + MISSING_AFTER:\n": (
                "    if mirror.day_pass_begun_at < attempt.closed_at:\n"
            )
        },
        (
            "tests/operations/reconciliation/test_rules.py::test_an_unmirrored_operation_is_missing_only_"
            "after_a_list_read_an_hour_later"
        ),
    ),
    Safeguard(
        "reconciled: what is listed no more is missing there",
        "backoffice.operations.reconciliation.rules:compare_attempt",
        {"    if listed.missing_since:\n": "    if not listed.currency:\n"},
        "tests/operations/reconciliation/test_rules.py::test_an_operation_no_longer_listed_is_missing",
    ),
    Safeguard(
        "reconciled: another amount than was signed is a difference",
        "backoffice.operations.reconciliation.rules:_differences",
        {"operation.amount is not None and listed.amount != operation.amount:": "operation.amount is None:"},
        (
            "tests/operations/reconciliation/test_rules.py::test_an_operation_with_a_differing_record_is_"
            "mismatched"
        ),
    ),
    Safeguard(
        "reconciled: another receiver than was signed is a difference",
        "backoffice.operations.reconciliation.rules:_differences",
        {"        yield from _recipient_differences(attempt, listed)\n": "        yield from ()\n"},
        (
            "tests/operations/reconciliation/test_rules.py::test_a_transaction_to_another_recipient_is_mi"
            "smatched"
        ),
    ),
    Safeguard(
        "reconciled: a transaction that may belong to an unknown outcome is pending",
        "backoffice.operations.reconciliation.rules:compare_transaction",
        {"in unmatched if _may_belong_to(attempt, listed)": "in unmatched if not listed"},
        (
            "tests/operations/reconciliation/test_rules.py::test_a_transaction_that_may_belong_to_an_unkn"
            "own_outcome_is_pending"
        ),
    ),
    Safeguard(
        "reconciled: an unrecognised transaction raises one incident",
        "backoffice.operations.reconciliation.store:_raise_incident",
        {
            "        incidents.raise_for_transaction(row.transaction, evidence": (
                "        dict(row=row.transaction, evidence"
            )
        },
        (
            "tests/operations/reconciliation/test_incidents_raised.py::test_a_transaction_changed_since_i"
            "ts_incident_raises_another_once"
        ),
    ),
    Safeguard(
        "nothing is recorded outside the transaction of the change",
        "backoffice.audit.log:record_all",
        {"    if not connection.in_atomic_block:\n": "    if not new:\n"},
        "tests/audit/test_log.py::test_nothing_is_recorded_outside_a_transaction",
    ),
    Safeguard(
        "two writers never follow the same entry",
        "backoffice.audit.log:_MOVE_HEAD",
        {" AND position = %s AND hash = %s": " AND %s >= 0 AND %s <> ''"},
        "tests/audit/test_log.py::test_two_entries_cannot_follow_the_same_entry",
    ),
    Safeguard(
        "the log is verified: content",
        "backoffice.audit.verification:_entry_fault",
        {'    if entry["hash"] != digest(hashed_members(entry)):\n': '    if not entry["hash"]:\n'},
        "tests/audit/test_verification.py::test_a_change_of_any_column_is_detected",
    ),
    Safeguard(
        "the log is verified: no text is read in two ways",
        "backoffice.audit.verification:_entry_fault",
        {"    if _reads_in_two_ways(entry):\n": "    if not entry:\n"},
        "tests/audit/test_verification.py::test_a_text_that_queries_read_otherwise_than_python_is_detected",
    ),
    Safeguard(
        "the log is verified: order",
        "backoffice.audit.verification:_entry_fault",
        {'    if entry["previous_hash"] != previous_hash:\n': '    if not entry["previous_hash"]:\n'},
        "tests/audit/test_verification.py::test_a_change_of_any_column_is_detected",
    ),
    Safeguard(
        "the log is verified: end",
        "backoffice.audit.verification:_end_fault",
        {"    if position < before.position:\n": "    if position < 0:\n"},
        "tests/audit/test_verification.py::test_damage_to_the_chain_is_detected",
    ),
    Safeguard(
        "checkpoints: a rewritten log contradicts them",
        "backoffice.audit.checkpoints:_first_fault",
        {
            "        if stored.get(checkpoint.position) != checkpoint.hash:\n": "        if not checkpoint.hash:\n"
        },
        "tests/audit/test_checkpoints.py::test_a_rewritten_or_cut_log_is_detected_within_a_minute",
    ),
    Safeguard(
        "checkpoints: a rewritten log gets no new signature",
        "backoffice.audit.checkpoints:_delivered",
        {"    if fault:\n": "    if fault and fault.position < 0:\n"},
        "tests/audit/test_checkpoints.py::test_a_rewritten_or_cut_log_is_detected_within_a_minute",
    ),
    Safeguard(
        "checkpoints: what cannot be read back is compared with what was delivered",
        "backoffice.audit.checkpoints:_recorded_fault",
        {"    if not row.position or ": "    if row.position or "},
        "tests/audit/test_checkpoints.py::test_it_is_detected_by_what_a_syslog_server_got",
    ),
    Safeguard(
        "checkpoints: their signature is verified",
        "backoffice.audit.checkpoints:_first_fault",
        {"        if not checkpoint.is_authentic:\n": "        if not checkpoint.signature:\n"},
        "tests/audit/test_checkpoints.py::test_a_checkpoint_with_a_forged_signature_is_detected",
    ),
    Safeguard(
        "checkpoints: the signature covers the position",
        "backoffice.audit.checkpoints:Checkpoint.signed",
        {'if name != "signature"}': 'if name not in {"signature", "position"}}'},
        "tests/audit/test_checkpoints.py::test_a_changed_checkpoint_is_not_authentic[position]",
    ),
    Safeguard(
        "checkpoints: one that was delivered is still there",
        "backoffice.audit.checkpoints:_lost",
        {"    if found.newest >= row.position:\n": "    if found.newest >= 0:\n"},
        "tests/audit/test_checkpoints.py::test_a_lost_checkpoint_is_detected",
    ),
    Safeguard(
        "checkpoints: a destination that lacks entries for an hour is overdue",
        "backoffice.audit.checkpoints:_is_overdue",
        {"    late = now - OVERDUE_AFTER\n": "    late = now - 24 * OVERDUE_AFTER\n"},
        "tests/audit/test_checkpoints.py::test_a_destination_that_lacks_an_entry_for_an_hour_is_overdue",
    ),
    Safeguard(
        "checkpoints: a destination that is overdue is an incident",
        "backoffice.operations.monitoring.inspection:inspect",
        {"    _raise_overdue_checkpoints(last.at, now)\n": ""},
        f"{_OVERDUE}::test_an_hour_without_a_checkpoint_is_one_incident",
    ),
    Safeguard(
        "checkpoints: an outage is reported anew after the one before has ended",
        "backoffice.operations.lifecycle.incidents:raise_for_destination",
        {'earlier.evidence.get("undelivered") == evidence["undelivered"]': "earlier.pk > 0"},
        f"{_OVERDUE}::test_the_same_outage_is_not_raised_again_and_the_next_one_is",
    ),
    Safeguard(
        "checkpoints: the whole log is compared with all of them once a day",
        "backoffice.audit.checkpoints:_compare_all",
        {"destination_at(address).all_lines()": "destination_at(address).newest_lines()"},
        (
            "tests/audit/test_checkpoints.py::test_verification_finds_an_old_checkpoint_and_the_alarm_lasts_"
            "until_one_finds_none"
        ),
    ),
    Safeguard(
        "checkpoints: a line is on the disk before it counts as delivered",
        "backoffice.audit.destinations:FileDestination.append",
        {"                os.fsync(file.fileno())\n": ""},
        "tests/audit/test_destinations.py::test_a_line_is_on_the_disk_before_it_counts_as_delivered",
    ),
    Safeguard(
        "checkpoints: only their owner reads a file of them",
        "backoffice.audit.destinations:_opened",
        {"0o600": "0o644"},
        "tests/audit/test_destinations.py::test_a_file_grows_by_one_line_and_only_its_owner_reads_it",
    ),
    Safeguard(
        "checkpoints: plain HTTP stays on this machine",
        "backoffice.audit.destinations:_https",
        {'parts.scheme == "http" and not is_loopback(parts.hostname)': 'parts.scheme == "ftp"'},
        "tests/audit/test_destinations.py::test_an_address_that_cannot_be_used_is_refused_without_repeating_it",
    ),
    Safeguard(
        "the database has the triggers and constraints of the migrations",
        "backoffice.operations.monitoring.database_rules:altered_rules",
        {"        if rule not in present or (": "        if rule not in expected or (not rule and "},
        "tests/operations/monitoring/test_database_rules.py::test_a_rule_that_lacks_or_differs_is_named",
    ),
    Safeguard(
        "the database has no trigger that no migration made",
        "backoffice.operations.monitoring.database_rules:altered_rules",
        {"if rule not in expected and rule": "if rule in expected and not rule"},
        "tests/operations/monitoring/test_database_rules.py::test_a_rule_that_lacks_or_differs_is_named",
    ),
    Safeguard(
        "the reason within an error is shown in the reader's language",
        "payments_gateway.errors:sentence",
        {"place[0])), translate(why))": "place[0])), why)"},
        (
            "tests/core/web/test_client_errors.py::test_the_reason_within_an_error_is_shown_in_the_readers_languag"
            "e_too"
        ),
    ),
    Safeguard(
        "a French text without its no-break spaces fails the check",
        "tools.messages:faults",
        {"any(map(_BREAKABLE.search, _forms(message.string)))": "not message.id"},
        "tests/tools/test_messages.py::test_the_check_finds_missing_doubtful_and_broken_translations",
    ),
    Safeguard(
        "prune deletes nothing of the evidence",
        "backoffice.core.storage.retention:TableRetention.kept_for",
        {"if self.keeping == Keeping.PRUNED else 0": "if self.keeping == Keeping.PRUNED else 1"},
        "tests/retention/test_prune.py::test_evidence_of_any_age_stays",
    ),
    Safeguard(
        "an export is done only after its file is stored",
        "backoffice.reports.exports.runner:_finish",
        {"missing_ok=True)\n        raise\n": "missing_ok=True)\n"},
        "tests/reports/exports/test_object_store.py::test_an_export_says_that_the_store_is_away",
    ),
)
