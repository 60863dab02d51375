"""What closes an operation only by what the service's list proves."""

from tests.sabotage.workshop import Safeguard

_CONFIRMING = "backoffice/operations/services/confirming.py"
_MODELS = "backoffice/operations/models.py"
_LOOKING = "backoffice/operations/services/looking.py"
_RECORDING = "backoffice/operations/services/recording.py"
_TESTS = "tests/operations"
_MATCHING = f"{_TESTS}/confirming/test_one_that_matches.py"
_DOUBTS = f"{_TESTS}/confirming/test_doubts.py"
_TAKEN = f"{_TESTS}/test_taken_and_failed.py"
_DIFFERS = f"{_MATCHING}::test_a_transaction_that_differs_closes_nothing_and_keeps_no_other_from_it"
_OLDER = f"{_MATCHING}::test_what_was_accepted_takes_an_older_one_only_by_the_balance_before_it"
_LATE = f"{_TESTS}/test_answers_after_the_end.py::TestWhileNothingIsDecided"

IN_THE_PROOF = (
    Safeguard(
        "two passes through the list agree",
        _LOOKING,
        {"        if _gist(again) == _gist(seen):\n": "        if again is not None:\n"},
        f"{_MATCHING}::test_a_list_that_changes_at_every_look_proves_nothing",
    ),
    Safeguard(
        "a list that lags is given its time",
        _CONFIRMING,
        {"attempt.started_at + settles_after()\n": "attempt.started_at\n"},
        f"{_TESTS}/confirming/test_one_that_matches.py"
        "::test_what_could_be_anothers_is_taken_only_when_ours_has_had_the_time_to_be_there",
    ),
    Safeguard(
        "the failure of what was taken for ours proves nothing while ours may come",
        _CONFIRMING,
        {
            "    if attempt.named_at:\n        return record\n": (
                "    if attempt.service_transaction_id:\n        return record\n"
            )
        },
        f"{_TAKEN}::test_its_failure_proves_nothing_while_ours_may_still_stand_in_the_list",
    ),
    Safeguard(
        "what failed may hide ours, which stands beside it",
        _LOOKING,
        {
            '    return attempt.named_at is None and [record.status for record in own] == ["failed"]\n': (
                "    return not own\n"
            )
        },
        f"{_TAKEN}::test_people_decide_between_it_and_another_that_stands_beside_it",
    ),
    Safeguard(
        "people choose no other than the one that the service named",
        "backoffice/operations/kinds/resolution_case.py",
        {"    if attempt.named_at and named != transaction_id:\n": "    if not transaction_id:\n"},
        f"{_TAKEN}::test_people_choose_no_other_than_the_one_that_the_service_named",
    ),
    Safeguard(
        "an id that is too long to be kept is not taken",
        _LOOKING,
        {"    if len(record.transaction_id) > ID_LENGTH:\n": "    if not record.transaction_id:\n"},
        f"{_TAKEN}::test_an_id_that_is_too_long_to_be_kept_is_left_to_people",
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
        f"{_DOUBTS}::test_the_transaction_at_the_watermark_is_never_ours",
    ),
    Safeguard(
        "what was in the list before the request is not ours",
        _MODELS,
        {"watermark_transaction_id, *(self.watermark_shown or [])}": "watermark_transaction_id}"},
        f"{_DOUBTS}::test_what_the_service_showed_before_we_sent_is_never_ours",
    ),
    Safeguard(
        "what the list showed minutes before the request is not ours",
        "backoffice/operations/services/sending.py",
        {"lately=SKEW": "lately=clock.now() - clock.now()"},
        f"{_DOUBTS}::test_what_the_service_showed_before_we_sent_is_never_ours",
    ),
    Safeguard(
        "what left the balance as we saw it is not ours",
        _LOOKING,
        {"    if _left_what_we_saw(attempt, record):\n": "    if not record:\n"},
        f"{_DOUBTS}::test_what_may_have_been_there_before_ours_is_never_taken[before the balance]",
    ),
    Safeguard(
        "what is older than the request by its time is not taken where nothing was accepted",
        _LOOKING,
        {"    if operation.status == Status.UNKNOWN:\n": "    if not operation.status:\n"},
        f"{_DOUBTS}::test_what_may_have_been_there_before_ours_is_never_taken[before ours]",
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
        {"        return MismatchReason.NO_TIME\n": "        return None\n"},
        f"{_DOUBTS}::test_what_may_have_been_there_before_ours_is_never_taken[without a time]",
    ),
    Safeguard(
        "what tells no time stands in the way",
        _LOOKING,
        {" or _tells_no_time(record, attempt))": ")"},
        f"{_DOUBTS}::test_nor_is_another_beside_it[without a time]",
    ),
    Safeguard(
        "what may be ours by a clock that is off stands in the way",
        _MODELS,
        {"SKEW = timedelta(minutes=5)": "SKEW = timedelta(seconds=5)"},
        f"{_DOUBTS}::test_nor_is_another_beside_it[before ours]",
    ),
    Safeguard(
        "an early match fits the balance before it",
        _CONFIRMING,
        {" and _is_next(attempt, record)": ""},
        f"{_MATCHING}::test_it_does_not_at_once_where_something_moved_the_balance_in_between",
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
        f"{_DOUBTS}::test_without_the_services_own_time_nothing_tells_new_from_old",
    ),
    Safeguard(
        "what is another attempt's own is no candidate",
        _LOOKING,
        {"    return unclaimed(agreed(found))\n": "    return agreed(found)\n"},
        f"{_DOUBTS}::test_a_twin_whose_transaction_was_named_does_not_stand_in_the_way",
    ),
    Safeguard(
        "of several candidates none is taken",
        _CONFIRMING,
        {"    if len(seen.found) != 1 or": "    if not seen.found or"},
        f"{_DOUBTS}::test_two_candidates_close_nothing",
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
        f"{_DOUBTS}::test_a_status_we_do_not_know_decides_nothing",
    ),
    Safeguard(
        "failed only when ours cannot come any more",
        _CONFIRMING,
        {"        return attempt.started_at + WINDOW\n": "        return attempt.started_at\n"},
        f"{_MATCHING}::test_a_failed_one_proves_failure_only_when_ours_cannot_come_any_more",
    ),
    Safeguard(
        "what may be ours is looked at again soon",
        _CONFIRMING,
        {"        return min(in_time, soon)\n": "        return in_time\n"},
        f"{_MATCHING}::test_while_the_balance_is_held_the_next_look_is_near",
    ),
    Safeguard(
        "what may fail yet is not taken while ours may come",
        _CONFIRMING,
        {"        record.status == UNDER_WAY and operation": "        not record.status and operation"},
        f"{_MATCHING}::test_a_transaction_under_way_is_not_taken_while_ours_may_come_and_it_may_fail",
    ),
    Safeguard(
        "what is people's to settle is not closed by the machine",
        _CONFIRMING,
        {
            "filter(pk=looked_at.pk, closed_at__isnull=True).first()\n"
            "    if attempt is None or operation.status not in AWAITING_THE_SERVICE:\n": (
                "filter(pk=looked_at.pk, closed_at__isnull=True).first()\n    if attempt is None:\n"
            )
        },
        f"{_DOUBTS}::test_a_look_that_comes_late_leaves_to_people_what_is_theirs_by_now",
    ),
    Safeguard(
        "absence sends nothing and is people's after a day",
        _CONFIRMING,
        {
            "        _move(operation, attempt, Status.REVIEW, Action.OPERATION_ESCALATED, actor)\n": (
                '        _close(operation, attempt, "failed", actor)\n'
            )
        },
        f"{_TESTS}/confirming/test_looks.py::test_absence_sends_nothing_and_ends_in_review_after_a_day",
    ),
    Safeguard(
        "an answer that names another's transaction proves nothing",
        "backoffice/operations/services/recording.py",
        {"        answer = _contradicted(operation, answer)\n": "        pass\n"},
        f"{_DOUBTS}::test_an_answer_that_names_anothers_transaction_proves_nothing_and_says_so",
    ),
)
