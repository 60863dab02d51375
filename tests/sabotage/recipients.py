"""Safeguards of the register of recipients: two people, their seal, and the allow-list wherever money depends on it."""

from tests.sabotage.workshop import Safeguard

_TESTS = "tests/operations/test_allow_list.py::"
RECIPIENTS = (
    Safeguard(
        "a recipient that is not approved is not paid at the claim itself",
        "backoffice.operations.policy:check_may_send",
        {"    allow_list.check_payable(operation)\n": ""},
        _TESTS + "test_a_retired_recipient_is_refused_at_the_claim_itself",
    ),
    Safeguard(
        "a recipient that is not approved is not released",
        "backoffice.operations.policy:check_may_release",
        {"    allow_list.check_payable(operation)\n": ""},
        _TESTS + "test_a_retired_recipient_is_refused_at_the_release",
    ),
    Safeguard(
        "a payment to a recipient that is not approved is not approved",
        "backoffice.operations.policy:check_may_approve",
        {"    _check_recipients(operation)\n": ""},
        _TESTS + "test_a_retired_recipient_is_refused_at_the_approval",
    ),
    Safeguard(
        "a payment to a recipient outside the register is not prepared",
        "backoffice.operations.policy:check_proposal",
        {"    allow_list.check_recipients(operation_id, KINDS[kind], payload)\n": ""},
        _TESTS + "test_a_recipient_outside_the_register_is_not_prepared",
    ),
    Safeguard(
        "a recipient is paid under a valid seal only",
        "backoffice.recipients.register:versions_in_effect",
        {
            "    if any(version.is_altered for version in newest.values()):\n": "    if not newest and keys is None:\n"
        },
        _TESTS + "test_a_forged_recipient_is_not_paid",
    ),
    Safeguard(
        "the seal of a recipient covers the account",
        "backoffice.recipients.models:RecipientVersion.sealed_content",
        {'            "key": self.key,\n': ""},
        _TESTS + "test_a_recipient_of_another_key_is_not_paid_under_its_seal",
    ),
    Safeguard(
        "a suggestion is no approved recipient",
        "backoffice.operations.allow_list:_check",
        {"version.state != RecipientState.APPROVED": "version.state == RecipientState.RETIRED"},
        _TESTS + "test_a_suggestion_is_no_approval",
    ),
    Safeguard(
        "a recipient is not paid before cooling has ended",
        "backoffice.operations.allow_list:check_payable",
        {"            raise RecipientCoolingError(until)\n": "            continue\n"},
        _TESTS + "test_cooling_holds_the_payment_and_not_its_approval",
    ),
    Safeguard(
        "a forged recipient satisfies no condition of a policy",
        "backoffice.recipients.register:approval_history",
        {" and not version.is_altered:\n": ":\n"},
        _TESTS + "test_a_forged_recipient_satisfies_no_condition",
    ),
    Safeguard(
        "a change cannot touch who is paid",
        "backoffice.operations.kinds.recipient:RecipientForm._take_over",
        {"            self.data = {**dict(self.data.items()), **fixed}\n": "            pass\n"},
        "tests/operations/kinds/test_recipient.py::test_a_change_cannot_touch_who_is_paid",
    ),
)
