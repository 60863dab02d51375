"""Safeguards against a restored database: the journal, its comparison, and what a finding stops."""

from tests.sabotage.workshop import Safeguard

_TESTS = "tests/operations/delivery/test_restored_database.py::"
_FAULTS = "tests/faults/test_restored_databases.py::"
_JOURNALS = "tests/operations/delivery/test_journals.py::"
_LOST = "tests/operations/delivery/test_lost_journals.py::"
_ACCEPTED = "tests/operations/delivery/test_accepted_findings.py::"
_ACCEPTANCE = "backoffice.operations.delivery.acceptance"
_CHECK = "backoffice.operations.delivery.restore_check"

_COMPARED_BEFORE_SENDING = {"        restore_check.check_before_send(operation_id)\n": ""}

RESTORED = (
    Safeguard(
        "a worker begins its journal when it starts",
        "backoffice.tasks:compare_at_start",
        {"        restore_check.compare_with_journals()\n": "        pass\n"},
        f"{_LOST}test_a_worker_begins_its_journal_when_it_starts",
    ),
    Safeguard(
        "a sweeper begins its journal when it starts",
        "backoffice.sweeper.management.commands.sweep:Command.handle",
        {'        _run_round("compare_with_journals", JOBS["compare_with_journals"], is_due=True)\n': ""},
        "tests/sweeper/test_sweep.py::test_a_sweeper_compares_with_journals_before_its_jobs_begin",
    ),
    Safeguard(
        "a restore between release and claim is found before the provider is read",
        "backoffice.operations.delivery.send:_read_and_claim",
        _COMPARED_BEFORE_SENDING,
        f"{_FAULTS}test_a_restore_between_release_and_claim_sends_nothing_again",
    ),
    Safeguard(
        "a restore between approval and release is found before the provider is read",
        "backoffice.operations.delivery.send:_read_and_claim",
        _COMPARED_BEFORE_SENDING,
        f"{_FAULTS}test_a_restore_between_approval_and_release_lets_nobody_release_again",
    ),
    Safeguard(
        "the database is compared once more before the first byte",
        "backoffice.operations.delivery.send:RequestStart._commit",
        {
            "restore_check.check_before_first_byte(self._attempt.operation_id)": "journal.database_line()",
        },
        f"{_TESTS}test_a_restore_between_the_comparison_and_the_claim_is_found",
    ),
    Safeguard(
        "what another process found is asked for before the first byte",
        f"{_CHECK}:check_before_first_byte",
        {"    _check_not_lost(operation_id)\n": ""},
        f"{_TESTS}test_a_restore_that_another_process_reported_before_the_first_byte_stops_the_request"
        "[send.connected-True]",
    ),
    Safeguard(
        "the audit log knows which payments a restore lost",
        f"{_CHECK}:_report",
        {"    _log_lost(lost)\n": ""},
        f"{_TESTS}test_someone_with_the_database_cannot_have_a_lost_payment_sent_again",
    ),
    Safeguard(
        "the pause is read once more before the first byte",
        "backoffice.operations.delivery.send:RequestStart._commit",
        {"                if is_paused():": "                if False:"},
        f"{_TESTS}test_payments_that_are_paused_before_the_first_byte_are_not_sent",
    ),
    Safeguard(
        "the incident of another pause does not hide what a process saw",
        f"{_CHECK}:_was_reported_since",
        {"kind=IncidentKind.DATABASE_RESTORED, ": ""},
        f"{_TESTS}test_the_incident_of_another_pause_does_not_hide_what_a_process_saw",
    ),
    Safeguard(
        "not begun is no proof in a database that lost commits",
        "backoffice.operations.delivery.record:record_timeout",
        {"    if not _lost_commits_since(attempt) and _close": "    if _close"},
        f"{_TESTS}test_not_begun_is_no_proof_in_a_database_that_lost_commits",
    ),
    Safeguard(
        "a resumption accepts no finding that is newer",
        "backoffice.operations.lifecycle.pause:resume_payments",
        {"        raise PauseChangedError\n": "        pass\n"},
        f"{_TESTS}test_a_resumption_that_was_proposed_before_the_finding_is_refused",
    ),
    Safeguard(
        "a finding lists everything that was lost",
        f"{_CHECK}:_find",
        {
            "start = reported.ends.get(position.key, 0)": (
                "start = max(reported.ends.get(position.key, 0), journal.newest_start(position.path))"
            )
        },
        f"{_TESTS}test_a_finding_lists_what_was_lost_before_the_newest_lines",
    ),
    Safeguard(
        "a journal that was cut is compared from its beginning",
        f"{_CHECK}:_advanced",
        {"            end = 0  #": "            pass  #"},
        f"{_TESTS}test_a_journal_that_was_cut_is_compared_from_its_beginning",
    ),
    Safeguard(
        "nothing is sent, and nothing is unknown, if the folder of the journal cannot be read",
        "backoffice.operations.delivery.send:RequestStart._commit",
        {"except (journal.JournalError, OSError) as exc": "except journal.JournalError as exc"},
        f"{_TESTS}test_a_folder_that_cannot_be_read_sends_nothing",
    ),
    Safeguard(
        "the database is compared before each send",
        "backoffice.operations.delivery.send:_read_and_claim",
        {"        restore_check.check_before_send(operation_id)\n": ""},
        f"{_TESTS}test_a_payment_sent_after_the_backup_is_not_sent_again",
    ),
    Safeguard(
        "the line is in the journal before the request",
        "backoffice.operations.delivery.send:RequestStart._commit",
        {"                journal.write_claimed(self._attempt, database)\n": "                pass\n"},
        f"{_TESTS}test_the_line_is_written_before_the_request",
    ),
    Safeguard(
        "nothing is sent if the journal cannot be written",
        "backoffice.operations.delivery.send:RequestStart._commit",
        {
            "            self._is_committed = has_begun\n": "",
            "has_begun = begin_request": "self._is_committed = has_begun = begin_request",
        },
        f"{_JOURNALS}test_nothing_is_sent_if_the_line_cannot_be_written",
    ),
    Safeguard(
        "every attempt in the journal is in the database",
        f"{_CHECK}:_lost",
        {"return list(claimed.values())": "return []"},
        f"{_TESTS}test_it_is_found_by_the_journal_without_the_audit_log",
    ),
    Safeguard(
        "an attempt in the journal has begun in the database",
        f"{_CHECK}:_lost",
        {
            "            if begun_at:\n": (
                "            if not begun_at:\n"
                "                claimed = {key: line for key, line in claimed.items() if key[0] != operation}\n"
                "            else:\n"
            )
        },
        f"{_TESTS}test_a_restore_between_the_claim_and_the_beginning_is_found",
    ),
    Safeguard(
        "the audit log has the newest entry that the journal names",
        f"{_CHECK}:_missing_entry",
        {"        if missing:\n": "        if False:\n"},
        f"{_TESTS}test_it_is_found_by_the_audit_log_without_an_attempt",
    ),
    Safeguard(
        "the database is the one that the journal names",
        f"{_CHECK}:_other_identity",
        {' if line.get("identity", identity) != identity': " if False"},
        f"{_TESTS}test_another_server_timeline_or_database_is_found",
    ),
    Safeguard(
        "the newest lines are compared every time",
        f"{_CHECK}:JournalPosition.known",
        {"if line and self.is_ours]": "if False]"},
        f"{_JOURNALS}test_the_newest_lines_are_compared_without_what_the_process_saw",
    ),
    Safeguard(
        "a finding deletes every release",
        f"{_CHECK}:_withdraw_releases",
        {"        withdraw_release(release, DatabaseRestoredError())\n": "        pass\n"},
        f"{_TESTS}test_another_server_timeline_or_database_is_found",
    ),
    Safeguard(
        "the deletion of a release that cannot be checked is in the audit log",
        "backoffice.operations.delivery.release:delete_unchecked_release",
        {"    if not deleted:\n": "    if deleted:\n"},
        f"{_TESTS}test_a_release_that_cannot_be_read_is_deleted_with_an_entry",
    ),
    Safeguard(
        "what a journal proves is not sent after payments are resumed",
        f"{_CHECK}:_check_not_lost",
        {"raise DatabaseRestoredError(Refusal.SENT_BEFORE_RESTORE)": "return"},
        f"{_TESTS}test_what_was_sent_is_not_sent_after_payments_are_resumed",
    ),
    Safeguard(
        "what a journal proves is not offered for sending",
        "backoffice.operations.pages.operation.panel:_cannot_be_sent_now",
        {"may_have_been_sent(operation) or ": ""},
        (
            "tests/operations/pages/test_restore_incident.py::test_an_operation_that_may_have_been_sent_is_"
            "never_offered_for_sending[resumed-open]"
        ),
    ),
    Safeguard(
        "the page does not call it ready to send",
        "backoffice.operations.pages.operation.panel:_approved_text",
        {"    if may_have_been_sent(operation):": "    if False:"},
        (
            "tests/operations/pages/test_restore_incident.py::test_an_operation_that_may_have_been_sent_is_"
            "never_offered_for_sending[paused-open]"
        ),
    ),
    Safeguard(
        "only what two people accepted is left out of the comparison",
        f"{_CHECK}:_advanced",
        {
            "(acceptance.accepted_reports().ends if reported is None else reported).get(key, 0)": (
                "max(acceptance.accepted_reports().ends.values(), default=0)"
            )
        },
        f"{_TESTS}test_a_finding_of_another_journal_accepts_nothing",
    ),
    Safeguard(
        "a lost attempt waits while another of its balance has no transaction",
        "backoffice.operations.delivery.lost_attempts:_can_be_recreated",
        {
            "\n        and (balance is None or not Attempt.objects.holding(balance, operation.amount).exists())": "",
        },
        f"{_TESTS}test_an_attempt_waits_until_its_balance_has_no_other_unmatched_attempt",
    ),
    Safeguard(
        "a journal is known by the first audit entry, whatever it is called",
        f"{_CHECK}:_names_our_log",
        {
            '    if now["origin"] and any(': "    if False and any(",
        },
        f"{_JOURNALS}test_it_is_found_although_the_journal_began_after_the_backup",
    ),
    Safeguard(
        "a journal of an earlier release is known by any audit entry",
        f"{_CHECK}:_names_our_log",
        {
            "return any(named[position] == hash_ for position, hash_ in stored)": "return False",
        },
        f"{_JOURNALS}test_a_database_restored_under_another_name_is_found",
    ),
    Safeguard(
        "a process compares the newest entry that it saw itself",
        f"{_CHECK}:check_database",
        {
            "        lines.append(before.line)\n": "        pass\n",
        },
        f"{_JOURNALS}test_a_process_compares_the_newest_entry_that_it_saw",
    ),
    Safeguard(
        "a response is recorded only for the attempt that was sent",
        "backoffice.operations.delivery.record:record_result",
        {
            "    if not Attempt.objects.same(sent).exists():": "    if False:",
        },
        f"{_JOURNALS}test_a_response_is_not_recorded_for_an_attempt_that_was_given_the_same_id",
    ),
    Safeguard(
        "a request begins only for the attempt that was claimed",
        "backoffice.operations.delivery.send:begin_request",
        {
            "Attempt.objects.same(attempt).filter(": "Attempt.objects.filter(pk=attempt.pk).filter(",
        },
        f"{_JOURNALS}test_a_request_does_not_begin_for_an_attempt_that_was_given_the_same_id",
    ),
    Safeguard(
        "another attempt of the operation hides no lost one",
        f"{_CHECK}:_lost",
        {
            "                claimed.pop((operation, begun_at), None)\n": (
                "                claimed = {key: line for key, line in claimed.items() if key[0] != operation}\n"
            ),
        },
        f"{_JOURNALS}test_another_attempt_with_the_same_number_hides_nothing",
    ),
    Safeguard(
        "what may have been executed does not end as unsent",
        "backoffice.operations.lifecycle.transitions:_check_may_end",
        {
            "        raise MaybeExecutedError\n": "        pass\n",
        },
        f"{_JOURNALS}test_what_may_have_been_executed_does_not_end_as_unsent",
    ),
    Safeguard(
        "the journals are compared before anything expires",
        "backoffice.operations.jobs:expire_due",
        {
            "        restore_check.is_continuous()\n": "        pass\n",
        },
        f"{_JOURNALS}test_what_may_have_been_executed_does_not_end_as_unsent[expire]",
    ),
    Safeguard(
        "nothing is sent once the own journal is gone",
        f"{_CHECK}:_stamps",
        {
            "            problem = gone  #": "            pass  #",
        },
        f"{_JOURNALS}test_nothing_is_sent_once_the_own_journal_is_gone[False]",
    ),
    Safeguard(
        "a journal that cannot be written uses up no release",
        f"{_CHECK}:check_before_send",
        {
            "    check_database(must_write=True)\n": "    check_database()\n",
        },
        f"{_JOURNALS}test_a_journal_that_cannot_be_written_uses_up_no_release[False]",
    ),
    Safeguard(
        "a volume that is nearly full uses up no release",
        f"{_CHECK}:check_before_send",
        {
            "    journal.check_space()\n": "",
        },
        f"{_JOURNALS}test_a_journal_that_cannot_be_written_uses_up_no_release[True]",
    ),
    Safeguard(
        "nothing is sent while a journal cannot be read",
        f"{_CHECK}:check_database",
        {
            "        raise problem\n": "        pass\n",
        },
        f"{_JOURNALS}test_nothing_is_sent_while_a_journal_cannot_be_read",
    ),
    Safeguard(
        "the other journals are compared while one cannot be read",
        f"{_CHECK}:check_database",
        {
            "    is_known = not (": "    is_known = bool(problem) or not (",
        },
        f"{_JOURNALS}test_the_other_journals_are_compared_while_one_cannot_be_read",
    ),
    Safeguard(
        "a release reads the pause once more after its audit entry",
        "backoffice.operations.delivery.release:add_release",
        {
            "seen now.\n    if is_paused():": "seen now.\n    if False:",
        },
        f"{_JOURNALS}test_a_release_that_read_the_pause_too_early_is_refused",
    ),
    Safeguard(
        "a release that was committed with the finding is withdrawn",
        f"{_CHECK}:compare_with_journals",
        {
            "        _withdraw_releases()  #": "        pass  #",
        },
        f"{_JOURNALS}test_a_release_that_was_committed_with_the_finding_is_withdrawn",
    ),
    Safeguard(
        "a machine without a journal pauses payments",
        f"{_CHECK}:check_database",
        {"    if is_missing and acceptance.is_journal_missing():\n": "    if False:\n"},
        f"{_LOST}test_a_lost_journal_pauses_payments[send]",
    ),
    Safeguard(
        "a machine without a journal deletes every release",
        f"{_CHECK}:_report_missing_journal",
        {"            _withdraw_releases()\n": "            pass\n"},
        f"{_LOST}test_a_lost_journal_deletes_every_release",
    ),
    Safeguard(
        "two people let one new journal begin, not every later one",
        f"{_ACCEPTANCE}:_open_report",
        {"None if reported and used and used.position > reported.position else reported": "reported"},
        f"{_LOST}test_a_second_loss_pauses_again",
    ),
    Safeguard(
        "a new journal begins by a sealed resumption",
        f"{_ACCEPTANCE}:is_accepted_since",
        {" and was_resumed(pause)": ""},
        f"{_LOST}test_a_forged_resumption_lets_no_journal_begin",
    ),
    Safeguard(
        "an empty file is no journal",
        f"{_CHECK}:check_database",
        {"one.is_ours and one.stamp.size for one": "one.is_ours for one"},
        f"{_LOST}test_an_empty_file_is_no_journal",
    ),
    Safeguard(
        "not begun is no proof without a journal",
        "backoffice.operations.delivery.record:_lost_commits_since",
        {"(IncidentKind.DATABASE_RESTORED, IncidentKind.JOURNAL_LOST)": "(IncidentKind.DATABASE_RESTORED,)"},
        f"{_LOST}test_not_begun_is_no_proof_without_a_journal",
    ),
    Safeguard(
        "an inserted incident hides no line of a journal",
        f"{_CHECK}:_read_journals",
        {
            "acceptance.accepted_reports().ends": (
                "max((acceptance.reported_during(one.pause).ends for one in Incident.objects.exclude(pause=None)), "
                "default={}, key=len)"
            )
        },
        f"{_ACCEPTED}test_a_forged_incident_hides_no_line",
    ),
    Safeguard(
        "an inserted incident hides nothing that a process saw",
        f"{_CHECK}:_was_reported_since",
        {'pause.ended_at is None or acceptance.is_accepted_since(pause, seen.line["at"])': "True"},
        f"{_ACCEPTED}test_a_forged_incident_hides_nothing_that_a_process_saw",
    ),
    Safeguard(
        "a report is accepted by a resumption that was proposed after it",
        f"{_ACCEPTANCE}:is_accepted_since",
        {"resumption.prepared_at > datetime.fromisoformat(moment) and ": ""},
        f"{_ACCEPTED}test_a_report_is_not_accepted_by_a_resumption_that_was_proposed_before",
    ),
    Safeguard(
        "a checkpoint that contradicts the log pauses payments",
        f"{_CHECK}:check_database",
        {"bool(not is_known or _contradicting_destinations())": "(not is_known)"},
        f"{_ACCEPTED}test_a_checkpoint_that_contradicts_the_log_pauses_payments",
    ),
    Safeguard(
        "a finding drops the orders to send several operations",
        f"{_CHECK}:_withdraw_releases",
        {"    BulkRelease.objects.filter(is_pending=True).update(is_pending=False)\n": ""},
        f"{_ACCEPTED}test_pending_orders_are_dropped_with_the_releases",
    ),
    Safeguard(
        "what a journal shows as executed is not sent again",
        f"{_CHECK}:_check_not_executed",
        {"        raise DatabaseRestoredError(Refusal.SENT_BEFORE_RESTORE)\n": "        pass\n"},
        f"{_ACCEPTED}test_what_the_provider_executed_is_not_sent_again_whatever_the_database_says",
    ),
)
