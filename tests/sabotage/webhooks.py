"""Safeguards of webhooks: who is accepted, how often, and that only a read of the provider changes an
operation.
"""

from tests.sabotage.workshop import Safeguard

WEBHOOKS = (
    Safeguard(
        "what the provider did not sign starts nothing",
        "backoffice.webhooks.processing:_fill_in",
        {"DeliveryVerification(received.signature_status.value)": "DeliveryVerification.VALID"},
        "tests/webhooks/test_processing.py::test_an_unsigned_delivery_triggers_nothing",
    ),
    Safeguard(
        "the same delivery is kept once",
        "backoffice.webhooks.processing:_fill_in",
        {"delivery.identity = received.identity": 'delivery.identity = f"{delivery.received_at:%s%f}"'},
        "tests/webhooks/test_storing.py::test_a_hundred_concurrent_copies_are_stored_once",
    ),
    Safeguard(
        "whoever has a delivery can write it anew and it stays the same",
        "backoffice.webhooks.processing:_fill_in",
        {"delivery.identity = received.identity": "delivery.identity = delivery.digest"},
        "tests/webhooks/test_storing.py::test_the_same_data_in_another_body_is_a_repeat",
    ),
    Safeguard(
        "a repeated delivery starts nothing",
        "backoffice.webhooks.storing:_UNLESS_VALID",
        {"THEN webhooks_delivery.{0}": "THEN EXCLUDED.{0}"},
        "tests/webhooks/test_processing.py::test_a_repeated_delivery_triggers_nothing_even_after_a_month",
    ),
    Safeguard(
        "deliveries that are not valid are bounded",
        "backoffice.webhooks.processing:receive_delivery",
        {"        _delete_oldest(delivery)\n": "        pass\n"},
        "tests/webhooks/test_storing.py::test_invalid_deliveries_are_limited_to_the_newest",
    ),
    Safeguard(
        "invalid deliveries do not displace tests",
        "backoffice.webhooks.processing:_delete_oldest",
        {"[DeliveryVerification.VALID, DeliveryVerification.TEST]": "[DeliveryVerification.VALID]"},
        "tests/webhooks/test_storing.py::test_invalid_deliveries_and_tests_do_not_displace_each_other",
    ),
    Safeguard(
        "a delivery that is too long is not taken",
        "backoffice.webhooks.endpoint:receive",
        {
            "    if declared > MAX_BODY_BYTES:\n": "    if not request:\n",
            "    if len(body) > MAX_BODY_BYTES:\n": "    if not request:\n",
        },
        "tests/webhooks/test_endpoint.py::test_bodies_are_read_up_to_the_size_limit",
    ),
    Safeguard(
        "requests without the secret of the receiver are ignored",
        "backoffice.webhooks.configuration:is_secret",
        {"constant_time_compare(candidate, settings.WEBHOOK_SECRET) and is_on()": "is_on()"},
        "tests/webhooks/test_endpoint.py::test_a_wrong_secret_in_the_url_is_not_found_and_not_stored",
    ),
    Safeguard(
        "an address that can be guessed is no receiver",
        "backoffice.webhooks.configuration:is_secret",
        {" and is_on()\n": "\n"},
        "tests/webhooks/test_endpoint.py::test_the_endpoint_is_disabled_without_a_secret",
    ),
    Safeguard(
        "however many deliveries arrive the provider is read once a second",
        "backoffice.webhooks.processing:process_due_deliveries",
        {' or not acquire_lease("webhooks", MIN_INTERVAL)': ""},
        "tests/webhooks/test_processing.py::test_deliveries_trigger_at_most_one_read_a_second",
    ),
    Safeguard(
        "however many deliveries arrive one process checks",
        "backoffice.webhooks.processing:process_due_deliveries",
        {"acquire_lease(CHECK_LEASE,": 'acquire_lease(CHECK_LEASE + "s",'},
        ("tests/webhooks/test_processing.py::test_only_one_check_runs_and_named_attempts_stay_due"),
    ),
    Safeguard(
        "what no delivery names is checked once in 15 seconds",
        "backoffice.operations.outcome.schedule:schedule_checks",
        {'next_run_time("checks of unnamed", interval=UNNAMED_CHECK_INTERVAL)': "now"},
        (
            "tests/operations/outcome/test_webhook_trigger.py::test_unnamed_attempts_are_checked_at_a_lim"
            "ited_rate"
        ),
    ),
    Safeguard(
        "deliveries put off nothing that is due",
        "backoffice.operations.outcome.schedule:schedule_checks",
        {"next_check_at__gt=soon": "next_check_at__isnull=False"},
        (
            "tests/operations/outcome/test_webhook_trigger.py::test_attempts_beyond_one_round_are_checked"
            "_while_deliveries_arrive"
        ),
    ),
    Safeguard(
        "deliveries that arrive during a check lead to another",
        "backoffice.operations.outcome.confirmation:_record_check",
        {"    if requested and attempt.next_check_at:\n": "    if not attempt:\n"},
        ("tests/webhooks/test_processing.py::test_deliveries_processed_during_a_check_trigger_another"),
    ),
    Safeguard(
        "what a delivery names is checked at once",
        "backoffice.operations.outcome.schedule:schedule_checks",
        {".update(next_check_at=now)": ".update(next_check_at=soon)"},
        "tests/operations/outcome/test_webhook_trigger.py::test_named_attempts_are_not_rate_limited",
    ),
    Safeguard(
        "a re-read whose process dies is followed",
        "backoffice.operations.outcome.schedule:schedule_checks",
        {".update(next_check_at=now)": ".exists()", ".update(next_check_at=soon)": ".exists()"},
        "tests/webhooks/test_processing.py::test_the_sweeper_makes_the_check_of_a_dead_process",
    ),
    Safeguard(
        "only what the provider signed is shown of a payment",
        "backoffice.webhooks.processing:_store_payment_event",
        {"received.signature_status != SignatureStatus.VALID or ": ""},
        (
            "tests/webhooks/test_payment_events.py"
            "::test_a_row_that_was_made_valid_past_countersign_shows_no_status"
        ),
    ),
    Safeguard(
        "the data of a transaction is no status of a payment, whatever the event says",
        "backoffice.webhooks.processing:_store_payment_event",
        {' and "transactionId" not in received.data': ""},
        "tests/webhooks/test_payment_events.py::test_any_other_delivery_shows_nothing[_of_a_transaction]",
    ),
    Safeguard(
        "a webhook that contradicts a read is shown with it",
        "backoffice.operations.pages.payments:CreatedPayment.contradicted_read",
        {"self.read if is_other and": "self.read if not is_other and"},
        "tests/webhooks/test_payment_events.py::test_a_status_that_contradicts_a_read_says_so",
    ),
    Safeguard(
        "a test delivery is no delivery of the provider",
        "backoffice.webhooks.processing:_verified",
        {
            "        delivery.verdict = DeliveryVerification.TEST\n": (
                "        delivery.valid_at = delivery.check_due_at = now\n"
            )
        },
        "tests/webhooks/test_missing_deliveries.py::test_a_test_delivery_does_not_end_the_alarm",
    ),
    Safeguard(
        "credentials in the headers of a delivery are not stored",
        "backoffice.webhooks.endpoint:headers_to_store",
        {"if name.lower() in _STORED_HEADERS": "if name"},
        "tests/webhooks/test_endpoint.py::test_no_credential_in_a_header_is_stored",
    ),
    Safeguard(
        "who sends a body for too long is hung up on",
        "backoffice.web_server:Connection._time_for_request",
        {"return BODY_SECONDS +": "return 10**9 +"},
        "tests/test_web_server.py::test_a_body_must_arrive_in_time",
    ),
    Safeguard(
        "who sends a head for too long is hung up on",
        "backoffice.web_server:Connection._time_for_request",
        {"return HEAD_SECONDS": "return 10**9"},
        "tests/test_web_server.py::test_a_byte_now_and_then_does_not_extend_the_time",
    ),
    Safeguard(
        "a new connection takes the place of the oldest that waits",
        "backoffice.web_server:_Limits.close_overdue",
        {"if surplus > 0:": "if surplus > 10**9:"},
        "tests/test_web_server.py::test_a_new_connection_is_served_however_many_wait",
    ),
    Safeguard(
        "a client that hangs up ends no process: only the loop closes connections",
        "backoffice.web_server:Connection.handle_close",
        {'if hasattr(_served, "connection"):': "if False:"},
        "tests/test_web_server.py::test_only_the_loop_closes_connections",
    ),
    Safeguard(
        "a flood of deliveries displaces only those of its own source",
        "backoffice.webhooks.processing:_delete_oldest",
        {"invalid.filter(source=stored.source)": "invalid", "invalid.filter(source=largest)": "invalid"},
        "tests/webhooks/test_storing.py::test_a_flood_from_one_source_displaces_only_its_own_deliveries",
    ),
    Safeguard(
        "the secret of the callback URL is not shown without a fresh second factor",
        "backoffice.webhooks.pages:own_address",
        {"@fresh_second_factor_required\n": ""},
        "tests/webhooks/test_pages.py::test_the_secret_of_the_callback_url_needs_a_fresh_second_factor",
    ),
    Safeguard(
        "a delivery without TLS is refused, not redirected",
        "backoffice.webhooks.endpoint:receive",
        {"settings.SECURE_SSL_REDIRECT and not request.is_secure()": "request.method is None"},
        "tests/webhooks/test_endpoint.py::test_a_delivery_without_tls_is_refused_and_not_redirected",
    ),
    Safeguard(
        "a delivery is answered after the commit of its group",
        "backoffice.webhooks.storing:GroupCommit.store",
        {"ticket.is_decided.wait()": "ticket.results.append(ticket.item)"},
        "tests/webhooks/test_group_commit.py::test_what_waits_is_written_together_and_each_gets_its_own_result",
    ),
    Safeguard(
        "a delivery that fails takes no other of its group with it",
        "backoffice.webhooks.storing:GroupCommit._write_group",
        {"            if len(group) == 1:\n                raise\n": "            raise\n"},
        "tests/webhooks/test_group_commit.py::test_one_that_fails_does_not_fail_the_others_of_its_group",
    ),
    Safeguard(
        "a delivery whose group failed is stored alone",
        "backoffice.webhooks.storing:GroupCommit.store",
        {"ticket.results or self._write([item])": "ticket.results or [item]"},
        "tests/webhooks/test_group_commit.py::test_one_that_fails_does_not_fail_the_others_of_its_group",
    ),
    Safeguard(
        "deliveries of one group are different ones",
        "backoffice.webhooks.storing:GroupCommit._next_group",
        {"group.setdefault(self._key(ticket.item), ticket)": "group[ticket] = ticket"},
        "tests/webhooks/test_group_commit.py::test_a_group_has_one_item_of_each_key_and_no_more_than_the_limit",
    ),
    Safeguard(
        "a delivery within a transaction is in no group of others",
        "backoffice.webhooks.storing:store",
        {"    if connection.in_atomic_block:\n": "    if delivery is None:\n"},
        ("tests/webhooks/test_storing.py::test_a_delivery_within_a_transaction_of_the_caller_is_in_no_group"),
    ),
)
