"""What makes a money call one request, and sorts its end by what it proves."""

from tests.sabotage.workshop import Safeguard

_TRANSPORT = "payments_gateway/_transport.py"
_ANSWERS = "payments_gateway/_answers.py"
_CONNECTION = "payments_gateway/connection.py"
_ONCE = "tests/payments_gateway/test_sending_once.py"
_NOT_SENT = "tests/payments_gateway/test_not_sent.py"
_EXCHANGE = (
    "        with open_session(self._config.ca_file) as session:\n"
    "            answer = self._exchange(session, request, self._config.deadline)\n"
)

ON_THE_WIRE = (
    Safeguard(
        "money calls are not tried again",
        _TRANSPORT,
        {_EXCHANGE: "        answer = self._fetch(request)\n"},
        f"{_ONCE}::test_a_status_that_is_neither_yes_nor_no_proves_nothing[503]",
    ),
    Safeguard(
        "a connection of its own for each money call",
        _TRANSPORT,
        {_EXCHANGE: "        answer = self._exchange(self._session(), request, self._config.deadline)\n"},
        f"{_ONCE}::test_each_money_call_has_a_connection_of_its_own",
    ),
    Safeguard(
        "no redirect is followed",
        _CONNECTION,
        {
            "    def get_redirect_target(self, resp": "    def never_asked(self, resp",
            "allow_redirects=False": "allow_redirects=True",
        },
        f"{_ONCE}::test_a_status_that_is_neither_yes_nor_no_proves_nothing[307]",
    ),
    Safeguard(
        "a redirect is not even looked at",
        _CONNECTION,
        {"    def get_redirect_target(self, resp": "    def never_asked(self, resp"},
        f"{_ONCE}::test_a_redirect_is_not_even_looked_at",
    ),
    Safeguard(
        "a broken exchange is unknown",
        _CONNECTION,
        {"    return OutcomeUnknownError(f\"The service's": "    return NotSentError(f\"The service's"},
        f"{_ONCE}::test_a_broken_exchange_proves_nothing[reset after request]",
    ),
    Safeguard(
        "not a byte is written too late",
        _CONNECTION,
        {"    if _in_time.get()():\n": "    if _in_time.get():\n"},
        f"{_NOT_SENT}::test_whoever_is_too_late_when_the_connection_is_ready_writes_nothing",
    ),
    Safeguard(
        "whoever wrote a part and is too late proves nothing",
        _CONNECTION,
        {"TimeoutError if connection.has_written else": "TimeoutError if not connection else"},
        f"{_NOT_SENT}::test_whoever_is_too_late_between_two_writes_does_not_complete_the_request",
    ),
    Safeguard(
        "3xx and 5xx are unknown",
        _ANSWERS,
        {
            "        return 400 <= self._answer.status < 500 and not self.doubt\n": "        return not self.doubt\n"
        },
        f"{_ONCE}::test_a_status_that_is_neither_yes_nor_no_proves_nothing",
    ),
    Safeguard(
        "408, 409 and 425 are unknown",
        _ANSWERS,
        {" < 500 and not self.doubt\n": " < 500\n"},
        f"{_ONCE}::test_a_refusal_that_may_follow_an_execution_proves_nothing",
    ),
    Safeguard(
        "a refusal without words is unknown",
        _ANSWERS,
        {"        if denied is not False or not message:\n": "        if denied is not False:\n"},
        f"{_ONCE}::test_a_refusal_without_words_proves_nothing",
    ),
    Safeguard(
        "a success that denies itself is unknown",
        _ANSWERS,
        {
            '        if self._members.get("success", True) is not True:\n': "        if not self._answer.status:\n"
        },
        f"{_ONCE}::test_a_success_that_is_none_proves_nothing",
    ),
    Safeguard(
        "an answer that cannot be read is unknown",
        _TRANSPORT,
        {"_accepted(reading, into, OutcomeUnknownError)": "_accepted(reading, into, NotSentError)"},
        f"{_ONCE}::test_an_unreadable_answer_proves_nothing[200-html]",
    ),
    Safeguard(
        "nothing is sent without the token",
        _TRANSPORT,
        {"    if token is None and dialect.token_required:\n": "    if token is not None and not dialect:\n"},
        f"{_NOT_SENT}::test_nothing_is_sent_without_the_token",
    ),
)
