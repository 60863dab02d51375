"""The cases of `FAULTS=sample`: each failure once, in three minutes on both databases together.

The larger part runs on PostgreSQL, with Redis and RabbitMQ; on SQLite only what differs there. Names are
those of pytest, without the number of the round. "apart" are four kinds of operation at once, each on a
balance of its own.
"""

import pytest

SAMPLE = {
    "postgresql": {
        "test_a_sender_killed_before_the_claim_is_replaced_and_sends_once[apart]",
        "test_a_sender_killed_before_its_request_begins_leaves_it_approved_and_unsent[send.claimed-apart]",
        "test_a_sender_killed_before_its_request_begins_leaves_it_approved_and_unsent[send.connected-apart]",
        "test_a_sender_killed_after_its_request_began_leaves_it_unknown_and_unsent[send.begun-apart]",
        "test_a_sender_killed_after_the_response_leaves_it_to_a_status_check[send.response_received-apart]",
        "test_a_sender_killed_after_the_response_leaves_it_to_a_status_check[send.recorded-apart]",
        "test_a_status_check_killed_midway_is_repeated[confirm.seen-apart]",
        "test_a_status_check_killed_midway_is_repeated[confirm.closed-apart]",
        "test_a_frozen_status_check_changes_nothing_already_closed[confirm.closed-apart]",
        "test_a_sender_frozen_briefly_continues_and_sends_once[send.claimed-apart]",
        "test_a_sender_frozen_briefly_continues_and_sends_once[send.response_received-apart]",
        "test_a_request_cut_in_transit[in its body-AfterCut.RESET-apart]",
        "test_a_response_cut_in_transit[in its body-AfterCut.RESET-apart]",
        "test_a_worker_killed_during_the_exchange[in its body-apart]",
        "test_a_failed_connection_proves_that_nothing_was_sent",
        "test_a_lagging_list_with_duplicates_closes_nothing_wrongly[withdrawal]",
        "test_all_processes_killed_at_once_recover[redis]",
        "test_the_sweeper_sends_while_the_broker_is_down_and_the_worker_afterwards[rabbitmq]",
        "test_processes_recover_when_the_database_returns",
        "test_an_uncommitted_claim_sends_nothing[withdrawal]",
        "test_a_claim_with_an_unconfirmed_commit_is_never_sent[withdrawal]",
        "test_a_request_whose_beginning_is_not_confirmed_is_never_sent[Side.ANSWER-withdrawal]",
        "test_a_response_that_cannot_be_recorded_at_once_is_recorded_later[withdrawal]",
        "test_two_instances_of_every_process_send_once",
        "test_a_web_process_killed_before_it_enqueues_keeps_the_release",
        "test_one_of_two_concurrent_approvals_counts_where_one_is_enough",
        "test_two_concurrent_releases_make_one_debit",
        "test_concurrent_release_and_cancellation",
        "test_an_edit_of_the_row_during_sending_never_sends_unapproved_content",
        "test_concurrent_claim_and_pause",
        "test_an_approval_while_the_delegation_ends_by_itself_counts_or_is_not_stored",
        "test_concurrent_approval_and_end_of_the_delegation",
        "test_a_payment_waits_for_the_claim_of_another_to_the_same_recipient",
        "test_a_restore_between_release_and_claim_sends_nothing_again",
        "test_a_restore_between_approval_and_release_lets_nobody_release_again",
        "test_what_was_paid_before_a_restore_without_a_journal_is_resolved_by_two_people",
        "test_a_concurrent_release_and_resolution_as_paid_end_once",
        "test_a_request_begins_or_its_operation_is_returned",
        "test_two_concurrent_claims_of_one_balance_are_sent_one_after_the_other",
        "test_two_sweepers_and_two_workers_send_and_close_each_operation_once",
        "test_every_write_is_here",
        "test_whatever_the_answer_a_write_is_requested_once[published-balances.withdraw-lost, executed]",
        "test_whatever_the_answer_a_write_is_requested_once[published-payments.create-unreadable, executed]",
        "test_whatever_the_answer_a_write_is_requested_once[published-accounts.create-redirected]",
        "test_whatever_the_answer_a_write_is_requested_once[published-api_keys.generate-lost, executed]",
        "test_whatever_the_answer_a_write_is_requested_once[specification-api_keys.create-lost, executed]",
        "test_whatever_the_answer_a_write_is_requested_once[specification-callbacks.set_url-unavailable, executed]",
    },
    "sqlite": {
        "test_a_sender_killed_before_its_request_begins_leaves_it_approved_and_unsent[send.connected-conversion]",
        "test_a_sender_killed_after_its_request_began_leaves_it_unknown_and_unsent[send.begun-conversion]",
        "test_a_sender_killed_after_the_response_leaves_it_to_a_status_check[send.response_received-conversion]",
        "test_a_sender_frozen_briefly_continues_and_sends_once[send.claimed-conversion]",
        "test_a_response_cut_in_transit[in its body-AfterCut.RESET-apart]",
        "test_nothing_is_sent_while_the_sqlite_file_is_read_only",
        "test_nothing_is_sent_while_the_disk_is_full",
        "test_a_restore_between_release_and_claim_sends_nothing_again",
        "test_two_concurrent_releases_make_one_debit",
        "test_a_request_begins_or_its_operation_is_returned",
        "test_two_sweepers_and_two_workers_send_and_close_each_operation_once",
        "test_whatever_the_answer_a_write_is_requested_once[published-payments.create-lost, executed]",
    },
}


def name_of(cell: pytest.Item) -> str:
    """The name without the number of the round; a sample has one round only."""
    return cell.name.replace("[1-", "[", 1).removesuffix("[1]")
