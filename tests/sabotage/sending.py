"""Safeguards of sending, so that an operation makes one request: claim, balance queue, pause, and recording
the response.
"""

from tests.sabotage.workshop import Safeguard

SENDING = (
    Safeguard(
        "compare-and-set of every move",
        "backoffice.operations.lifecycle.transitions:transition",
        {"filter(pk=operation.pk, status=operation.status)": "filter(pk=operation.pk)"},
        "tests/operations/test_states.py::test_a_move_loses_against_one_that_came_first",
    ),
    Safeguard(
        "only edges of the table of states",
        "backoffice.operations.lifecycle.transitions:transition",
        {"    policy.check_transition(operation, to)\n": ""},
        "tests/operations/test_states.py::test_no_other_edge_can_be_taken[succeeded-failed]",
    ),
    Safeguard(
        "the claim deletes the release with its one-time code",
        "backoffice.operations.delivery.send:_claim",
        {
            (
                "deleted, _ = Release.objects.filter(pk=release.pk, released_at=release.released_at).delete()"
            ): "deleted = Release.objects.filter(pk=release.pk).count()"
        },
        (
            "tests/operations/delivery/test_release.py::test_the_one_time_code_is_stored_encrypted_and_is"
            "_gone_after_the_claim"
        ),
    ),
    Safeguard(
        "the claim is committed durably before the request",
        "backoffice.operations.delivery.send:_claim",
        {"@transaction.atomic(durable=True)": "@transaction.atomic"},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_a_claim_inside_another_transacti"
            "on_is_refused"
        ),
    ),
    Safeguard(
        "the attempt is on record before the first byte",
        "backoffice.operations.delivery.send:_claim",
        {
            "    transition(operation, Status.SENDING)\n": (
                "    make_request(SendClaim(attempt.pk, operation, release.expires_at, otp))\n"
                "    transition(operation, Status.SENDING)\n"
            )
        },
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_what_leaves_is_on_record_before_"
            "its_first_byte"
        ),
    ),
    Safeguard(
        "the one-time code decrypts for the content it was given for only",
        "backoffice.operations.models.operations:Release.bound_to",
        {'f"release:{self.operation_id}:{self.operation.digest}"': 'f"release:{self.operation_id}"'},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_a_one_time_code_given_for_other_con"
            "tent_opens_nothing"
        ),
    ),
    Safeguard(
        "the one-time code decrypts for its operation only",
        "backoffice.operations.models.operations:Release.bound_to",
        {'f"release:{self.operation_id}:{self.operation.digest}"': '"release"'},
        "tests/operations/delivery/test_release.py::test_a_one_time_code_of_another_operation_opens_nothing",
    ),
    Safeguard(
        "what is encrypted is bound to its row",
        "backoffice.core.encryption",
        {
            "plaintext.encode(), bound_to.encode())": "plaintext.encode(), None)",
            "rest[_NONCE_BYTES:], bound_to.encode())": "rest[_NONCE_BYTES:], None)",
        },
        "tests/core/test_encryption.py::test_it_opens_for_no_other_row",
    ),
    Safeguard(
        "an expired release claims nothing",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {("        release.expires_at > now\n        and now"): "        now"},
        "tests/operations/delivery/test_recheck_at_claim.py::test_an_expired_release_is_none",
    ),
    Safeguard(
        "a read that is seconds old is no watermark",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {"        and now - preflight.read_at < timedelta(seconds=settings.SEND_WITHIN_SECONDS)\n": ""},
        (
            "tests/operations/delivery/test_balance_queue.py::test_a_read_that_is_seconds_old_is_no_water"
            "mark_any_more"
        ),
    ),
    Safeguard(
        "the pause is asked in the claim",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {"        and not is_paused()\n": ""},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_while_sending_is_paused_nothing_"
            "is_claimed"
        ),
    ),
    Safeguard(
        "the pause is asked just before the request",
        "backoffice.operations.delivery.send:_check_may_still_send",
        {"    if paused:\n": "    if paused and not in_time():\n"},
        (
            "tests/operations/delivery/test_balance_queue.py::TestPaused::test_what_is_claimed_already"
            "_does_not_leave_any_more"
        ),
    ),
    Safeguard(
        "a sender that was frozen sends nothing",
        "backoffice.operations.delivery.send",
        {
            "    if not in_time():\n": "    if paused:\n",
            "write_only_while(in_time)": "write_only_while(lambda: True)",
        },
        (
            "tests/operations/delivery/test_late_senders.py::test_a_sender_that_was_frozen_past_its_de"
            "adline_sends_nothing"
        ),
    ),
    Safeguard(
        "a sender that was frozen in its last moment sends nothing",
        "backoffice.operations.delivery.send:make_request",
        {"write_only_while(in_time)": "write_only_while(lambda: True)"},
        (
            "tests/operations/delivery/test_late_senders.py::test_a_sender_that_was_frozen_in_its_last"
            "_moment_sends_nothing"
        ),
    ),
    Safeguard(
        "no release is accepted while payments are paused",
        "backoffice.operations.delivery.release:add_release",
        {("    if is_paused():\n        raise PaymentsPausedError\n"): ""},
        ("tests/operations/lifecycle/test_pause.py::test_a_page_left_open_releases_nothing_during_a_pause"),
    ),
    Safeguard(
        "one that fails stops no other",
        "backoffice.core.isolation:run_isolated",
        {"except Exception as exc:": "except MemoryError as exc:"},
        "tests/operations/test_jobs.py::test_a_job_that_fails_stops_no_other_of_the_round",
    ),
    Safeguard(
        "one that failed is left alone for a while",
        "backoffice.core.isolation:_reserve",
        {"not in _busy | postponed()": "not in _busy"},
        "tests/core/test_isolation.py::test_what_the_database_does_to_one_row_stops_no_other",
    ),
    Safeguard(
        "a connection that breaks is of no row",
        "backoffice.core.isolation:_retry_if_disconnected",
        {("        if not _was_disconnected(exc):\n            raise\n"): "        raise\n"},
        (
            "tests/core/test_isolation.py::TestAConnectionThatBreaks::test_under_one_row_is_opened_ane"
            "w_and_the_row_tried_again"
        ),
    ),
    Safeguard(
        "a row that breaks its connection each time is put off",
        "backoffice.core.isolation:_retry_if_disconnected",
        {
            "    connection.close()\n    return work()\n": (
                "    connection.close()\n    return _retry_if_disconnected(work)\n"
            )
        },
        (
            "tests/core/test_isolation.py::TestAConnectionThatBreaks::test_under_the_same_row_twice_pu"
            "ts_off_the_row"
        ),
    ),
    Safeguard(
        "the turn is asked in the claim",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {"        and balance_queue.is_next(release, now)\n": ""},
        "tests/operations/delivery/test_recheck_at_claim.py::test_out_of_turn_nothing_is_claimed",
    ),
    Safeguard(
        "releases of a balance are sent in their order",
        "backoffice.operations.delivery.balance_queue:_releases_ahead",
        {"        Q(released_at__lt=release.released_at) | same_moment, ": "        same_moment, "},
        "tests/operations/delivery/test_balance_queue.py::test_nobody_overtakes",
    ),
    Safeguard(
        "nothing is sent from a balance behind an unknown outcome",
        "backoffice.operations.delivery.balance_queue:is_next",
        {"Attempt.objects.unmatched(release.balance).exists() or ": ""},
        (
            "tests/operations/delivery/test_balance_queue.py::test_behind_an_unknown_outcome_nothing_is_s"
            "ent_from_the_balance"
        ),
    ),
    Safeguard(
        "what was read before another attempt is no watermark",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {("        and balance_queue.newest_attempt_id(release.balance) == preflight.newest_attempt\n"): ""},
        (
            "tests/operations/delivery/test_balance_queue.py::test_a_claim_that_loses_the_balance_at_t"
            "he_last_moment_waits"
        ),
    ),
    Safeguard(
        "the list is searched before a further attempt",
        "backoffice.operations.delivery.send:preflight_read",
        {
            "    if first is not None and isinstance(kind, MoneyKind):\n": "    if first is not None and not kind:\n"
        },
        (
            "tests/operations/delivery/test_balance_queue.py::TestBeforeAFurtherAttempt::test_a_list_with"
            "_a_similar_transaction_keeps_it_from_being_sent_and_people_read_why"
        ),
    ),
    Safeguard(
        "whatever is neither proof nor refusal is unknown",
        "backoffice.operations.delivery.record:send_and_classify",
        {
            "_result_of_error(exc, Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_OUTCOME_UNKNOWN)": (
                "_result_of_error(exc, Status.APPROVED, Outcome.NOT_SENT, Action.OPERATION_RETURNED)"
            )
        },
        "tests/operations/delivery/test_send.py::test_each_answer_leads_to_the_state_that_it_proves",
    ),
    Safeguard(
        "a late answer reopens nothing",
        "backoffice.operations.delivery.record:record_result",
        {
            (
                "    if attempt.closed_at is None and operation.status in {Status.SENDING, Status.UNKNOWN}:\n"
            ): "    if attempt.pk:\n"
        },
        (
            "tests/operations/delivery/test_late_senders.py::test_an_answer_in_review_moves_nothing_an"
            "d_is_on_record"
        ),
    ),
    Safeguard(
        "a late answer that contradicts the end raises an incident",
        "backoffice.operations.delivery.record:_record_late",
        {"    if is_contradiction:\n": "    if not attempt.closed_at:\n"},
        (
            "tests/operations/delivery/test_late_answers.py::test_it_moves_nothing_and_raises_an_incid"
            "ent_where_it_contradicts"
        ),
    ),
    Safeguard(
        "after unknown nothing goes back to approved",
        "backoffice.operations.delivery.record:_apply",
        {"        result = _as_late_result(result)\n": "        pass\n"},
        (
            "tests/operations/delivery/test_late_senders.py::test_proof_after_unknown_that_nothing_lef"
            "t_closes_it_as_failed"
        ),
    ),
    Safeguard(
        "silence is declared only when no answer can come",
        "backoffice.operations.delivery.record:record_timeout",
        {"now > attempt.deadline_at + sender_grace():\n": "now > attempt.started_at:\n"},
        (
            "tests/operations/delivery/test_late_senders.py::test_silence_is_not_declared_while_an_ans"
            "wer_may_still_be_written_down"
        ),
    ),
    Safeguard(
        "silence is declared only while it is sending",
        "backoffice.operations.delivery.record:record_timeout",
        {"    if operation.status == Status.SENDING and now": "    if now"},
        (
            "tests/operations/delivery/test_late_senders.py::test_silence_is_declared_only_while_nothi"
            "ng_was_recorded"
        ),
    ),
    Safeguard(
        "of two sweepers one checks",
        "backoffice.core.leases:claim_due_row",
        {"filter(pk=row.pk, **{due: getattr(row, due)})": "filter(pk=row.pk)"},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_of_two_sweepers_that_saw_the_sam"
            "e_one_looks"
        ),
    ),
    Safeguard(
        "who lost a lease extends it no more",
        "backoffice.core.leases:Lease.verify",
        {"filter(name=self.name, number=self.number)": "filter(name=self.name)"},
        "tests/core/test_leases.py::test_who_lost_the_lease_can_neither_extend_nor_release_it",
    ),
    Safeguard(
        "a process that stood still merges nothing",
        "backoffice.ledger.mirror.passes:merge_with_lease",
        {"        lease.verify()\n": ""},
        ("tests/ledger/mirror/test_processes.py::test_a_process_that_stood_still_merges_nothing_any_more"),
    ),
    Safeguard(
        "an export that another runner holds is not changed",
        "backoffice.reports.models:change_state",
        {", runner=job.runner": ""},
        "tests/reports/exports/test_runner.py::test_a_runner_that_lost_its_lease_changes_nothing",
    ),
)
