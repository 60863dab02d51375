"""What closes an operation only by proof, lets people settle the rest, and keeps the log of it."""

from tests.sabotage.workshop import Safeguard

_CONFIRMING = "backoffice/operations/services/confirming.py"
_MODELS = "backoffice/operations/models.py"
_LOOKING = "backoffice/operations/services/looking.py"
_RESOLVING = "backoffice/operations/services/resolving.py"
_FORM = "backoffice/operations/kinds/resolution_form.py"
_RECORDING = "backoffice/operations/services/recording.py"
_AUDIT = "backoffice/audit/services.py"
_VERIFICATION = "backoffice/audit/verification.py"
_TESTS = "tests/operations"
_DIFFERS = (
    f"{_TESTS}/test_confirming.py::test_a_transaction_that_differs_closes_nothing_and_keeps_no_other_from_it"
)
_AS = f"{_TESTS}/test_resolving_as_a_transaction.py"
_OLDER = (
    f"{_TESTS}/test_confirming.py::test_what_was_accepted_takes_an_older_one_only_by_the_balance_before_it"
)
_ACCEPTED = f"{_TESTS}/test_resolving_what_was_accepted.py"
_LATE = f"{_TESTS}/test_answers_after_the_end.py::TestWhileNothingIsDecided"

IN_THE_PROOF = (
    Safeguard(
        "two passes through the list agree",
        _LOOKING,
        {"        if _gist(again) == _gist(seen):\n": "        if again is not None:\n"},
        f"{_TESTS}/test_confirming.py::test_a_list_that_changes_at_every_look_proves_nothing",
    ),
    Safeguard(
        "a list that lags is given its time",
        _CONFIRMING,
        {"attempt.started_at + settles_after()\n": "attempt.started_at\n"},
        f"{_TESTS}/test_confirming.py"
        "::test_what_could_be_anothers_is_taken_only_when_ours_has_had_the_time_to_be_there",
    ),
    Safeguard(
        "candidates are newer than the watermark",
        _LOOKING,
        {"attempt.sought_from <= record.created_at <= attempt": "record.created_at <= attempt"},
        _DIFFERS,
    ),
    Safeguard(
        "candidates are of the window in which ours can come",
        _LOOKING,
        {"record.created_at <= attempt.sought_until": "record.created_at"},
        _DIFFERS,
    ),
    Safeguard(
        "the transaction at the watermark is not ours",
        _MODELS,
        {"not in {self.watermark_transaction_id, *(": "not in {*("},
        f"{_TESTS}/test_confirming.py::test_the_transaction_at_the_watermark_is_never_ours",
    ),
    Safeguard(
        "what was in the list before the request is not ours",
        _MODELS,
        {"watermark_transaction_id, *(self.watermark_shown or [])}": "watermark_transaction_id}"},
        f"{_TESTS}/test_confirming.py::test_what_the_service_showed_before_we_sent_is_never_ours",
    ),
    Safeguard(
        "what the list showed minutes before the request is not ours",
        "backoffice/operations/services/sending.py",
        {"lately=SKEW": "lately=clock.now() - clock.now()"},
        f"{_TESTS}/test_confirming.py::test_what_the_service_showed_before_we_sent_is_never_ours",
    ),
    Safeguard(
        "what left the balance as we saw it is not ours",
        _LOOKING,
        {"    if _left_what_we_saw(attempt, record):\n": "    if not record:\n"},
        f"{_TESTS}/test_confirming.py::test_what_may_have_been_there_before_ours_is_never_taken[before the balance]",
    ),
    Safeguard(
        "what is older than the request by its time is not taken where nothing was accepted",
        _LOOKING,
        {"    if operation.status == Status.UNKNOWN:\n": "    if not operation.status:\n"},
        f"{_TESTS}/test_confirming.py::test_what_may_have_been_there_before_ours_is_never_taken[before ours]",
    ),
    Safeguard(
        "what is older than the request by its time is not taken without the balance",
        _LOOKING,
        {"    if not found_it_so:\n": "    if found_it_so is None:\n"},
        _OLDER,
    ),
    Safeguard(
        "a balance that was not told fits nothing",
        _LOOKING,
        {"record.previous_balance is not None and record": "record.previous_balance is None or record"},
        f"{_OLDER}[not told]",
    ),
    Safeguard(
        "what tells no time is never taken",
        _LOOKING,
        {'        return "it tells no time"\n': '        return ""\n'},
        f"{_TESTS}/test_confirming.py::test_what_may_have_been_there_before_ours_is_never_taken[without a time]",
    ),
    Safeguard(
        "what tells no time stands in the way",
        _LOOKING,
        {" or _tells_no_time(record, attempt))": ")"},
        f"{_TESTS}/test_confirming.py::test_nor_is_another_beside_it[without a time]",
    ),
    Safeguard(
        "what may be ours by a clock that is off stands in the way",
        _MODELS,
        {"SKEW = timedelta(minutes=5)": "SKEW = timedelta(seconds=5)"},
        f"{_TESTS}/test_confirming.py::test_nor_is_another_beside_it[before ours]",
    ),
    Safeguard(
        "an early match fits the balance before it",
        _CONFIRMING,
        {" and _is_next(attempt, record)": ""},
        f"{_TESTS}/test_confirming.py::test_it_does_not_at_once_where_something_moved_the_balance_in_between",
    ),
    Safeguard(
        "without the service's time there is no candidate",
        _LOOKING,
        {
            "    if attempt.watermark_service_time is None:\n        return []": "    if False:\n        return []",
            "        attempt.watermark_service_time is not None\n        and record.created": "        record.created",
            "    if mark is None or record": "    if record",
            "    mark = attempt.watermark_service_time\n": "    mark = attempt.sought_from\n",
        },
        f"{_TESTS}/test_confirming.py::test_without_the_services_own_time_nothing_tells_new_from_old",
    ),
    Safeguard(
        "what is another attempt's own is no candidate",
        _LOOKING,
        {"    return unclaimed(agreed(found))\n": "    return agreed(found)\n"},
        f"{_TESTS}/test_confirming.py::test_a_twin_whose_transaction_was_named_does_not_stand_in_the_way",
    ),
    Safeguard(
        "of several candidates none is taken",
        _CONFIRMING,
        {"    if len(seen.found) != 1 or": "    if not seen.found or"},
        f"{_TESTS}/test_confirming.py::test_two_candidates_close_nothing",
    ),
    Safeguard(
        "an attempt that has a transaction takes no other",
        _RECORDING,
        {"Attempt.objects.filter(free, pk=attempt.pk)": "Attempt.objects.filter(pk=attempt.pk)"},
        f"{_LATE}::test_an_attempt_that_has_a_transaction_takes_no_other",
    ),
    Safeguard(
        "a late refusal of what seemed under way is put before people",
        _RECORDING,
        {"        _ask_people(operation, attempt, answer)\n": ""},
        f"{_LATE}::test_a_refusal_puts_it_before_people",
    ),
    Safeguard(
        "a status we do not know decides nothing",
        _CONFIRMING,
        {" or seen.found[0].status not in {*_ENDS, UNDER_WAY}:\n": ":\n"},
        f"{_TESTS}/test_confirming.py::test_a_status_we_do_not_know_decides_nothing",
    ),
    Safeguard(
        "failed only when ours cannot come any more",
        _CONFIRMING,
        {"        return attempt.started_at + WINDOW\n": "        return attempt.started_at\n"},
        f"{_TESTS}/test_confirming.py::test_a_failed_one_proves_failure_only_when_ours_cannot_come_any_more",
    ),
    Safeguard(
        "what may be ours is looked at again soon",
        _CONFIRMING,
        {"        return min(in_time, soon)\n": "        return in_time\n"},
        f"{_TESTS}/test_confirming.py::test_while_the_balance_is_held_the_next_look_is_near",
    ),
    Safeguard(
        "what may fail yet is not taken while ours may come",
        _CONFIRMING,
        {"        record.status == UNDER_WAY and operation": "        not record.status and operation"},
        f"{_TESTS}/test_confirming.py::test_a_transaction_under_way_is_not_taken_while_ours_may_come_and_it_may_fail",
    ),
    Safeguard(
        "what is people's to settle is not closed by the machine",
        _CONFIRMING,
        {
            "filter(pk=attempt_id, closed_at__isnull=True).first()\n"
            "    if attempt is None or operation.status not in AWAITING_THE_SERVICE:\n": (
                "filter(pk=attempt_id, closed_at__isnull=True).first()\n    if attempt is None:\n"
            )
        },
        f"{_TESTS}/test_confirming.py::test_a_look_that_comes_late_leaves_to_people_what_is_theirs_by_now",
    ),
    Safeguard(
        "absence sends nothing and is people's after a day",
        _CONFIRMING,
        {
            "        _move(operation, attempt, Status.REVIEW, Action.OPERATION_ESCALATED, actor)\n": (
                '        _close(operation, attempt, "failed", actor)\n'
            )
        },
        f"{_TESTS}/test_confirming.py::test_absence_sends_nothing_and_ends_in_review_after_a_day",
    ),
    Safeguard(
        "an answer that names another's transaction proves nothing",
        "backoffice/operations/services/recording.py",
        {"        answer = _contradicted(operation, answer)\n": "        pass\n"},
        f"{_TESTS}/test_confirming.py::test_an_answer_that_names_anothers_transaction_proves_nothing_and_says_so",
    ),
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
            "    if is_another or not bind_transaction(attempt, seen.transaction_id):\n": "    if is_another:\n"
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
        {"            incidents.report(attempt.operation, what=what": "            dict(what=what"},
        f"{_TESTS}/test_watching.py::test_a_success_that_the_service_calls_failed_by_now_is_news",
    ),
    Safeguard(
        "a second debit is told also where the service named the first",
        "backoffice/operations/services/watching.py",
        {"            yield from ((TWICE, debit) for debit in debits)\n": "            return\n"},
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
