"""What makes one request of one operation: the claim, the turn, the pause, and what is recorded of the answer."""

from tests.sabotage.workshop import Safeguard

_SENDING = "backoffice/operations/services/sending.py"
_TURNS = "backoffice/operations/turns.py"
_RECORDING = "backoffice/operations/services/recording.py"
_TESTS = "tests/operations"
_AT_THE_CLAIM = f"{_TESTS}/test_last_look.py"

IN_THE_SERVICES = (
    Safeguard(
        "compare-and-set of every move",
        "backoffice/operations/services/moves.py",
        {"filter(pk=operation.pk, status=operation.status)": "filter(pk=operation.pk)"},
        f"{_TESTS}/test_states.py::test_a_move_loses_against_one_that_came_first",
    ),
    Safeguard(
        "only edges of the table of states",
        "backoffice/operations/services/moves.py",
        {"    policy.check_can_move(operation, to)\n": ""},
        f"{_TESTS}/test_states.py::test_no_other_edge_can_be_taken[succeeded-failed]",
    ),
    Safeguard(
        "the claim deletes the release with its token",
        _SENDING,
        {
            "deleted, _ = Release.objects.filter(pk=release.pk, released_at=release.released_at).delete()": (
                "deleted = Release.objects.filter(pk=release.pk).count()"
            )
        },
        f"{_TESTS}/test_releasing.py::test_the_token_is_stored_encrypted_and_is_gone_after_the_claim",
    ),
    Safeguard(
        "the claim is committed durably before the request",
        _SENDING,
        {"@transaction.atomic(durable=True)": "@transaction.atomic"},
        f"{_AT_THE_CLAIM}::test_a_claim_inside_another_transaction_is_refused",
    ),
    Safeguard(
        "the attempt is on record before the first byte",
        _SENDING,
        {
            "    move(operation, Status.SENDING)\n": (
                "    make_request(Claim(attempt.pk, operation, release.expires_at, token))\n"
                "    move(operation, Status.SENDING)\n"
            )
        },
        f"{_AT_THE_CLAIM}::test_what_leaves_is_on_record_before_its_first_byte",
    ),
    Safeguard(
        "the token opens for the content it was given for only",
        "backoffice/operations/models.py",
        {'f"release:{self.operation_id}:{self.operation.digest}"': 'f"release:{self.operation_id}"'},
        f"{_AT_THE_CLAIM}::test_a_token_given_for_other_content_opens_nothing",
    ),
    Safeguard(
        "the token opens for its operation only",
        "backoffice/operations/models.py",
        {'f"release:{self.operation_id}:{self.operation.digest}"': '"release"'},
        f"{_TESTS}/test_releasing.py::test_a_token_of_another_operation_opens_nothing",
    ),
    Safeguard(
        "what is sealed is bound to its row",
        "backoffice/core/vault.py",
        {
            "plaintext.encode(), bound_to.encode())": "plaintext.encode(), None)",
            "rest[_NONCE_BYTES:], bound_to.encode())": "rest[_NONCE_BYTES:], None)",
        },
        "tests/core/test_vault.py::test_it_opens_for_no_other_row",
    ),
    Safeguard(
        "a word that ran out claims nothing",
        _SENDING,
        {"        release.expires_at > now\n        and now": "        now"},
        f"{_AT_THE_CLAIM}::test_a_word_that_ran_out_is_none",
    ),
    Safeguard(
        "a look that is seconds old is no watermark",
        _SENDING,
        {"        and now - preflight.at < timedelta(seconds=settings.SEND_WITHIN_SECONDS)\n": ""},
        f"{_TESTS}/test_turns.py::test_a_look_that_is_seconds_old_is_no_watermark_any_more",
    ),
    Safeguard(
        "the pause is asked in the claim",
        _SENDING,
        {"        and not is_paused()\n": ""},
        f"{_AT_THE_CLAIM}::test_while_sending_is_paused_nothing_is_claimed",
    ),
    Safeguard(
        "the pause is asked just before the request",
        _SENDING,
        {"    if paused:\n": "    if paused and not in_time():\n"},
        f"{_TESTS}/test_turns.py::TestPaused::test_what_is_claimed_already_does_not_leave_any_more",
    ),
    Safeguard(
        "a sender that was frozen sends nothing",
        _SENDING,
        {
            "    if not in_time():\n": "    if paused:\n",
            "writing_only_while(in_time)": "writing_only_while(lambda: True)",
        },
        f"{_TESTS}/test_sending_too_late.py::test_a_sender_that_was_frozen_past_its_deadline_sends_nothing",
    ),
    Safeguard(
        "a sender that was frozen in its last moment sends nothing",
        _SENDING,
        {"writing_only_while(in_time)": "writing_only_while(lambda: True)"},
        f"{_TESTS}/test_sending_too_late.py::test_a_sender_that_was_frozen_in_its_last_moment_sends_nothing",
    ),
    Safeguard(
        "no word to send is taken while sending is paused",
        "backoffice/operations/services/releasing.py",
        {"    if is_paused():\n        raise SendingPausedError\n": ""},
        f"{_TESTS}/test_pause.py::test_a_page_left_open_gives_no_word_to_send_while_it_stands",
    ),
    Safeguard(
        "one that fails stops no other",
        "backoffice/operations/services/apart.py",
        {"except Exception as exc:": "except MemoryError as exc:"},
        f"{_TESTS}/test_sweeping.py::test_a_job_that_fails_stops_no_other_of_the_round",
    ),
    Safeguard(
        "one that failed is left alone for a while",
        "backoffice/operations/services/apart.py",
        {"not in _busy | put_off()": "not in _busy"},
        f"{_TESTS}/test_apart.py::test_what_the_database_does_to_one_row_stops_no_other",
    ),
    Safeguard(
        "a connection that breaks is of no row",
        "backoffice/operations/services/apart.py",
        {"        if not _was_cut_off(exc):\n            raise\n": "        raise\n"},
        f"{_TESTS}/test_apart.py::TestAConnectionThatBreaks"
        "::test_under_one_row_is_opened_anew_and_the_row_tried_again",
    ),
    Safeguard(
        "a row that breaks its connection each time is put off",
        "backoffice/operations/services/apart.py",
        {
            "    connection.close()\n    return work()\n": (
                "    connection.close()\n    return _over_a_new_connection_if_cut_off(work)\n"
            )
        },
        f"{_TESTS}/test_apart.py::TestAConnectionThatBreaks::test_under_the_same_row_twice_puts_off_the_row",
    ),
    Safeguard(
        "what is looked at again is looked at one by one",
        "backoffice/operations/services/watching.py",
        {"    for_each(look_again, names, failed=tell_nobody)\n": "    list(map(look_again, names))\n"},
        f"{_TESTS}/test_sweeping.py::test_one_that_cannot_be_looked_at_again_stops_no_other",
    ),
    Safeguard(
        "the turn is asked in the claim",
        _SENDING,
        {"        and turns.has_come(release, now)\n": ""},
        f"{_AT_THE_CLAIM}::test_out_of_turn_nothing_is_claimed",
    ),
    Safeguard(
        "releases leave a balance in their order",
        _TURNS,
        {"        Q(released_at__lt=release.released_at) | same_moment, ": "        same_moment, "},
        f"{_TESTS}/test_turns.py::test_nobody_overtakes",
    ),
    Safeguard(
        "nothing leaves a balance behind one in doubt",
        _TURNS,
        {"Attempt.objects.in_doubt(release.balance).exists() or ": ""},
        f"{_TESTS}/test_turns.py::test_behind_one_in_doubt_nothing_leaves_the_balance",
    ),
    Safeguard(
        "what was read before another attempt is no watermark",
        _SENDING,
        {"        and turns.newest_attempt(release.balance) == preflight.newest_attempt\n": ""},
        f"{_TESTS}/test_turns.py::test_a_claim_that_loses_the_balance_at_the_last_moment_waits",
    ),
    Safeguard(
        "the list is searched before a further attempt",
        _SENDING,
        {
            "    if first is not None and isinstance(kind, MoneyKind):\n": "    if first is not None and not kind:\n"
        },
        f"{_TESTS}/test_turns.py::TestBeforeAFurtherAttempt"
        "::test_a_list_that_shows_what_looks_like_it_keeps_it_here_and_people_are_told",
    ),
    Safeguard(
        "whatever is neither proof nor refusal is unknown",
        _RECORDING,
        {
            "_answer(exc, Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_UNRESOLVED)": (
                "_answer(exc, Status.APPROVED, Outcome.NOT_SENT, Action.OPERATION_RETURNED)"
            )
        },
        f"{_TESTS}/test_sending.py::test_each_answer_leads_to_the_state_that_it_proves",
    ),
    Safeguard(
        "a late answer reopens nothing",
        _RECORDING,
        {
            "    if attempt.closed_at is None and operation.status in {Status.SENDING, Status.UNKNOWN}:\n": (
                "    if attempt.pk:\n"
            )
        },
        f"{_TESTS}/test_sending_too_late.py::test_an_answer_in_review_moves_nothing_and_is_on_record",
    ),
    Safeguard(
        "a late answer that contradicts the end raises an incident",
        _RECORDING,
        {"    if is_news:\n": "    if not attempt.closed_at:\n"},
        f"{_TESTS}/test_answers_after_the_end.py"
        "::test_it_moves_nothing_and_raises_an_incident_where_it_contradicts",
    ),
    Safeguard(
        "after unknown nothing goes back to approved",
        _RECORDING,
        {"        answer = _as_late(answer)\n": "        pass\n"},
        f"{_TESTS}/test_sending_too_late.py::test_proof_after_unknown_that_nothing_left_closes_it_as_failed",
    ),
    Safeguard(
        "silence is declared only when no answer can come",
        _RECORDING,
        {"now > attempt.deadline_at + grace():\n": "now > attempt.started_at:\n"},
        f"{_TESTS}/test_sending_too_late.py::test_silence_is_not_declared_while_an_answer_may_still_be_written_down",
    ),
    Safeguard(
        "silence is declared only while it is sending",
        _RECORDING,
        {"    if operation.status == Status.SENDING and now": "    if now"},
        f"{_TESTS}/test_sending_too_late.py::test_silence_is_declared_only_while_nothing_was_recorded",
    ),
    Safeguard(
        "of two sweepers one looks",
        "backoffice/operations/services/sweeping.py",
        {"filter(pk=attempt.pk, next_check_at=attempt.next_check_at)": "filter(pk=attempt.pk)"},
        f"{_TESTS}/test_last_look.py::test_of_two_sweepers_that_saw_the_same_one_looks",
    ),
)
