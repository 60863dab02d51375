"""Safeguards of approval: enough people have approved exactly what is sent, and still may."""

from tests.sabotage.workshop import Safeguard

APPROVALS = (
    Safeguard(
        "the preparer never approves",
        "backoffice.operations.policy:check_is_decidable",
        {
            (
                "    _check_other_person(person, operation)\n    _check_awaits_approval(operation)\n"
            ): "    pass\n"
        },
        "tests/operations/workflow/test_approvals.py::test_the_preparer_cannot_approve",
    ),
    Safeguard(
        "the preparer never releases",
        "backoffice.operations.policy:check_may_release",
        {"    _check_other_person(person, operation)\n": ""},
        "tests/operations/delivery/test_release.py::test_the_preparer_cannot_release",
    ),
    Safeguard(
        "a warning such as an unchecked name is confirmed by the approver",
        "backoffice.operations.policy:check_acknowledged",
        {"    if kind.acknowledgement(payload) and not acknowledged:\n": "    if acknowledged is None:\n"},
        (
            "tests/operations/kinds/test_unchecked_names.py"
            "::test_an_unchecked_name_is_approved_only_with_the_confirmation"
        ),
    ),
    Safeguard(
        "a warning to be confirmed is not approved in bulk",
        "backoffice.operations.policy:check_may_approve_in_bulk",
        {"    if kind.acknowledgement(payload):\n": "    if kind is None:\n"},
        (
            "tests/operations/kinds/test_unchecked_names.py"
            "::test_an_unchecked_name_is_refused_in_bulk_with_the_reason"
        ),
    ),
    Safeguard(
        "a change of an account is not approved in bulk",
        "backoffice.operations.policy:check_may_approve_in_bulk",
        {"    if kind.must_be_approved_alone(payload):\n": "    if kind is None:\n"},
        (
            "tests/operations/kinds/staff/test_in_bulk.py"
            "::test_what_gives_administration_or_changes_an_account_is_approved_alone"
        ),
    ),
    Safeguard(
        "above the limit two people approve",
        "backoffice.operations.workflow.approvals:add_approval",
        {
            "    if operation.status == Status.PENDING and decided_progress(operation).is_complete:\n": (
                "    if operation.status == Status.PENDING:\n"
            )
        },
        "tests/operations/workflow/test_approvals.py::test_a_large_amount_needs_two_distinct_people",
    ),
    Safeguard(
        "in a currency without a limit two people approve",
        "backoffice.policies.models:_document_of",
        {"(*above, others)": "tuple(above)"},
        "tests/operations/test_approval_requirement.py::test_a_currency_without_a_limit_needs_two",
    ),
    Safeguard(
        "who approves is entitled, as the database says now",
        "backoffice.operations.policy:check_may_decide",
        {
            (
                "    check_permission(person, approval_permission_for(operation.kind))\n    _check_not_affected"
            ): "    _check_not_affected"
        },
        "tests/operations/workflow/test_approvals.py::test_only_approvers_can_approve_or_reject",
    ),
    Safeguard(
        "a fresh second factor to approve",
        "backoffice.operations.policy:check_may_decide",
        {
            (
                "    check_is_decidable(person, operation, digest=digest)\n"
                "    check_second_factor(second_factor_at)\n"
            ): "    check_is_decidable(person, operation, digest=digest)\n"
        },
        "tests/operations/workflow/test_approvals.py::test_deciding_needs_a_fresh_second_factor",
    ),
    Safeguard(
        "a fresh second factor to release",
        "backoffice.operations.policy:check_may_release",
        {
            (
                "    check_content(operation, digest)\n"
                "    check_second_factor(second_factor_at, within=within)\n"
            ): "    check_content(operation, digest)\n"
        },
        "tests/operations/delivery/test_release.py::test_a_release_needs_a_fresh_second_factor",
    ),
    Safeguard(
        "the digest at the decision: what is stored is what was prepared",
        "backoffice.operations.policy:check_content",
        {"digest == operation.digest == operation.current_digest()": "digest == operation.digest"},
        "tests/operations/workflow/test_approvals.py::test_content_edited_in_the_database_is_not_rejected",
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
            "tests/operations/workflow/test_approvals.py::test_content_that_differs_from_the_page_is_not_"
            "approved"
        ),
    ),
    Safeguard(
        "the digest at the claim",
        "backoffice.operations.policy:check_may_send",
        {"    check_content(operation, operation.digest)\n": ""},
        "tests/operations/delivery/test_recheck_at_claim.py"
        "::test_content_that_is_not_what_was_approved_is_not_claimed",
    ),
    Safeguard(
        "approvals are counted anew at the claim",
        "backoffice.operations.policy:_check_people",
        {"    if len(counted) < operation.approvals_needed:": "    if counted is None:"},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_the_approver_must_still_have_the_pe"
            "rmission"
        ),
    ),
    Safeguard(
        "an approval of the preparer counts for nothing at the claim",
        "backoffice.operations.policy:_check_people",
        {"entitled[approve] - {operation.preparer_id}": "entitled[approve]"},
        ("tests/operations/delivery/test_recheck_at_claim.py::test_an_approval_by_the_preparer_is_ignored"),
    ),
    Safeguard(
        "an approval of other content counts for nothing at the claim",
        "backoffice.operations.policy:_check_people",
        {"[one for one in approvals if one.digest == operation.digest]": "approvals"},
        ("tests/operations/delivery/test_recheck_at_claim.py::test_an_approval_of_other_content_is_ignored"),
    ),
    Safeguard(
        "who released is still entitled at the claim",
        "backoffice.operations.policy:_check_people",
        {"    if releaser.pk not in entitled[RELEASE]:": "    if releaser is None:"},
        (
            "tests/operations/delivery/test_recheck_at_claim.py::test_the_releaser_must_still_have_the_pe"
            "rmission"
        ),
    ),
    Safeguard(
        "a release by the preparer is none at the claim",
        "backoffice.operations.policy:_check_people",
        {"    _check_other_person(releaser, operation)\n": ""},
        "tests/operations/delivery/test_recheck_at_claim.py::test_a_release_by_the_preparer_is_invalid",
    ),
    Safeguard(
        "an operation out of time is not approved",
        "backoffice.operations.policy:check_is_decidable",
        {
            "            raise\n": "            pass\n",
        },
        (
            "tests/operations/workflow/test_approvals.py::test_an_expired_operation_cannot_be_approved_an"
            "d_is_closed"
        ),
    ),
    Safeguard(
        "an operation out of time is not claimed",
        "backoffice.operations.policy:check_may_send",
        {
            "    _check_in_time(operation, now)\n": "",
        },
        "tests/operations/delivery/test_recheck_at_claim.py::test_an_expired_operation_is_not_sent",
    ),
    Safeguard(
        "the same payment is refused while one has an unknown outcome",
        "backoffice.operations.workflow.prepare:_resolved_duplicate",
        {"    if unknown is not None:\n": "    if unknown == kind:\n"},
        (
            "tests/operations/workflow/test_duplicates_with_unknown_outcome.py::test_identical_content_is"
            "_refused_during_an_unknown_outcome"
        ),
    ),
    Safeguard(
        "an account that the bank does not find is not paid",
        "backoffice.operations.kinds.form_fields:RecipientAccountForm._check_holder",
        {"        except NotFoundError as exc:": "        except MemoryError as exc:"},
        (
            "tests/operations/kinds/test_unchecked_names.py"
            "::test_an_account_that_the_bank_does_not_find_is_refused_whatever_is_stated"
        ),
    ),
    Safeguard(
        "a statement is confirmed for its own account only",
        "backoffice.operations.kinds.form_fields:RecipientAccountForm._unconfirm_outdated_statement",
        {"or about == self.account_key:": "or about == self.account_key or about != has_statement:"},
        (
            "tests/operations/kinds/test_unchecked_names.py"
            "::test_a_statement_about_another_account_must_be_confirmed_again"
        ),
    ),
    Safeguard(
        "a refusal by the provider after the review is reviewed",
        "backoffice.ledger.accounts:reviewed_cause",
        {' and (cause["code"] != UnresolvedCause.REFUSED or first["code"] == UnresolvedCause.REFUSED)': ""},
        "tests/operations/kinds/test_unchecked_names.py::test_a_refusal_after_the_review_is_reviewed_again",
    ),
    Safeguard(
        "an off-ramp payment that was only created is no earlier payment",
        "backoffice.operations.selectors",
        {
            "_EXECUTED = Q(status=Status.SUCCEEDED) & ~Q(kind=PaymentKind.name)": (
                "_EXECUTED = Q(status=Status.SUCCEEDED)"
            )
        },
        (
            "tests/operations/pages/test_first_payment.py"
            "::test_an_off_ramp_payment_that_was_created_is_no_earlier_payment"
        ),
    ),
    Safeguard(
        "an answer under another reference proves nothing",
        "payments_gateway.resources.payments:_parse_payment",
        {"named and is_other:": "not named and is_other:"},
        (
            "tests/operations/kinds/payments/test_reference.py"
            "::test_another_reference_in_the_answer_is_an_unknown_outcome"
        ),
    ),
    Safeguard(
        "no two payments have one reference at the provider",
        "backoffice.operations.workflow.prepare:_check_reference_unused",
        {
            "    if (other := others.first()) is not None:\n": "    if (other := others.first()) == reference:\n"
        },
        (
            "tests/operations/kinds/payments/test_reference.py"
            "::test_a_reference_is_free_again_only_if_nothing_can_arrive_under_it"
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
        "tests/operations/workflow/test_approvals.py::test_closing_an_operation_deletes_its_one_time_code",
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
        "tests/operations/delivery/test_release.py::test_only_one_release_is_open_at_a_time",
    ),
)
