"""Safeguards of the client: a money call is one request, and its result is classified by what it proves."""

from tests.sabotage.workshop import Safeguard

TRANSPORT = (
    Safeguard(
        "money calls are not tried again",
        "payments_gateway.transport:Transport.send_once",
        {
            (
                "        with open_session(self._config.ca_file) as session:\n"
                "            response = self._exchange(session, request, self._config.deadline)\n"
            ): "        response = self._fetch(request)\n"
        },
        (
            "tests/payments_gateway/transport/test_money_calls.py::test_an_ambiguous_status_code_proves_n"
            "othing[503]"
        ),
    ),
    Safeguard(
        "a connection of its own for each money call",
        "payments_gateway.transport:Transport.send_once",
        {
            (
                "        with open_session(self._config.ca_file) as session:\n"
                "            response = self._exchange(session, request, self._config.deadline)\n"
            ): "        response = self._exchange(self._session(), request, self._config.deadline)\n"
        },
        (
            "tests/payments_gateway/transport/test_money_calls.py::test_each_money_call_has_a_connecti"
            "on_of_its_own"
        ),
    ),
    Safeguard(
        "no redirect is followed",
        "payments_gateway.connection",
        {
            "    def get_redirect_target(self, resp": "    def never_asked(self, resp",
            "allow_redirects=False": "allow_redirects=True",
        },
        (
            "tests/payments_gateway/transport/test_money_calls.py::test_an_ambiguous_status_code_proves_n"
            "othing[307]"
        ),
    ),
    Safeguard(
        "a redirect is not even read",
        "payments_gateway.connection:_Session.get_redirect_target",
        {"    def get_redirect_target(self, resp": "    def never_asked(self, resp"},
        "tests/payments_gateway/transport/test_money_calls.py::test_redirects_are_not_followed",
    ),
    Safeguard(
        "a broken exchange is unknown",
        "payments_gateway.connection:_classify",
        {"    return OutcomeUnknownError.of(": "    return NotSentError.of("},
        (
            "tests/payments_gateway/transport/test_money_calls.py::test_a_broken_exchange_proves_nothi"
            "ng[reset after request]"
        ),
    ),
    Safeguard(
        "not a byte is written too late",
        "payments_gateway.connection:_PlainConnection.send",
        {"        if not _may_still_write.get()():\n": "        if not _may_still_write.get():\n"},
        (
            "tests/payments_gateway/transport/test_not_sent.py::test_nothing_is_written_if_the_deadline_p"
            "asses_while_connecting"
        ),
    ),
    Safeguard(
        "whoever wrote a part and is too late proves nothing",
        "payments_gateway.connection:_PlainConnection.send",
        {"TimeoutError if self.has_written else": "TimeoutError if not self else"},
        (
            "tests/payments_gateway/transport/test_not_sent.py::test_the_request_is_not_completed_if_the_"
            "deadline_passes_between_writes"
        ),
    ),
    Safeguard(
        "3xx and 5xx are unknown",
        "payments_gateway.responses:ResponseReader.is_rejected",
        {
            "        return 400 <= self._response.status < 500 and not": "        return not",
        },
        (
            "tests/payments_gateway/transport/test_money_calls.py::test_an_ambiguous_status_code_proves_nothing"
        ),
    ),
    Safeguard(
        "408, 409 and 425 are unknown",
        "payments_gateway.responses:ResponseReader.is_rejected",
        {" < 500 and not self.unproven_reason\n": " < 500\n"},
        (
            "tests/payments_gateway/transport/test_money_calls.py::test_a_refusal_possible_after_executio"
            "n_proves_nothing"
        ),
    ),
    Safeguard(
        "a refusal without a message is unknown",
        "payments_gateway.responses:ResponseReader.rejection",
        {
            "        if success is not False or not (message := self._message):\n": (
                "        message = self._message\n        if success is not False:\n"
            )
        },
        "tests/payments_gateway/transport/test_money_calls.py::test_a_refusal_without_a_message_proves_nothing",
    ),
    Safeguard(
        "a success that denies itself is unknown",
        "payments_gateway.responses:ResponseReader.accept",
        {
            '        if self._members.get("success", True) is not True:\n': "        if not self._response.status:\n"
        },
        (
            "tests/payments_gateway/transport/test_money_calls.py::test_a_success_status_without_a_succes"
            "s_body_proves_nothing"
        ),
    ),
    Safeguard(
        "an answer that cannot be read is unknown",
        "payments_gateway.transport:Transport.send_once",
        {"_parse_success(reader, into, OutcomeUnknownError)": "_parse_success(reader, into, NotSentError)"},
        (
            "tests/payments_gateway/transport/test_money_calls.py::test_an_unreadable_response_proves_not"
            "hing[200-html]"
        ),
    ),
    Safeguard(
        "nothing is sent without the one-time code",
        "payments_gateway.transport:require_otp",
        {"    if otp is None and profile.otp_required:\n": "    if otp is not None and not profile:\n"},
        "tests/payments_gateway/transport/test_not_sent.py::test_nothing_is_sent_without_the_one_time_code",
    ),
    Safeguard(
        "a request that cannot be built is recorded as not sent",
        "payments_gateway.fields:RequestModel.__init__",
        {"        raise NotSentError.of(template, **parameters)\n": "        raise ValueError(template)\n"},
        (
            "tests/operations/delivery/test_send.py::test_a_request_that_cannot_be_built_was_not_sent_and_n"
            "ames_the_member"
        ),
    ),
)
