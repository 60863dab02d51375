"""Safeguards of outcomes: an operation is closed only by what the provider's list proves."""

from tests.sabotage.workshop import Safeguard

PROOF = (
    Safeguard(
        "an account without a name is not taken for the new one of this name",
        "backoffice.operations.kinds.bank_account:BankAccountKind.is_done",
        {"        if not all(account.account_name for account in accounts):\n": "        if not accounts:\n"},
        (
            "tests/operations/kinds/test_bank_account.py::test_a_lost_response_is_confirmed_only_by_a_new_a"
            "ccount_of_this_name_and_currency"
        ),
    ),
    Safeguard(
        "an account with neither a name nor assets is not read as having no number",
        "payments_gateway.resources.accounts:_parse_account",
        {"    if not (assets or currency or ": "    if not (True or assets or currency or "},
        "tests/payments_gateway/resources/envelopes/test_accounts.py::test_an_account_with_neither_name_nor_assets_is_refused",
    ),
    Safeguard(
        "two passes through the list agree",
        "backoffice.ledger.provider_list:ListReading.stable",
        {"            if seen == before:\n": "            if before is not None:\n"},
        ("tests/operations/outcome/test_single_candidate.py::test_an_unstable_list_closes_nothing"),
    ),
    Safeguard(
        "a list of which a page could not be read is not taken for a whole one",
        "backoffice.ledger.provider_list:_Pass._read_one",
        {"            self._error = exc\n": ""},
        "tests/ledger/test_provider_list.py::test_a_reading_that_failed_is_not_taken_for_a_whole_one",
    ),
    Safeguard(
        "a list that lags is given its time",
        "backoffice.operations.outcome.confirmation:_earliest_claim_time",
        {"attempt.started_at + listing_delay()\n": "attempt.started_at\n"},
        (
            "tests/operations/outcome/test_single_candidate.py::test_an_uncertain_candidate_is_accepted_o"
            "nly_after_the_listing_delay"
        ),
    ),
    Safeguard(
        "the failure of what was taken for ours proves nothing while ours may come",
        "backoffice.operations.outcome.confirmation:_decisive_record",
        {
            "    if attempt.id_received_at:\n        return record\n": (
                "    if attempt.provider_transaction_id:\n        return record\n"
            )
        },
        (
            "tests/operations/outcome/test_claimed_then_failed.py::test_a_failed_candidate_proves_nothing"
            "_while_another_may_appear"
        ),
    ),
    Safeguard(
        "what failed may hide ours, which stands beside it",
        "backoffice.operations.matching:_may_be_wrongly_claimed",
        {
            '    return attempt.id_received_at is None and [record.status for record in own] == ["failed"]\n': (
                "    return not own\n"
            )
        },
        ("tests/operations/outcome/test_claimed_then_failed.py::test_a_second_candidate_sends_it_to_review"),
    ),
    Safeguard(
        "people choose no other than the one that the provider named",
        "backoffice.operations.kinds.resolution.case:claim_problem",
        {"attempt and attempt.id_received_at and received != transaction_id:\n": "not transaction_id:\n"},
        (
            "tests/operations/outcome/test_claimed_then_failed.py::test_a_resolution_cannot_choose_anothe"
            "r_than_the_named_transaction"
        ),
    ),
    Safeguard(
        "a response names no transaction from before the request",
        "backoffice.operations.delivery.record:_without_older_transaction",
        {"    if not named or not was_listed_before(attempt, named):\n": "    if named or not named:\n"},
        "tests/operations/outcome/test_rejected_candidates.py"
        "::test_a_response_naming_a_transaction_from_before_the_request_proves_nothing",
    ),
    Safeguard(
        "an id that is too long to be kept is not taken",
        "backoffice.operations.matching:_mismatch",
        {
            "    if len(record.transaction_id) > TRANSACTION_ID_LENGTH:\n": "    if not record.transaction_id:\n"
        },
        (
            "tests/operations/outcome/test_claimed_then_failed.py::test_a_transaction_id_too_long_to_stor"
            "e_goes_to_review"
        ),
    ),
    Safeguard(
        "candidates are newer than the watermark",
        "backoffice.operations.matching:is_in_search_window",
        {"attempt.search_from <= record.created_at <= attempt": "record.created_at <= attempt"},
        (
            "tests/operations/outcome/test_single_candidate.py::test_a_differing_transaction_closes_nothi"
            "ng_and_blocks_no_other"
        ),
    ),
    Safeguard(
        "candidates are of the window in which ours can come",
        "backoffice.operations.matching:is_in_search_window",
        {"record.created_at <= attempt.search_until": "record.created_at"},
        (
            "tests/operations/outcome/test_single_candidate.py::test_a_differing_transaction_closes_nothi"
            "ng_and_blocks_no_other"
        ),
    ),
    Safeguard(
        "the transaction at the watermark is not ours",
        "backoffice.operations.models.operations:Attempt.is_after_watermark",
        {"not in {self.watermark_transaction_id, *(": "not in {*("},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_the_transaction_at_the_watermark_"
            "is_rejected"
        ),
    ),
    Safeguard(
        "what was in the list before the request is not ours",
        "backoffice.operations.models.operations:Attempt.is_after_watermark",
        {"watermark_transaction_id, *(self.watermark_seen_ids or [])}": "watermark_transaction_id}"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_transaction_listed_before_sendi"
            "ng_is_rejected"
        ),
    ),
    Safeguard(
        "what the list showed minutes before the request is not ours",
        "backoffice.operations.delivery.send:preflight_read",
        {"[record.transaction_id for record in watermark.recent if kind.is_match(payload, record)]": "[]"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_failed_transaction_listed_before"
            "_sending_is_rejected"
        ),
    ),
    Safeguard(
        "what left the balance as we saw it is not ours",
        "backoffice.operations.matching:_mismatch",
        {"    if _preceded_watermark(attempt, record):\n": "    if not record:\n"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_candidate_that_may_predate_the_"
            "attempt_is_rejected[before the balance]"
        ),
    ),
    Safeguard(
        "what is older than the request by its time is not taken where nothing was accepted",
        "backoffice.operations.matching:_mismatch_of_an_older",
        {"    if operation.status == Status.UNKNOWN:\n": "    if not operation.status:\n"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_candidate_that_may_predate_the_"
            "attempt_is_rejected[before ours]"
        ),
    ),
    Safeguard(
        "what is older than the request by its time is not taken without the balance",
        "backoffice.operations.matching:_mismatch_of_an_older",
        {"    if not is_next_after_watermark(attempt, record):\n": "    if False:\n"},
        (
            "tests/operations/outcome/test_single_candidate.py::test_an_accepted_attempt_takes_an_older_c"
            "andidate_only_by_its_balance_before"
        ),
    ),
    Safeguard(
        "a balance that was not provided matches nothing",
        "backoffice.operations.matching:is_next_after_watermark",
        {"record.previous_balance is not None and record": "record.previous_balance is None or record"},
        (
            "tests/operations/outcome/test_single_candidate.py::test_an_accepted_attempt_takes_an_older_c"
            "andidate_only_by_its_balance_before[not reported]"
        ),
    ),
    Safeguard(
        "a record without a time is never matched",
        "backoffice.operations.matching:_mismatch",
        {"        return MismatchReason.NO_TIME\n": "        return None\n"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_candidate_that_may_predate_the_"
            "attempt_is_rejected[without a time]"
        ),
    ),
    Safeguard(
        "a record without a time prevents a match",
        "backoffice.operations.matching:find_candidates",
        {" or _is_new_without_time(record, attempt)\n": "\n"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_rejected_candidate_blocks_anoth"
            "er_beside_it[without a time]"
        ),
    ),
    Safeguard(
        "what may be ours by a clock that is off prevents a match",
        "backoffice.operations.models.operations:Attempt",
        {"CLOCK_SKEW = timedelta(minutes=5)": "CLOCK_SKEW = timedelta(seconds=5)"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_rejected_candidate_blocks_anoth"
            "er_beside_it[before ours]"
        ),
    ),
    Safeguard(
        "an early match fits the balance before it",
        "backoffice.operations.outcome.confirmation:_earliest_claim_time",
        {" and _follows_watermark(attempt, record)": ""},
        (
            "tests/operations/outcome/test_single_candidate.py::test_the_only_candidate_waits_if_the_bala"
            "nce_moved_in_between"
        ),
    ),
    Safeguard(
        "without the provider's time there is no candidate",
        "backoffice.operations.matching",
        {
            "    if attempt.watermark_provider_time is None:\n        return []": (
                "    if False:\n        return []"
            ),
            (
                "        attempt.watermark_provider_time is not None\n        and record.created"
            ): "        record.created",
            "    if watermark_time is None or record": "    if record",
            "    watermark_time = attempt.watermark_provider_time\n": "    watermark_time = attempt.search_from\n",
        },
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_candidates_are_rejected_without_t"
            "he_providers_time"
        ),
    ),
    Safeguard(
        "beside another open attempt an older transaction is no candidate",
        "backoffice.operations.matching:_mismatch",
        {" or not _was_sent_beside_another(attempt)": " or True"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_candidate_that_is_seconds_older_is_r"
            "ejected_if_another_attempt_of_the_balance_was_open[10-unknown]"
        ),
    ),
    Safeguard(
        "of older transactions beside another open attempt only the next one after the watermark is a candidate",
        "backoffice.operations.matching:is_next_after_watermark",
        {" and record.previous_balance == attempt.watermark_balance": ""},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_beside_another_attempt_only_the_next_transac"
            "tion_after_the_watermark_counts_as_newer[1-unknown]"
        ),
    ),
    Safeguard(
        "a transfer to a name in another case is not claimed",
        "backoffice.operations.matching:find_match",
        {"and kind.is_similar_only(payload, found[0])": "and False"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_transfer_to_a_name_in_another_case_is_left_to_"
            "people[Ada.Obi-unknown]"
        ),
    ),
    Safeguard(
        "without a balance that also holds beside one that was closed while the list was read",
        "backoffice.operations.matching:_was_sent_beside_another",
        {"timedelta() if attempt.watermark_balance is not None else LONGEST_READING": "timedelta()"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_without_a_balance_the_same_holds_beside_an_"
            "attempt_that_was_closed_while_the_list_was_read[False-unknown]"
        ),
    ),
    Safeguard(
        "what is another attempt's own is no candidate",
        "backoffice.operations.matching:find_candidates",
        {
            "return exclude_claimed(reading.stable(is_candidate), but_by=operation if with_own else None)": (
                "return reading.stable(is_candidate)"
            )
        },
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_an_identical_operation_with_a_nam"
            "ed_transaction_does_not_block_it"
        ),
    ),
    Safeguard(
        "of several candidates none is taken",
        "backoffice.operations.outcome.confirmation:_single_candidate",
        {"        len(match.candidates) != 1\n": "        not match.candidates\n"},
        "tests/operations/outcome/test_rejected_candidates.py::test_two_candidates_close_nothing",
    ),
    Safeguard(
        "an attempt that has a transaction takes no other",
        "backoffice.operations.matching:claim_transaction",
        {"Attempt.objects.filter(free, pk=attempt.pk)": "Attempt.objects.filter(pk=attempt.pk)"},
        (
            "tests/operations/delivery/test_late_responses.py::TestOpenAttempt::"
            "test_an_attempt_with_a_transaction_is_matched_to_no_other"
        ),
    ),
    Safeguard(
        "a late refusal of what seemed under way is put before people",
        "backoffice.operations.delivery.record:_record_late",
        {"        _escalate(operation, attempt, result)\n": ""},
        (
            "tests/operations/delivery/test_late_responses.py::TestOpenAttempt::"
            "test_a_late_refusal_moves_it_to_review"
        ),
    ),
    Safeguard(
        "a status we do not know decides nothing",
        "backoffice.operations.outcome.confirmation:_single_candidate",
        {"        or match.candidates[0].status not in {*_OUTCOMES, PROCESSING}\n": ""},
        ("tests/operations/outcome/test_rejected_candidates.py::test_an_unknown_status_closes_nothing"),
    ),
    Safeguard(
        "failed only when ours cannot come any more",
        "backoffice.operations.outcome.confirmation:_earliest_claim_time",
        {"        return attempt.execution_deadline\n": "        return attempt.started_at\n"},
        (
            "tests/operations/outcome/test_single_candidate.py::test_a_failed_candidate_closes_only_after"
            "_the_execution_deadline"
        ),
    ),
    Safeguard(
        "what may be ours is checked again soon",
        "backoffice.operations.outcome.confirmation:_next_check",
        {"        return min(scheduled, early)\n": "        return scheduled\n"},
        (
            "tests/operations/outcome/test_single_candidate.py::test_checks_are_frequent_while_the_balanc"
            "e_is_blocked"
        ),
    ),
    Safeguard(
        "what may fail yet is not taken while ours may come",
        "backoffice.operations.outcome.confirmation:_earliest_claim_time",
        {"        record.status == PROCESSING and operation": "        not record.status and operation"},
        (
            "tests/operations/outcome/test_single_candidate.py::test_a_processing_candidate_is_not_accept"
            "ed_while_another_may_appear"
        ),
    ),
    Safeguard(
        "what is people's to resolve is not closed automatically",
        "backoffice.operations.outcome.confirmation:_record_check",
        {
            (
                "filter(pk=checked.pk, closed_at__isnull=True).first()\n"
                "    if attempt is None or operation.status not in AWAITING_PROVIDER:\n"
            ): ("filter(pk=checked.pk, closed_at__isnull=True).first()\n    if attempt is None:\n")
        },
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_late_check_does_not_close_an_op"
            "eration_in_review"
        ),
    ),
    Safeguard(
        "absence sends nothing and goes to people after a day",
        "backoffice.operations.outcome.confirmation:_apply_match",
        {
            (
                "        _transition(operation, attempt, Status.REVIEW, Action.OPERATION_ESCALATED, actor)\n"
            ): '        _close(operation, attempt, "failed", actor)\n'
        },
        (
            "tests/operations/outcome/test_check_times.py::test_an_unmatched_operation_is_not_resent_and_"
            "goes_to_review_after_a_day"
        ),
    ),
    Safeguard(
        "an answer that names another's transaction proves nothing",
        "backoffice.operations.delivery.record:_apply",
        {"        result = _contradicted(operation, result)\n": "        pass\n"},
        (
            "tests/operations/outcome/test_rejected_candidates.py::test_a_response_naming_anothers_transa"
            "ction_proves_nothing_and_is_reported"
        ),
    ),
)
