"""Safeguards of approval policies: never fewer people, in their order, by the stricter of two versions."""

from tests.sabotage.workshop import Safeguard

_TESTS = "tests/operations/test_approval_policies.py::"
POLICIES = (
    Safeguard(
        "a level needs at least one approval",
        "backoffice.policies.document:Level",
        {"Field(ge=1, le=MOST_APPROVALS)": "Field(ge=0, le=MOST_APPROVALS)"},
        "tests/policies/test_document.py"
        "::test_a_document_by_which_fewer_would_be_enough_or_that_means_nothing_cannot_be_made",
    ),
    Safeguard(
        "a rule that does not refuse requires an approval",
        "backoffice.policies.document:Rule",
        {"        if bool(self.refuse) == bool(self.levels):\n": "        if self.refuse and self.levels:\n"},
        "tests/policies/test_document.py"
        "::test_a_document_by_which_fewer_would_be_enough_or_that_means_nothing_cannot_be_made",
    ),
    Safeguard(
        "the last rule is after all others",
        "backoffice.policies.document:PolicyDocument",
        {"        return (*self.rules, LAST_RULE)\n": "        return self.rules or (LAST_RULE,)\n"},
        "tests/policies/test_document.py::test_the_last_rule_is_in_no_document_and_after_every_one",
    ),
    Safeguard(
        "the preparer counts for no level",
        "backoffice.policies.evaluator:progress",
        {" for one in approvers if one.id != preparer_id}": " for one in approvers}"},
        "tests/policies/test_evaluator.py::test_the_preparer_never_counts",
    ),
    Safeguard(
        "an approver counts for one level only",
        "backoffice.policies.evaluator:progress",
        {"        unused = [one for one in unused if one not in counted]\n": ""},
        "tests/policies/test_evaluator.py::test_an_approver_counts_once",
    ),
    Safeguard(
        "levels are completed in their order",
        "backoffice.operations.policy:check_may_approve",
        {"    _check_level(person, operation)\n": ""},
        _TESTS + "test_an_approval_counts_for_the_open_level_only",
    ),
    Safeguard(
        "an operation that a policy refuses is not prepared",
        "backoffice.operations.workflow.prepare:prepare_operation",
        {"    requirements.check_not_refused(requirement)\n": ""},
        _TESTS + "test_a_refused_operation_is_not_prepared",
    ),
    Safeguard(
        "the levels hold at the claim",
        "backoffice.operations.policy:check_may_send",
        {
            (
                "    if not approval_progress(operation, counted).is_complete:\n"
                "        raise errors.ApprovalsMissingError\n"
            ): "    approval_progress(operation, counted)\n"
        },
        _TESTS + "test_a_tightened_policy_holds_at_the_claim_itself",
    ),
    Safeguard(
        "the stricter of the version it was prepared under and of the one in effect",
        "backoffice.operations.approval.requirements:required_levels",
        {"    return stricter(levels, requirement.levels)\n": "    return requirement.levels\n"},
        _TESTS + "test_a_loosened_policy_frees_nothing_that_waits",
    ),
    Safeguard(
        "a version that was tightened since holds",
        "backoffice.operations.approval.requirements:required_levels",
        {"    return stricter(levels, requirement.levels)\n": "    return levels\n"},
        _TESTS + "test_a_tightened_policy_holds_what_is_released",
    ),
    Safeguard(
        "a version that was tightened for batches holds their rows",
        "backoffice.operations.approval.requirements:required_levels",
        {"levels=stricter(requirement.levels, of_batch.levels)": "levels=requirement.levels"},
        "tests/operations/batches/test_policies.py"
        "::test_a_policy_tightened_for_batches_holds_each_row_until_it_has_the_approvals",
    ),
    Safeguard(
        "a version that refuses now holds what waits",
        "backoffice.operations.approval.requirements:required_levels",
        {"    check_not_refused(requirement)\n": ""},
        _TESTS + "test_a_policy_that_refuses_now_holds_what_waits",
    ),
    Safeguard(
        "the seal covers the levels",
        "backoffice.operations.models.operations:Operation",
        {'{"policy_version": self.policy_version, "levels": self.levels}': "{}"},
        _TESTS + "test_altered_levels_break_the_seal",
    ),
    Safeguard(
        "the audit log has the levels",
        "backoffice.operations.seals:_log_faults",
        {
            '"rule", "policy_version", "levels")': '"rule")',
            "[operation.rule, operation.policy_version, operation.levels]": "[operation.rule]",
        },
        _TESTS + "test_the_audit_log_has_to_agree_with_the_levels",
    ),
    Safeguard(
        "a version that Countersign did not store decides nothing",
        "backoffice.policies.models:PolicyVersion",
        {"self.seal_state() != SealState.VALID or ": ""},
        _TESTS + "test_an_altered_version_stops_everything",
    ),
    Safeguard(
        "a version that the audit log has cannot be deleted with its operation",
        "backoffice.policies.models:policy_in_effect",
        {"    if newest is None or not newest.is_in(newest.logged):\n": "    if newest is None:\n"},
        _TESTS + "test_a_version_deleted_with_its_operation_stops_everything[1]",
    ),
    Safeguard(
        "the first version that the audit log has cannot be deleted with its operation",
        "backoffice.policies.models:policy_in_effect",
        {"        if not logged.exists():\n": "        if newest is None:\n"},
        _TESTS + "test_a_version_deleted_with_its_operation_stops_everything[0]",
    ),
    Safeguard(
        "a version that is missing stops what was prepared under it",
        "backoffice.operations.approval.requirements:required_levels",
        {"        raise errors.PolicyAlteredError\n": "        return levels\n"},
        _TESTS + "test_a_missing_version_stops_what_was_prepared_under_it",
    ),
    Safeguard(
        "a version that nobody can satisfy is not put into effect",
        "backoffice.operations.lifecycle.policy_version:apply_policy",
        {"    check_policy(payload.document)\n": ""},
        _TESTS + "test_a_version_that_nobody_can_satisfy_is_not_applied",
    ),
    Safeguard(
        "a change of people leaves the policy satisfiable",
        "backoffice.operations.kinds.satisfiability:check_policy_stays_satisfiable",
        {"        check_satisfiable(policy.document, after)\n": "        return\n"},
        _TESTS + "test_a_change_of_people_leaves_the_policy_satisfiable",
    ),
    Safeguard(
        "the names in a version are those of their ids",
        "backoffice.operations.lifecycle.policy_version:check_policy",
        {"    _check_names(document)\n": ""},
        _TESTS + "test_a_name_that_is_another_persons_is_refused",
    ),
    Safeguard(
        "a version replaces the one it was compared with",
        "backoffice.operations.lifecycle.policy_version:check_replaces_newest",
        {"    if newest != number:\n": "    if newest < 0:\n"},
        _TESTS + "test_a_version_that_was_prepared_beside_another_is_not_applied",
    ),
)
