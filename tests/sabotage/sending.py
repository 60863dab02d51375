"""Safeguards of sending, so that an operation makes one request: claim, balance queue, pause, and recording
the response.
"""

from tests.sabotage.workshop import Safeguard

SENDING = (
    Safeguard(
        "compare-and-set of every move",
        "backoffice.operations.lifecycle.transitions:transition",
        {"filter(pk=operation.pk, status=operation.status)": "filter(pk=operation.pk)"},
        "tests/operations/test_states.py::test_a_transition_loses_to_an_earlier_concurrent_one",
    ),
    Safeguard(
        "only edges of the table of states",
        "backoffice.operations.lifecycle.transitions:transition",
        {"    policy.check_transition(operation, to)\n": ""},
        "tests/operations/test_states.py::test_unlisted_transitions_are_refused[succeeded-failed]",
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
                "    make_request(SendClaim(attempt, operation, release.expires_at, otp))\n"
                "    transition(operation, Status.SENDING)\n"
            )
        },
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_the_attempt_is_recorded_before_the_"
            "request_is_sent"
        ),
    ),
    Safeguard(
        "the one-time code decrypts for the content it was given for only",
        "backoffice.operations.models.operations:Release.bound_to",
        {'f"release:{self.operation_id}:{self.operation.digest}"': 'f"release:{self.operation_id}"'},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_a_one_time_code_for_other_content_c"
            "annot_be_decrypted"
        ),
    ),
    Safeguard(
        "the one-time code decrypts for its operation only",
        "backoffice.operations.models.operations:Release.bound_to",
        {'f"release:{self.operation_id}:{self.operation.digest}"': '"release"'},
        "tests/operations/delivery/test_release.py::test_a_one_time_code_is_bound_to_its_operation",
    ),
    Safeguard(
        "what is encrypted is bound to its row",
        "backoffice.core.encryption",
        {
            "plaintext.encode(), bound_to.encode())": "plaintext.encode(), None)",
            "rest[_NONCE_BYTES:], bound_to.encode())": "rest[_NONCE_BYTES:], None)",
        },
        "tests/core/test_encryption.py::test_a_ciphertext_is_bound_to_its_row",
    ),
    Safeguard(
        "an expired release claims nothing",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {("        release.expires_at > now\n        and now"): "        now"},
        "tests/operations/delivery/test_recheck_at_claim.py::test_an_expired_release_is_invalid",
    ),
    Safeguard(
        "no request begins with a code that has ended",
        "backoffice.operations.delivery.send:_begin_by",
        {"latest if release.encrypted_otp is None else min(latest, release.expires_at)": "latest"},
        "tests/operations/delivery/test_otp.py::test_a_request_does_not_begin_with_a_code_that_has_ended",
    ),
    Safeguard(
        "a read that is seconds old is no watermark",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {"        and now - preflight.read_at < timedelta(seconds=settings.SEND_WITHIN_SECONDS)\n": ""},
        ("tests/operations/delivery/test_balance_queue.py::test_a_read_older_than_seconds_is_no_watermark"),
    ),
    Safeguard(
        "the look before sending has a time limit",
        "backoffice.operations.delivery.send:preflight_read",
        {"        before_request=check_time,\n": ""},
        "tests/operations/delivery/test_look_alikes.py::test_a_list_that_takes_too_long_to_read_ends_the_release",
    ),
    Safeguard(
        "the pause is asked in the claim",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {"        and not is_paused()\n": ""},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_nothing_is_claimed_while_payments_a"
            "re_paused"
        ),
    ),
    Safeguard(
        "the pause is asked just before the request",
        "backoffice.operations.delivery.send",
        {
            "    if paused:\n": "    if paused and not in_time():\n",
            "                if is_paused():\n": "                if is_paused() and not self._in_time():\n",
        },
        (
            "tests/operations/delivery/test_balance_queue.py::TestPaused::test_a_claimed_operation_is_not"
            "_sent_during_a_pause"
        ),
    ),
    Safeguard(
        "a sender that was frozen sends nothing",
        "backoffice.operations.delivery.send",
        {
            "    if not in_time():\n": "    if paused:\n",
            "and self.refusal is None and self._in_time():": "and self.refusal is None:",
            "return self._is_committed and self._in_time()": "return self._is_committed",
        },
        (
            "tests/operations/delivery/test_late_senders.py::test_a_sender_frozen_past_its_deadline_sends"
            "_nothing"
        ),
    ),
    Safeguard(
        "a sender that was frozen in its last moment sends nothing",
        "backoffice.operations.delivery.send",
        {
            "and self.refusal is None and self._in_time():": "and self.refusal is None:",
            "return self._is_committed and self._in_time()": "return self._is_committed",
            ", begin_by__gt=now": "",
        },
        (
            "tests/operations/delivery/test_late_senders.py::test_a_sender_frozen_just_before_sending_sen"
            "ds_nothing"
        ),
    ),
    Safeguard(
        "no release is accepted while payments are paused",
        "backoffice.operations.delivery.release:add_release",
        {
            "    if is_paused():\n        raise PaymentsPausedError\n    if Release": "    if Release",
            "seen now.\n    if is_paused():": "seen now.\n    if False:",
        },
        ("tests/operations/lifecycle/test_pause.py::test_a_page_left_open_releases_nothing_during_a_pause"),
    ),
    Safeguard(
        "one that fails stops no other",
        "backoffice.core.isolation:run_isolated",
        {"except Exception as exc:": "except MemoryError as exc:"},
        "tests/operations/test_jobs.py::test_a_failed_job_does_not_stop_the_others_of_the_round",
    ),
    Safeguard(
        "one that failed is left alone for a while",
        "backoffice.core.isolation:_reserve",
        {"not in _busy | postponed()": "not in _busy"},
        "tests/core/test_isolation.py::test_a_database_error_on_one_row_does_not_stop_the_others",
    ),
    Safeguard(
        "a connection that breaks is of no row",
        "backoffice.core.isolation:_retry_if_disconnected",
        {("        if not _was_disconnected(exc):\n            raise\n"): "        raise\n"},
        (
            "tests/core/test_isolation.py::TestLostConnection::test_a_connection_lost_at_a_row_is_reopene"
            "d_and_the_row_retried"
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
            "tests/core/test_isolation.py::TestLostConnection::test_a_row_that_loses_the_connection_twice"
            "_is_postponed"
        ),
    ),
    Safeguard(
        "the turn is asked in the claim",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {"        and balance_queue.is_next(release, now)\n": ""},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_an_operation_behind_another_is_not_"
            "claimed"
        ),
    ),
    Safeguard(
        "releases of a balance are sent in their order",
        "backoffice.operations.delivery.balance_queue:_queued_before",
        {"        Q(released_at__lt=release.released_at) | same_moment, ": "        same_moment, "},
        "tests/operations/delivery/test_balance_queue.py::test_operations_of_a_balance_are_sent_in_order",
    ),
    Safeguard(
        "nothing is sent that could be mistaken for an unknown outcome",
        "backoffice.operations.delivery.balance_queue:is_next",
        {"holding.exists() or ": ""},
        "tests/operations/delivery/test_balance_queue.py::test_an_unknown_outcome_holds_back_what_has_its_amount",
    ),
    Safeguard(
        "an attempt whose amount is not known holds its whole balance",
        "backoffice.operations.models.operations:AttemptManager.holding_amount",
        {" | Q(amount__isnull=True)": ""},
        "tests/operations/delivery/test_balance_queue.py::test_an_attempt_of_unknown_amount_holds_back_its_"
        "whole_balance",
    ),
    Safeguard(
        "nothing is sent from a balance while a request is under way",
        "backoffice.operations.models.operations:AttemptManager.holding",
        {"self.unmatched(balance).filter(is_under_way=True) | holds_amount": "holds_amount"},
        "tests/operations/delivery/test_balance_queue.py::test_nothing_is_sent_while_a_request_is_under_way",
    ),
    Safeguard(
        "the strict order of a balance, where it is set",
        "backoffice.operations.models.operations:AttemptManager.holding_amount",
        {"if settings.STRICT_BALANCE_ORDER:": "if False:"},
        "tests/operations/delivery/test_balance_queue.py::test_the_strict_order_holds_back_the_whole_balance",
    ),
    Safeguard(
        "what was read before another attempt is no watermark",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {("        and balance_queue.newest_attempt_id(release.balance) == preflight.newest_attempt\n"): ""},
        (
            "tests/operations/delivery/test_balance_queue.py::test_a_claim_that_loses_the_race_for_the_ba"
            "lance_waits"
        ),
    ),
    Safeguard(
        "the list is searched before a further attempt",
        "backoffice.operations.delivery.send:preflight_read",
        {"    if first is not None:\n": "    if first is not None and not kind:\n"},
        (
            "tests/operations/delivery/test_balance_queue.py::TestSimilarTransactionListed::test_a_simila"
            "r_transaction_in_the_list_blocks_sending_with_a_reason"
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
        "tests/operations/delivery/test_send.py::test_each_response_leads_to_the_status_it_proves",
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
            "tests/operations/delivery/test_late_senders.py::test_a_response_during_review_changes_nothin"
            "g_and_is_audited"
        ),
    ),
    Safeguard(
        "a late answer that contradicts the end raises an incident",
        "backoffice.operations.delivery.record:_record_late",
        {"    if is_contradiction:\n": "    if not attempt.closed_at:\n"},
        (
            "tests/operations/delivery/test_late_responses.py::"
            "test_a_late_response_changes_nothing_and_raises_an_incident_on_contradiction"
        ),
    ),
    Safeguard(
        "after unknown nothing goes back to approved",
        "backoffice.operations.delivery.record:_apply",
        {"        result = _as_late_result(result)\n": "        pass\n"},
        (
            "tests/operations/delivery/test_late_senders.py::test_proof_of_nothing_sent_after_unknown_clo"
            "ses_as_failed"
        ),
    ),
    Safeguard(
        "silence is declared only when no answer can come",
        "backoffice.operations.delivery.record:record_timeout",
        {"now > attempt.deadline_at + sender_grace():\n": "now > attempt.started_at:\n"},
        (
            "tests/operations/delivery/test_late_senders.py::test_an_attempt_is_not_declared_unknown_whil"
            "e_a_response_may_be_recorded"
        ),
    ),
    Safeguard(
        "silence is declared only while it is sending",
        "backoffice.operations.delivery.record:record_timeout",
        {"    if operation.status != Status.SENDING:\n": "    if operation.is_closed:\n"},
        (
            "tests/operations/delivery/test_late_senders.py::test_an_attempt_is_declared_unknown_only_whi"
            "le_no_response_is_recorded"
        ),
    ),
    Safeguard(
        "a request begins by a commit before its first byte",
        "backoffice.operations.delivery.send:RequestStart._commit",
        {"has_begun = begin_request(self._attempt)": "has_begun = True"},
        (
            "tests/operations/delivery/test_request_start.py::test_the_beginning_is_committed_before_the_"
            "provider_receives_the_request"
        ),
    ),
    Safeguard(
        "the beginning of a request is a commit of its own",
        "backoffice.operations.delivery.send:begin_request",
        {"@transaction.atomic(durable=True)\n": "@transaction.atomic\n"},
        (
            "tests/operations/delivery/test_request_start.py::test_the_beginning_is_never_part_of_another"
            "_transaction"
        ),
    ),
    Safeguard(
        "compare-and-set of the sender: what was returned does not begin",
        "backoffice.operations.delivery.send:begin_request",
        {"closed_at__isnull=True, ": ""},
        (
            "tests/operations/delivery/test_request_start.py::test_a_sender_whose_operation_was_returned_"
            "meanwhile_sends_nothing"
        ),
    ),
    Safeguard(
        "compare-and-set of the sender: in time by the database's clock",
        "backoffice.operations.delivery.send:begin_request",
        {", begin_by__gt=now": ""},
        (
            "tests/operations/delivery/test_request_start.py::test_a_sender_that_is_late_by_the_databases"
            "_clock_sends_nothing"
        ),
    ),
    Safeguard(
        "a sender that must not begin writes nothing",
        "backoffice.operations.delivery.send:RequestStart.may_write",
        {"return self._is_committed and self._in_time()": "return self._in_time()"},
        (
            "tests/operations/delivery/test_request_start.py::test_a_sender_whose_operation_was_returned_"
            "meanwhile_sends_nothing"
        ),
    ),
    Safeguard(
        "a database that fails at the beginning of a request stops it",
        "backoffice.operations.delivery.send:RequestStart._commit",
        {
            "            self.refusal = NotSentError.of(DATABASE_GONE)\n": (
                "            self._is_committed = True\n"
            )
        },
        (
            "tests/operations/delivery/test_request_start.py::test_nothing_is_sent_if_the_beginning_canno"
            "t_be_committed"
        ),
    ),
    Safeguard(
        "a sender that was frozen between the commit and the first byte sends nothing",
        "backoffice.operations.delivery.send:RequestStart.may_write",
        {"return self._is_committed and self._in_time()": "return self._is_committed"},
        (
            "tests/operations/delivery/test_request_start.py::test_a_sender_frozen_after_the_beginning_se"
            "nds_nothing"
        ),
    ),
    Safeguard(
        "compare-and-set of the sweeper: a request that began is never returned",
        "backoffice.operations.delivery.record:_not_begun",
        {"begun_at__isnull=True, ": ""},
        ("tests/operations/delivery/test_request_start.py::test_a_request_that_began_is_never_returned"),
    ),
    Safeguard(
        "compare-and-set of the sweeper: it closes before it returns",
        "backoffice.operations.delivery.record:_close_not_begun",
        {"ours.update(outcome=Outcome.NOT_SENT, closed_at=now) == 1": "ours.count() <= 1"},
        ("tests/operations/delivery/test_request_start.py::test_a_request_that_began_is_never_returned"),
    ),
    Safeguard(
        "a request is given up only when its sender is late",
        "backoffice.operations.delivery.record:_not_begun",
        {", begin_by__lt=now - sender_grace()": ", begin_by__isnull=False"},
        (
            "tests/operations/delivery/test_request_start.py::test_the_sweeper_returns_it_within_seconds_"
            "and_not_before"
        ),
    ),
    Safeguard(
        "an attempt of an earlier release is never returned",
        "backoffice.operations.delivery.record:_not_begun",
        {
            "return Q(closed_at__isnull=True, begun_at__isnull=True, begin_by__lt=now - sender_grace())": (
                "return Q(closed_at__isnull=True, begun_at__isnull=True) & "
                "(Q(begin_by__lt=now - sender_grace()) | Q(begin_by=None))"
            )
        },
        (
            "tests/operations/delivery/test_request_start.py::test_an_attempt_of_an_earlier_release_is_ne"
            "ver_returned"
        ),
    ),
    Safeguard(
        "of two sweepers one checks",
        "backoffice.core.leases:claim_due_row",
        {"filter(pk=row.pk, **{due: getattr(row, due)})": "filter(pk=row.pk)"},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_one_of_two_concurrent_sweepers_chec"
            "ks_the_status"
        ),
    ),
    Safeguard(
        "who lost a lease extends it no more",
        "backoffice.core.leases:Lease.verify",
        {"filter(name=self.name, number=self.number)": "filter(name=self.name)"},
        "tests/core/test_leases.py::test_a_lost_lease_can_be_neither_extended_nor_released",
    ),
    Safeguard(
        "a process that stood still merges nothing",
        "backoffice.ledger.mirror.passes:merge_with_lease",
        {"        lease.verify()\n": ""},
        ("tests/ledger/mirror/test_processes.py::test_a_process_that_lost_its_lease_merges_nothing"),
    ),
    Safeguard(
        "an export that another runner holds is not changed",
        "backoffice.reports.models:change_state",
        {", runner=job.runner": ""},
        "tests/reports/exports/test_runner.py::test_a_runner_that_lost_its_lease_changes_nothing",
    ),
    Safeguard(
        "what an open incident calls executed is not sent",
        "backoffice.operations.policy:_check_not_paid",
        {"        raise errors.OperationError(Refusal.OPEN_INCIDENT)\n": "        return\n"},
        "tests/operations/pages/operation/test_reason_not_sent.py"
        "::test_an_incident_that_calls_it_executed_stops_a_release_that_waits",
    ),
    Safeguard(
        "what repeats a payment that an open incident calls executed is not sent",
        "backoffice.operations.policy:_check_not_paid",
        {"    if about:\n": "    if about is None:\n"},
        "tests/operations/reconciliation/test_later_contradictions.py"
        "::test_a_payment_that_failed_and_is_executed_after_all_is_not_paid_again",
    ),
    Safeguard(
        "a code that the provider calls used is followed by no other",
        "backoffice.operations.delivery.send:make_request",
        {"            if claim.otp_step is None or not exc.is_used:\n": "            if exc is not None:\n"},
        "tests/operations/delivery/test_managed_codes.py"
        "::test_a_code_that_the_provider_calls_used_is_followed_by_no_other",
    ),
    Safeguard(
        "a refusal of a request that arrived before proves nothing",
        "payments_gateway.transport:Transport.send_once",
        {"            if not isinstance(rejection, OtpRejectedError):\n": "            if not rejection:\n"},
        "tests/payments_gateway/transport/test_money_calls.py"
        "::test_a_refusal_of_a_request_that_arrived_before_proves_nothing",
    ),
    Safeguard(
        "a similar transaction that no operation explains stops the release",
        "backoffice.operations.delivery.send:preflight_read",
        {"    look_alikes.check_none_new(release, kind, payload, watermark)\n": ""},
        "tests/operations/delivery/test_look_alikes.py::test_a_similar_transaction_since_the_preparation_stops_the_release",
    ),
    Safeguard(
        "look-alikes are searched in the mirror, too",
        "backoffice.operations.delivery.look_alikes:check_none_new",
        {"(known | listed)": "listed"},
        (
            "tests/operations/delivery/test_look_alikes.py::test_a_similar_transaction_since_the_preparation_is_"
            "found_in_the_mirror"
        ),
    ),
    Safeguard(
        "the provider's clock hides no look-alike from the comparison",
        "backoffice.operations.delivery.look_alikes:check_none_new",
        {" - clock_lag(watermark.provider_time)": ""},
        (
            "tests/operations/delivery/test_look_alikes.py::test_the_providers_clock_hides_no_similar_transaction"
            "[an hour behind]"
        ),
    ),
    Safeguard(
        "the list is read back to the preparation without the provider's clock",
        "backoffice.ledger.provider_list:read_watermark",
        {" if recent_from else []": " if recent_from and first.answered_at else []"},
        (
            "tests/operations/delivery/test_look_alikes.py::test_the_providers_clock_hides_no_similar_transaction"
            "[not known]"
        ),
    ),
    Safeguard(
        "a few older records on the first page do not end the search for look-alikes",
        "backoffice.ledger.provider_list:_records_since",
        {"len(first.records) - len(found) >= _OLDER_RECORDS": "len(first.records) > len(found)"},
        (
            "tests/operations/delivery/test_look_alikes.py::test_a_similar_transaction_on_the_second_page_stops_"
            "the_release"
        ),
    ),
    Safeguard(
        "a reading that began before another attempt of the balance is not enough",
        "backoffice.operations.delivery.send:SendingRun.reading",
        {
            "return ahead.attempt.pk, ahead.reading\n": (
                "return balance_queue.newest_attempt_id(balance), ahead.reading\n"
            )
        },
        (
            "tests/operations/delivery/test_send_queue.py::test_what_was_read_before_another_attempt_of_the_"
            "balance_is_not_enough"
        ),
    ),
    Safeguard(
        "what was read long before the claim is read again",
        "backoffice.operations.delivery.send:ReadAhead.serves",
        {"return is_recent and ": "return "},
        "tests/operations/delivery/test_send_queue.py::test_what_was_read_long_ago_is_read_again",
    ),
    Safeguard(
        "what was read during a request is not enough for what could be mistaken for it",
        "backoffice.operations.delivery.send:ReadAhead.serves",
        {" and not (self.is_beside and self.attempt.holds(operation.amount))": ""},
        (
            "tests/operations/delivery/test_send_queue.py::test_what_was_read_during_a_request_is_not_enough_for_"
            "what_could_be_mistaken_for_it"
        ),
    ),
    Safeguard(
        "in strict order nothing is read during a request",
        "backoffice.operations.models.operations:Attempt.holds",
        {"settings.STRICT_BALANCE_ORDER or ": ""},
        (
            "tests/operations/delivery/test_send_queue.py::test_for_an_operation_that_could_be_mistaken_the_"
            "provider_is_read_after_the_response_before_it[200000-True]"
        ),
    ),
    Safeguard(
        "the balance is not read during a request, which changes it",
        "backoffice.operations.delivery.send:SendingRun._begin",
        {"with_balance=not is_beside": "with_balance=True"},
        (
            "tests/operations/delivery/test_send_queue.py::test_for_another_amount_the_list_is_read_while_the_"
            "request_before_it_is_made"
        ),
    ),
    Safeguard(
        "a response is recorded although the provider cannot be read ahead",
        "backoffice.operations.delivery.send:SendingRun._begin",
        {
            "        except (DatabaseError, InterfaceError, GatewayError) as exc:": "        except KeyError as exc:"
        },
        (
            "tests/operations/delivery/test_send_queue.py::test_a_response_is_recorded_although_the_database_fails_"
            "before_the_next_reading"
        ),
    ),
    Safeguard(
        "a list that does not continue as before is read again",
        "backoffice.ledger.provider_list:ListMemory.continued",
        {" or same != remembered[: len(same)]": ""},
        (
            "tests/operations/delivery/test_send_queue.py::test_a_page_that_does_not_continue_as_before_is_read_"
            "again_with_those_after_it"
        ),
    ),
    Safeguard(
        "a page of the newest records is no beginning of the whole list",
        "backoffice.ledger.provider_list:read_watermark",
        {"first if newest.is_whole_page else None": "first"},
        (
            "tests/operations/delivery/test_send_queue.py::test_a_page_that_does_not_continue_as_before_is_read_"
            "again_with_those_after_it"
        ),
    ),
    Safeguard(
        "exactly the look-alikes that were found are declared other payments",
        "backoffice.operations.delivery.release:_declare_look_alikes",
        {" or set(another_payment.transaction_ids) != set(found_at)": ""},
        (
            "tests/operations/delivery/test_look_alikes.py::test_it_is_released_again_only_with_a_reason_for_exa"
            "ctly_what_was_found[of another transaction]"
        ),
    ),
    Safeguard(
        "the second factor is newer than the look-alikes",
        "backoffice.operations.delivery.release:_declare_look_alikes",
        {
            "if second_factor_at is None or second_factor_at < max(found_at.values()):": "if second_factor_at is None:"
        },
        "tests/operations/delivery/test_look_alikes.py::test_the_second_factor_must_be_newer_than_the_finding",
    ),
    Safeguard(
        "a declared look-alike is never matched to the operation",
        "backoffice.operations.delivery.send:_open_attempt",
        {"[*preflight.seen_ids, *release.look_alikes]": "{*preflight.seen_ids} - {*release.look_alikes}"},
        "tests/operations/delivery/test_look_alikes.py::test_a_declared_transaction_is_never_matched_to_the_operation",
    ),
    Safeguard(
        "an entered one-time code is kept no longer than it is valid",
        "backoffice.operations.delivery.release:_add_code",
        {"    release.expires_at = one_time_codes.valid_until(release.released_at)\n": ""},
        "tests/operations/delivery/test_otp.py::test_a_released_code_expires_with_its_step",
    ),
    Safeguard(
        "an entered one-time code is used once",
        "backoffice.operations.delivery.otp:remember_entered",
        {"        raise OtpUsedError(used.reference)\n": "        return\n"},
        "tests/operations/delivery/test_otp.py::test_a_code_is_entered_once",
    ),
    Safeguard(
        "the authenticator secret is stored encrypted",
        "backoffice.operations.lifecycle.otp_secret:keep_until_decided",
        {"    row.encrypt(secret.address())\n": "    row.encrypted_address = secret.address().encode()\n"},
        "tests/operations/kinds/test_otp_secret.py::test_it_waits_encrypted_and_bound_to_its_operation",
    ),
    Safeguard(
        "the authenticator secret is deleted with an operation that is not approved",
        "backoffice.operations.lifecycle.transitions:transition",
        {"    if to in _ENDS_UNSENT:\n": "    if to in _ENDS_UNSENT and to == operation.status:\n"},
        "tests/operations/kinds/test_otp_secret.py::test_it_is_deleted_with_an_operation_that_is_not_approved[reject]",
    ),
    Safeguard(
        "compare-and-set of the step of a managed code",
        "backoffice.operations.delivery.otp:reserve_step",
        {
            "        if unused.update(last_step=step) != 1:\n": "        if unused.update(last_step=step) > 1:\n"
        },
        "tests/operations/delivery/test_managed_codes.py::test_a_step_that_was_taken_meanwhile_is_not_taken_again",
    ),
    Safeguard(
        "a managed code is made only after the claim",
        "backoffice.operations.delivery.send:_claim",
        {
            "    return SendClaim(attempt, operation, begin_by, otp, step)\n": (
                "    otp = one_time_codes.make_code(step) if step else otp\n"
                "    return SendClaim(attempt, operation, begin_by, otp, step)\n"
            )
        },
        "tests/operations/delivery/test_managed_codes.py::test_the_code_is_made_after_the_claim",
    ),
    Safeguard(
        "no more than three managed codes are tried automatically",
        "backoffice.operations.delivery.release:renew_release",
        {"    if refused % MOST_CODES == 0:\n": "    if refused < 0:\n"},
        (
            "tests/operations/delivery/test_managed_codes.py::test_after_three_refused_codes_it_stays_approved_"
            "with_an_incident"
        ),
    ),
)
