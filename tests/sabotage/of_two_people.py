"""What makes sure that several people saw what is sent, and that they still may."""

from tests.sabotage.workshop import Safeguard

_POLICY = "backoffice/operations/policy.py"
_DECIDING = "backoffice/operations/services/deciding.py"
_RELEASING = "backoffice/operations/services/releasing.py"
_TESTS = "tests/operations"
_AT_THE_CLAIM = f"{_TESTS}/test_last_look.py"

OF_TWO_PEOPLE = (
    Safeguard(
        "the maker never approves",
        _POLICY,
        {"    _check_other_person(person, operation)\n    _check_pending(operation)\n": "    pass\n"},
        f"{_TESTS}/test_deciding.py::test_the_maker_cannot_approve",
    ),
    Safeguard(
        "the maker never gives the word",
        _POLICY,
        {"    _check_other_person(person, operation)\n    check_is_sent": "    check_is_sent"},
        f"{_TESTS}/test_releasing.py::test_the_maker_cannot_send_it",
    ),
    Safeguard(
        "above the limit two people approve",
        _DECIDING,
        {"    if given >= operation.approvals_needed:\n": "    if given >= 1:\n"},
        f"{_TESTS}/test_deciding.py::test_a_large_amount_needs_two_distinct_people",
    ),
    Safeguard(
        "who approves is entitled, as the database says now",
        _POLICY,
        {"    check_permission(person, APPROVE)\n    check_is_decidable": "    check_is_decidable"},
        f"{_TESTS}/test_deciding.py::test_only_an_approver_may_decide",
    ),
    Safeguard(
        "a fresh second factor to approve",
        _POLICY,
        {
            "    check_is_decidable(person, operation, digest=digest)\n    _check_second_factor(second_factor_at)\n": (
                "    check_is_decidable(person, operation, digest=digest)\n"
            )
        },
        f"{_TESTS}/test_deciding.py::test_a_stale_second_factor_is_not_enough",
    ),
    Safeguard(
        "a fresh second factor to give the word",
        _POLICY,
        {
            "    check_content(operation, digest)\n    _check_second_factor(second_factor_at)\n": (
                "    check_content(operation, digest)\n"
            )
        },
        f"{_TESTS}/test_releasing.py::test_a_stale_second_factor_cannot_send",
    ),
    Safeguard(
        "the digest at the approval: what is stored is what was signed",
        _POLICY,
        {"digest == operation.digest == operation.current_digest()": "digest == operation.digest"},
        f"{_TESTS}/test_deciding.py::test_content_edited_in_the_database_is_not_approved",
    ),
    Safeguard(
        "the digest at the approval: what is stored is what was shown",
        _POLICY,
        {
            "digest == operation.digest == operation.current_digest()": "operation.digest == operation.current_digest()"
        },
        f"{_TESTS}/test_deciding.py::test_content_that_differs_from_what_was_shown_is_not_approved",
    ),
    Safeguard(
        "the digest at the claim",
        _POLICY,
        {"    check_content(operation, operation.digest)\n": ""},
        f"{_TESTS}/test_sending.py::test_content_changed_after_approval_is_not_sent",
    ),
    Safeguard(
        "approvals are counted anew at the claim",
        _POLICY,
        {"    if len(signed) < operation.approvals_needed:": "    if signed is None:"},
        f"{_AT_THE_CLAIM}::test_who_countersigned_must_still_be_entitled",
    ),
    Safeguard(
        "an approval of the maker counts for nothing at the claim",
        _POLICY,
        {"        and approval.approver_id != operation.maker_id\n": ""},
        f"{_AT_THE_CLAIM}::test_a_countersignature_of_its_maker_counts_for_nothing",
    ),
    Safeguard(
        "an approval of other content counts for nothing at the claim",
        _POLICY,
        {"        if approval.digest == operation.digest\n        and": "        if"},
        f"{_AT_THE_CLAIM}::test_a_countersignature_under_other_content_counts_for_nothing",
    ),
    Safeguard(
        "who gave the word is still entitled at the claim",
        _POLICY,
        {"    check_permission(releaser, RELEASE)\n": ""},
        f"{_AT_THE_CLAIM}::test_who_gave_the_word_must_still_be_entitled",
    ),
    Safeguard(
        "the word of the maker is none at the claim",
        _POLICY,
        {"    _check_other_person(releaser, operation)\n": ""},
        f"{_AT_THE_CLAIM}::test_the_word_of_its_maker_is_none",
    ),
    Safeguard(
        "an operation out of time is not approved",
        _POLICY,
        {
            "    _check_pending(operation)\n    _check_in_time(operation, now)\n": (
                "    _check_pending(operation)\n"
            )
        },
        f"{_TESTS}/test_deciding.py::test_an_operation_out_of_time_cannot_be_approved_and_is_closed",
    ),
    Safeguard(
        "an operation out of time is not claimed",
        _POLICY,
        {"    _check_in_time(operation)\n    check_permission(releaser": "    check_permission(releaser"},
        f"{_AT_THE_CLAIM}::test_an_operation_out_of_time_does_not_leave",
    ),
    Safeguard(
        "the same payment is refused while one is in doubt",
        _DECIDING,
        {"    if in_doubt is not None:\n": "    if in_doubt == kind:\n"},
        f"{_TESTS}/test_same_in_doubt.py::test_the_same_is_not_prepared_while_nobody_knows_whether_it_happened",
    ),
    Safeguard(
        "taking an operation back destroys its token",
        _DECIDING,
        {
            "    Release.objects.filter(operation=operation).delete()\n    move(operation, Status.CANCELLED)\n": (
                "    move(operation, Status.CANCELLED)\n"
            )
        },
        f"{_TESTS}/test_deciding.py::test_a_token_goes_with_its_operation",
    ),
    Safeguard(
        "one word to send at a time",
        _RELEASING,
        {
            "    if Release.objects.filter(operation=operation).exists():\n        raise AlreadyReleasedError\n": (
                "    Release.objects.filter(operation=operation).delete()\n"
            )
        },
        f"{_TESTS}/test_releasing.py::test_only_one_release_at_a_time",
    ),
)
