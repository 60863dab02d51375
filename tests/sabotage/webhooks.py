"""Safeguards of webhooks: who is accepted, how often, and that only a read of the provider changes an
operation.
"""

from tests.sabotage.workshop import Safeguard

WEBHOOKS = (
    Safeguard(
        "what the service did not sign starts nothing",
        "backoffice.webhooks.processing:_fill_in",
        {"DeliveryVerification(judged.signature_status.value)": "DeliveryVerification.VALID"},
        "tests/webhooks/test_processing.py::test_what_the_service_did_not_sign_starts_nothing",
    ),
    Safeguard(
        "the same delivery is kept once",
        "backoffice.webhooks.processing:_fill_in",
        {"delivery.identity = judged.identity": 'delivery.identity = f"{delivery.received_at:%s%f}"'},
        "tests/webhooks/test_storing.py::test_the_same_a_hundred_times_at_once_is_one",
    ),
    Safeguard(
        "whoever has a delivery can write it anew and it stays the same",
        "backoffice.webhooks.processing:_fill_in",
        {"delivery.identity = judged.identity": "delivery.identity = delivery.digest"},
        "tests/webhooks/test_storing.py::test_the_same_in_other_clothes_is_a_repeat",
    ),
    Safeguard(
        "a repeated delivery starts nothing",
        "backoffice.webhooks.processing:_UNLESS_VALID",
        {"THEN webhooks_delivery.{0}": "THEN EXCLUDED.{0}"},
        "tests/webhooks/test_processing.py::test_a_repeat_starts_nothing_not_even_after_a_month",
    ),
    Safeguard(
        "deliveries that are not valid are bounded",
        "backoffice.webhooks.processing:receive_delivery",
        {"        _delete_oldest_invalid()\n": "        pass\n"},
        "tests/webhooks/test_storing.py::test_what_is_not_valid_is_kept_in_bounds_the_newest",
    ),
    Safeguard(
        "a delivery that is too long is not taken",
        "backoffice.webhooks.endpoint:receive",
        {
            "    if declared > MAX_BODY_BYTES:\n": "    if not request:\n",
            "    if len(body) > MAX_BODY_BYTES:\n": "    if not request:\n",
        },
        "tests/webhooks/test_endpoint.py::test_a_body_of_the_largest_size_is_read_and_one_byte_more_is_not",
    ),
    Safeguard(
        "whoever does not know the address of the receiver is not heard",
        "backoffice.webhooks.configuration:is_secret",
        {"constant_time_compare(told, settings.WEBHOOK_SECRET) and is_on()": "is_on()"},
        "tests/webhooks/test_endpoint.py::test_a_wrong_address_is_no_address_and_leaves_no_trace",
    ),
    Safeguard(
        "an address that can be guessed is no receiver",
        "backoffice.webhooks.configuration:is_secret",
        {" and is_on()\n": "\n"},
        "tests/webhooks/test_endpoint.py::test_without_a_secret_that_nobody_guesses_there_is_no_receiver",
    ),
    Safeguard(
        "however many deliveries come the service is read once a second",
        "backoffice.webhooks.processing:process_due_deliveries",
        {' or not acquire_lease("webhooks", MIN_INTERVAL)': ""},
        "tests/webhooks/test_processing.py::test_however_many_come_the_service_is_read_once_a_second",
    ),
    Safeguard(
        "however many deliveries come one process looks",
        "backoffice.webhooks.processing:process_due_deliveries",
        {"acquire_lease(CHECK_LEASE,": 'acquire_lease(CHECK_LEASE + "s",'},
        (
            "tests/webhooks/test_processing.py::test_while_somebody_looks_nobody_else_does_and_what_is"
            "_named_is_due"
        ),
    ),
    Safeguard(
        "what no delivery names is looked at once in 15 seconds",
        "backoffice.operations.outcome.schedule:schedule_checks",
        {'next_run_time("checks of unnamed", interval=UNNAMED_CHECK_INTERVAL)': "now"},
        (
            "tests/operations/outcome/test_webhook_trigger.py::test_what_is_not_named_is_looked_at_onc"
            "e_in_a_while_however_many_news_come"
        ),
    ),
    Safeguard(
        "news put off nothing that is due",
        "backoffice.operations.outcome.schedule:schedule_checks",
        {"next_check_at__gt=soon": "next_check_at__isnull=False"},
        (
            "tests/operations/outcome/test_webhook_trigger.py::test_of_more_than_one_round_looks_at_no"
            "ne_is_forgotten_while_news_come"
        ),
    ),
    Safeguard(
        "news that come while somebody looks lead to another look",
        "backoffice.operations.outcome.confirmation:_record_check",
        {"    if asked_for and attempt.next_check_at:\n": "    if not attempt:\n"},
        (
            "tests/webhooks/test_processing.py::test_news_that_are_taken_up_while_somebody_looks_lead_"
            "to_another_look"
        ),
    ),
    Safeguard(
        "what a delivery names is looked at at once",
        "backoffice.operations.outcome.schedule:schedule_checks",
        {".update(next_check_at=now)": ".update(next_check_at=soon)"},
        "tests/operations/outcome/test_webhook_trigger.py::test_what_is_named_need_not_wait_for_that",
    ),
    Safeguard(
        "a re-read whose process dies is followed",
        "backoffice.operations.outcome.schedule:schedule_checks",
        {".update(next_check_at=now)": ".exists()", ".update(next_check_at=soon)": ".exists()"},
        "tests/webhooks/test_processing.py::test_whoever_dies_before_the_look_is_followed_by_the_sweeper",
    ),
    Safeguard(
        "who sends a body for too long is hung up on",
        "backoffice.webhooks.endpoint:close_late_connections",
        {"            if until <= now:\n": "            if not hang_up:\n"},
        "tests/webhooks/test_slow_senders.py::test_only_those_whose_time_is_over_are_hung_up_on",
    ),
)
