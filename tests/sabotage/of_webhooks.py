"""What keeps a webhook a hint: who is heard, how often, and that only a reading of the service moves anything."""

from tests.sabotage.workshop import Safeguard

_RECEIVING = "backoffice/webhooks/services/receiving.py"
_LOOKING = "backoffice/webhooks/services/looking.py"
_NEWS = "backoffice/operations/services/news.py"
_TESTS = "tests/webhooks"
_OF_NEWS = "tests/operations/test_news.py"

OF_WEBHOOKS = (
    Safeguard(
        "what the service did not sign starts nothing",
        _RECEIVING,
        {"DeliveryVerification(judged.verdict.value)": "DeliveryVerification.VALID"},
        f"{_TESTS}/test_looking.py::test_what_the_service_did_not_sign_starts_nothing",
    ),
    Safeguard(
        "the same delivery is kept once",
        _RECEIVING,
        {"delivery.identity = judged.identity": 'delivery.identity = f"{delivery.received_at:%s%f}"'},
        f"{_TESTS}/test_keeping.py::test_the_same_a_hundred_times_at_once_is_one",
    ),
    Safeguard(
        "whoever has a delivery can write it anew and it stays the same",
        _RECEIVING,
        {"delivery.identity = judged.identity": "delivery.identity = delivery.digest"},
        f"{_TESTS}/test_keeping.py::test_the_same_in_other_clothes_is_a_repeat",
    ),
    Safeguard(
        "a repeated delivery starts nothing",
        _RECEIVING,
        {"THEN webhooks_delivery.{0}": "THEN EXCLUDED.{0}"},
        f"{_TESTS}/test_looking.py::test_a_repeat_starts_nothing_not_even_after_a_month",
    ),
    Safeguard(
        "deliveries that are not valid are bounded",
        _RECEIVING,
        {"        _drop_oldest()\n": "        pass\n"},
        f"{_TESTS}/test_keeping.py::test_what_is_not_valid_is_kept_in_bounds_the_newest",
    ),
    Safeguard(
        "a delivery that is too long is not taken",
        "backoffice/webhooks/views/receiver.py",
        {
            "    if declared > MOST_BYTES:\n": "    if not request:\n",
            "    if len(body) > MOST_BYTES:\n": "    if not request:\n",
        },
        f"{_TESTS}/test_receiver.py::test_a_body_of_the_largest_size_is_read_and_one_byte_more_is_not",
    ),
    Safeguard(
        "whoever does not know the address of the receiver is not heard",
        "backoffice/webhooks/configuration.py",
        {"constant_time_compare(told, settings.WEBHOOK_SECRET) and is_on()": "is_on()"},
        f"{_TESTS}/test_receiver.py::test_a_wrong_address_is_no_address_and_leaves_no_trace",
    ),
    Safeguard(
        "an address that can be guessed is no receiver",
        "backoffice/webhooks/configuration.py",
        {" and is_on()\n": "\n"},
        f"{_TESTS}/test_receiver.py::test_without_a_secret_that_nobody_guesses_there_is_no_receiver",
    ),
    Safeguard(
        "however many deliveries come the service is read once a second",
        _LOOKING,
        {' or not take_turn("webhooks", pause=EVERY)': ""},
        f"{_TESTS}/test_looking.py::test_however_many_come_the_service_is_read_once_a_second",
    ),
    Safeguard(
        "however many deliveries come one process looks",
        _LOOKING,
        {"        if is_ours:\n": "        if wanted:\n"},
        f"{_TESTS}/test_looking.py::test_while_somebody_looks_nobody_else_does_and_what_is_named_is_due",
    ),
    Safeguard(
        "what no delivery names is looked at once in 15 seconds",
        _NEWS,
        {'next_turn("news of others", pause=OTHERS_EVERY)': "now"},
        f"{_OF_NEWS}::test_what_is_not_named_is_looked_at_once_in_a_while_however_many_news_come",
    ),
    Safeguard(
        "news put off nothing that is due",
        _NEWS,
        {"next_check_at__gt=soon": "next_check_at__isnull=False"},
        f"{_OF_NEWS}::test_of_more_than_one_round_looks_at_none_is_forgotten_while_news_come",
    ),
    Safeguard(
        "news that come while somebody looks lead to another look",
        "backoffice/operations/services/confirming.py",
        {"    if asked_for and attempt.next_check_at:\n": "    if not attempt:\n"},
        f"{_TESTS}/test_looking.py::test_news_that_are_taken_up_while_somebody_looks_lead_to_another_look",
    ),
    Safeguard(
        "what a delivery names is looked at at once",
        _NEWS,
        {".update(next_check_at=now)": ".update(next_check_at=soon)"},
        f"{_OF_NEWS}::test_what_is_named_need_not_wait_for_that",
    ),
    Safeguard(
        "a re-read whose process dies is followed",
        _NEWS,
        {".update(next_check_at=now)": ".exists()", ".update(next_check_at=soon)": ".exists()"},
        f"{_TESTS}/test_looking.py::test_whoever_dies_before_the_look_is_followed_by_the_sweeper",
    ),
    Safeguard(
        "who sends a body for too long is hung up on",
        "backoffice/webhooks/slow_senders.py",
        {"            if until <= now:\n": "            if not hang_up:\n"},
        f"{_TESTS}/test_slow_senders.py::test_only_those_whose_time_is_over_are_hung_up_on",
    ),
)
