"""Safeguards of approval: enough people have approved exactly what is sent, and still may."""

from tests.sabotage.workshop import Safeguard

APPROVALS = (
    Safeguard(
        "the preparer never approves",
        "backoffice.operations.policy:check_is_decidable",
        {("    _check_other_person(person, operation)\n    _check_pending(operation)\n"): "    pass\n"},
        "tests/operations/workflow/test_approvals.py::test_the_preparer_cannot_approve",
    ),
    Safeguard(
        "the preparer never releases",
        "backoffice.operations.policy:check_may_release",
        {("    _check_other_person(person, operation)\n    check_is_sendable"): "    check_is_sendable"},
        "tests/operations/delivery/test_release.py::test_the_preparer_cannot_send_it",
    ),
    Safeguard(
        "above the limit two people approve",
        "backoffice.operations.workflow.approvals:add_approval",
        {"    if given >= operation.approvals_needed:\n": "    if given >= 1:\n"},
        "tests/operations/workflow/test_approvals.py::test_a_large_amount_needs_two_distinct_people",
    ),
    Safeguard(
        "who approves is entitled, as the database says now",
        "backoffice.operations.policy:check_may_decide",
        {("    check_permission(person, APPROVE)\n    check_is_decidable"): "    check_is_decidable"},
        "tests/operations/workflow/test_approvals.py::test_only_an_approver_may_decide",
    ),
    Safeguard(
        "a fresh second factor to approve",
        "backoffice.operations.policy:check_may_decide",
        {
            (
                "    check_is_decidable(person, operation, digest=digest)\n"
                "    _check_second_factor(second_factor_at)\n"
            ): "    check_is_decidable(person, operation, digest=digest)\n"
        },
        "tests/operations/workflow/test_approvals.py::test_a_stale_second_factor_is_not_enough",
    ),
    Safeguard(
        "a fresh second factor to release",
        "backoffice.operations.policy:check_may_release",
        {
            (
                "    check_content(operation, digest)\n    _check_second_factor(second_factor_at)\n"
            ): "    check_content(operation, digest)\n"
        },
        "tests/operations/delivery/test_release.py::test_a_stale_second_factor_cannot_send",
    ),
    Safeguard(
        "the digest at the approval: what is stored is what was signed",
        "backoffice.operations.policy:check_content",
        {"digest == operation.digest == operation.current_digest()": "digest == operation.digest"},
        "tests/operations/workflow/test_approvals.py::test_content_edited_in_the_database_is_not_approved",
    ),
    Safeguard(
        "the digest at the approval: what is stored is what was shown",
        "backoffice.operations.policy:check_content",
        {
            "digest == operation.digest == operation.current_digest()": (
                "operation.digest == operation.current_digest()"
            )
        },
        (
            "tests/operations/workflow/test_approvals.py::test_content_that_differs_from_what_was_show"
            "n_is_not_approved"
        ),
    ),
    Safeguard(
        "the digest at the claim",
        "backoffice.operations.policy:check_may_send",
        {"    check_content(operation, operation.digest)\n": ""},
        "tests/operations/delivery/test_send.py::test_content_changed_after_approval_is_not_sent",
    ),
    Safeguard(
        "approvals are counted anew at the claim",
        "backoffice.operations.policy:check_may_send",
        {"    if len(signed) < operation.approvals_needed:": "    if signed is None:"},
        "tests/operations/delivery/test_recheck_at_claim.py::test_who_approved_must_still_be_entitled",
    ),
    Safeguard(
        "an approval of the preparer counts for nothing at the claim",
        "backoffice.operations.policy:check_may_send",
        {"        and approval.approver_id != operation.preparer_id\n": ""},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_an_approval_of_its_preparer_counts_"
            "for_nothing"
        ),
    ),
    Safeguard(
        "an approval of other content counts for nothing at the claim",
        "backoffice.operations.policy:check_may_send",
        {("        if approval.digest == operation.digest\n        and"): "        if"},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_an_approval_under_other_content_cou"
            "nts_for_nothing"
        ),
    ),
    Safeguard(
        "who released is still entitled at the claim",
        "backoffice.operations.policy:check_may_send",
        {"    check_permission(releaser, RELEASE)\n": ""},
        "tests/operations/delivery/test_recheck_at_claim.py::test_who_released_it_must_still_be_entitled",
    ),
    Safeguard(
        "a release by the preparer is none at the claim",
        "backoffice.operations.policy:check_may_send",
        {"    _check_other_person(releaser, operation)\n": ""},
        "tests/operations/delivery/test_recheck_at_claim.py::test_a_release_by_its_preparer_is_none",
    ),
    Safeguard(
        "an operation out of time is not approved",
        "backoffice.operations.policy:check_is_decidable",
        {
            (
                "    _check_pending(operation)\n    _check_in_time(operation, now)\n"
            ): "    _check_pending(operation)\n"
        },
        (
            "tests/operations/workflow/test_approvals.py::test_an_operation_out_of_time_cannot_be_appr"
            "oved_and_is_closed"
        ),
    ),
    Safeguard(
        "an operation out of time is not claimed",
        "backoffice.operations.policy:check_may_send",
        {("    _check_in_time(operation)\n    check_permission(releaser"): "    check_permission(releaser"},
        "tests/operations/delivery/test_recheck_at_claim.py::test_an_operation_out_of_time_does_not_leave",
    ),
    Safeguard(
        "the same payment is refused while one has an unknown outcome",
        "backoffice.operations.workflow.prepare:_resolved_duplicate",
        {"    if unknown is not None:\n": "    if unknown == kind:\n"},
        (
            "tests/operations/workflow/test_duplicates_with_unknown_outcome.py::test_the_same_is_not_p"
            "repared_while_nobody_knows_whether_it_happened"
        ),
    ),
    Safeguard(
        "cancelling an operation destroys its one-time code",
        "backoffice.operations.workflow.approvals:cancel_operation",
        {
            (
                "    Release.objects.filter(operation=operation).delete()\n"
                "    transition(operation, Status.CANCELLED)\n"
            ): "    transition(operation, Status.CANCELLED)\n"
        },
        "tests/operations/workflow/test_approvals.py::test_a_one_time_code_goes_with_its_operation",
    ),
    Safeguard(
        "one release at a time",
        "backoffice.operations.delivery.release:add_release",
        {
            (
                "    if Release.objects.filter(operation=operation).exists():\n"
                "        raise AlreadyReleasedError\n"
            ): "    Release.objects.filter(operation=operation).delete()\n"
        },
        "tests/operations/delivery/test_release.py::test_only_one_release_at_a_time",
    ),
)
