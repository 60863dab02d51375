"""The cases of `FAULTS=sample`: each failure once, in three minutes on both databases together.

The larger part runs on PostgreSQL, with Redis and RabbitMQ; on SQLite only what differs there. Names are
those of pytest, without the number of the round. "apart" are four kinds of operation at once, each on a
balance of its own.
"""

import pytest

SAMPLE = {
    "postgresql": {
        "test_killed_before_the_claim_it_is_sent_once_by_another[apart]",
        "test_killed_after_the_claim_it_is_never_sent_and_stays_open[send.claimed-apart]",
        "test_killed_after_the_claim_it_is_never_sent_and_stays_open[send.before_request-apart]",
        "test_killed_after_the_answer_it_is_closed_by_the_list[send.response_received-apart]",
        "test_killed_after_the_answer_it_is_closed_by_the_list[send.recorded-apart]",
        "test_a_check_killed_midway_is_repeated[confirm.seen-apart]",
        "test_a_check_killed_midway_is_repeated[confirm.closed-apart]",
        "test_a_check_frozen_midway_changes_nothing_that_others_closed[confirm.closed-apart]",
        "test_frozen_for_a_moment_it_goes_on_and_sends_once[send.claimed-apart]",
        "test_frozen_for_a_moment_it_goes_on_and_sends_once[send.response_received-apart]",
        "test_a_request_that_is_cut[in its body-AfterCut.RESET-apart]",
        "test_an_answer_that_is_cut[in its body-AfterCut.RESET-apart]",
        "test_a_worker_killed_while_the_wire_is_busy[in its body-apart]",
        "test_no_connection_is_proof_that_nothing_was_sent",
        "test_a_list_that_lags_and_shows_a_record_twice_closes_nothing_wrongly[withdrawal]",
        "test_all_killed_at_once_and_started_again[redis]",
        "test_while_the_broker_is_away_the_sweeper_sends_and_afterwards_the_worker[rabbitmq]",
        "test_the_database_comes_back",
        "test_a_claim_that_was_not_committed_sends_nothing[withdrawal]",
        "test_a_claim_whose_commit_was_not_confirmed_is_never_sent[withdrawal]",
        "test_an_answer_that_cannot_be_recorded_at_once_is_recorded_later[withdrawal]",
        "test_two_of_everything_send_once",
        "test_a_web_process_killed_before_it_enqueues_keeps_the_release",
        "test_one_of_two_concurrent_approvals_counts_where_one_is_enough",
        "test_two_concurrent_releases_make_one_debit",
        "test_concurrent_release_and_cancellation",
        "test_an_edit_of_the_row_during_sending_never_sends_unapproved_content",
        "test_concurrent_claim_and_pause",
        "test_two_concurrent_claims_of_one_balance_are_sent_one_after_the_other",
        "test_two_sweepers_and_two_workers_send_and_close_each_operation_once",
    },
    "sqlite": {
        "test_killed_after_the_claim_it_is_never_sent_and_stays_open[send.before_request-conversion]",
        "test_killed_after_the_answer_it_is_closed_by_the_list[send.response_received-conversion]",
        "test_frozen_for_a_moment_it_goes_on_and_sends_once[send.claimed-conversion]",
        "test_an_answer_that_is_cut[in its body-AfterCut.RESET-apart]",
        "test_a_file_that_cannot_be_written_sends_nothing",
        "test_a_full_disk_sends_nothing",
        "test_two_releases_are_one_debit",
        "test_two_sweepers_and_two_workers_send_once_and_close_once",
    },
}


def name_of(cell: pytest.Item) -> str:
    """The name without the number of the round; a sample has one round only."""
    return cell.name.replace("[1-", "[", 1).removesuffix("[1]")
