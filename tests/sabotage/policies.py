"""Safeguards of approval policies: never fewer people, in their order, by the stricter of two versions."""

from tests.sabotage.workshop import Safeguard

_TESTS = "tests/operations/test_approval_policies.py::"
_STAND_INS = "tests/operations/test_delegations.py::"
_FORMS = "tests/governance/test_policies.py::"
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
        {"    unused, used = [], {preparer_id}\n": "    unused, used = [], set()\n"},
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
        {"    return delegation_to_approve(person, operation)\n": "    return None\n"},
        _TESTS + "test_an_approval_counts_for_the_open_level_only",
    ),
    Safeguard(
        "an operation that a policy refuses is not prepared",
        "backoffice.operations.workflow.prepare:_store",
        {"    requirements.check_not_refused(requirement)\n": ""},
        _TESTS + "test_a_refused_operation_is_not_prepared",
    ),
    Safeguard(
        "the levels hold at the claim",
        "backoffice.operations.policy:_check_complete",
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
        "backoffice.operations.approval.requirements:agreed_levels",
        {"    return stricter(levels, requirement.levels)\n": "    return requirement.levels\n"},
        _TESTS + "test_a_loosened_policy_frees_nothing_that_waits",
    ),
    Safeguard(
        "a version that was tightened since holds",
        "backoffice.operations.approval.requirements:agreed_levels",
        {"    return stricter(levels, requirement.levels)\n": "    return levels\n"},
        _TESTS + "test_a_tightened_policy_holds_what_is_released",
    ),
    Safeguard(
        "a version that was tightened for batches holds their rows",
        "backoffice.operations.approval.requirements:agreed_levels",
        {"levels=stricter(requirement.levels, of_batch.levels)": "levels=requirement.levels"},
        "tests/operations/batches/test_policies.py"
        "::test_a_policy_tightened_for_batches_holds_each_row_until_it_has_the_approvals",
    ),
    Safeguard(
        "a version that refuses now holds what waits",
        "backoffice.operations.approval.requirements:agreed_levels",
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
        {
            '    if values["number"] is None or not version.is_in(detail):\n': '    if values["number"] is None:\n'
        },
        _TESTS + "test_a_version_deleted_with_its_operation_stops_everything[1]",
    ),
    Safeguard(
        "the first version that the audit log has cannot be deleted with its operation",
        "backoffice.policies.models:policy_in_effect",
        {" is None and detail is None and (": " is None and ("},
        _TESTS + "test_a_version_deleted_with_its_operation_stops_everything[0]",
    ),
    Safeguard(
        "a version that is missing stops what was prepared under it",
        "backoffice.operations.approval.requirements:agreed_levels",
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
        {"        _check_causes_nothing(policy.document, before, after)\n": "        return\n"},
        _TESTS + "test_a_change_of_people_leaves_the_policy_satisfiable",
    ),
    Safeguard(
        "a rule that lacks people already hides no other one from a change of people",
        "backoffice.operations.kinds.satisfiability:_caused",
        {"unsatisfied.refusal not in known and whoever_prepares not in known": "not known"},
        _TESTS + "test_a_rule_that_lacks_people_already_hides_no_other_one",
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
    Safeguard(
        "a delegation is approved by neither of its two people",
        "backoffice.operations.kinds.delegation:DelegationKind",
        {"        return frozenset({payload.stand_in})\n": "        return frozenset()\n"},
        _STAND_INS + "test_the_stand_in_does_not_approve_it",
    ),
    Safeguard(
        "each approver names a stand-in for their own leave only",
        "backoffice.operations.kinds.delegation:DelegationKind",
        {"        if payload.person != preparer.pk:\n": "        if payload.person == 0:\n"},
        _STAND_INS + "test_nobody_proposes_for_another_person",
    ),
    Safeguard(
        "there is no circle of delegations",
        "backoffice.operations.lifecycle.delegation:start_delegation",
        {"    check_delegation(payload)\n": ""},
        _STAND_INS + "test_of_two_that_were_prepared_beside_each_other_one_begins",
    ),
    Safeguard(
        "a stand-in approves only what the person on leave could approve",
        "backoffice.policies.evaluator:capacity",
        {
            "        if hindrance(replace(away, is_on_leave=False), level, **terms) is None:\n": "        if away:\n"
        },
        _STAND_INS + "test_a_stand_in_does_not_approve_what_the_person_on_leave_prepared",
    ),
    Safeguard(
        "a stand-in is in the group of the person on leave",
        "backoffice.policies.evaluator:capacity",
        {"        if leave.group not in person.groups & away.groups:\n": "        if not leave.group:\n"},
        _STAND_INS + "test_a_stand_in_has_no_more_than_the_person_on_leave[in_another_group]",
    ),
    Safeguard(
        "a stand-in waits as for every new right",
        "backoffice.policies.delegations:Delegation",
        {"return self.acts_from <= moment < self.ends": "return self.starts_at <= moment < self.ends"},
        _STAND_INS + "test_a_stand_in_acts_in_the_period_and_after_the_waiting_time_only[changes0]",
    ),
    Safeguard(
        "a delegation that Countersign did not store gives nothing",
        "backoffice.policies.delegations:Delegation",
        {" and self.seal_state() == SealState.VALID": ""},
        _STAND_INS + "test_a_forged_delegation_gives_nothing",
    ),
    Safeguard(
        "a person for whom a stand-in approved does not approve again",
        "backoffice.operations.models.operations:Approval",
        {"(self.approver_id, self.on_behalf_of_id)": "(self.approver_id,)"},
        _STAND_INS + "test_a_person_for_whom_somebody_approved_does_not_approve_again",
    ),
    Safeguard(
        "the seal covers for whom a stand-in approved",
        "backoffice.operations.models.operations:Approval",
        {
            '        return {**decision, "on_behalf_of": self.on_behalf_of_id, "delegation": self.delegation_id}\n': (
                "        return decision\n"
            )
        },
        _STAND_INS + "test_the_seal_covers_for_whom_it_was_given[delegation]",
    ),
    Safeguard(
        "approvals of people who lost their rights do not count",
        "backoffice.operations.approval.progress:lacks_approvals",
        {"counting_approvals(operation, given)": "given"},
        _STAND_INS + "test_approvals_of_people_who_lost_their_rights_do_not_count",
    ),
    Safeguard(
        "an approval is stored only if the delegation still covers that time",
        "backoffice.operations.approval.progress:time_to_store",
        {"    if not current.covers(now):": "    if False:"},
        _STAND_INS
        + "test_an_approval_is_not_stored_if_the_delegation_ends_while_it_is_given[ends_by_itself]",
    ),
    Safeguard(
        "a delegation whose end is on record gives nothing",
        "backoffice.operations.approval.progress:delegation_to_approve",
        {"    if _has_end_on_record(delegation):\n        raise errors.NotInLevelError(found.level)\n": ""},
        _STAND_INS + "test_a_delegation_does_not_act_again_once_its_end_is_on_record",
    ),
    Safeguard(
        "ending a delegation does not seal what nobody agreed on",
        "backoffice.operations.lifecycle.delegation:end_delegation",
        {"    if is_as_agreed:": "    if True:"},
        _STAND_INS + "test_ending_does_not_seal_what_nobody_agreed_on",
    ),
    Safeguard(
        "a delegation without a valid seal is found each minute",
        "backoffice.operations.monitoring.recorded_rights:altered_delegations",
        {"        if one.seal_state() != SealState.VALID\n        or recorded": "        if recorded"},
        _STAND_INS + "test_a_delegation_unlike_the_audit_log_is_found[last_longer]",
    ),
    Safeguard(
        "a delegation that the audit log does not have is found each minute",
        "backoffice.operations.monitoring.recorded_rights:altered_delegations",
        {"recorded.get(str(one.pk)) != (one.person_id,": "False and (one.person_id,"},
        _STAND_INS + "test_a_delegation_unlike_the_audit_log_is_found[without_an_operation]",
    ),
    Safeguard(
        "a delegation that ended by the audit log only is found each minute",
        "backoffice.operations.monitoring.recorded_rights:altered_delegations",
        {"        or (str(one.pk) in ended) != (one.ended_at is not None)\n": ""},
        _STAND_INS + "test_a_delegation_unlike_the_audit_log_is_found[as_before_its_end]",
    ),
    Safeguard(
        "an escalation that no longer applies is not sent",
        "backoffice.notifications.delivery:_still_wanted",
        {"    messages = _without_past_escalations(messages)\n": ""},
        "tests/notifications/test_delivery.py"
        "::test_an_escalation_is_dropped_once_its_operation_does_not_wait_any_more[approved]",
    ),
    Safeguard(
        "a payee that looks like an approved recipient is one for policies, as it was when it was prepared",
        "backoffice.operations.descriptions:History.recipient",
        {"any(self._approved(one, at) for one in similar)": "bool(similar)"},
        "tests/operations/test_payee_look_alikes.py"
        "::test_it_is_what_was_known_when_the_operation_was_prepared",
    ),
    Safeguard(
        "hours that no rule uses are not dropped in silence",
        "backoffice.governance.policy_forms:RuleForm._refuse_what_would_be_ignored",
        {'if not values.get("hours") and (': "if False and ("},
        "tests/governance/test_policies.py"
        "::test_an_invalid_rule_is_explained_and_nothing_typed_is_lost[values9-within or outside these days and hours]",
    ),
    Safeguard(
        "a level without a number is not dropped in silence",
        "backoffice.governance.policy_forms:RuleForm._refuse_what_would_be_ignored",
        {"if not needed and ": "if False and "},
        "tests/governance/test_policies.py"
        "::test_an_invalid_rule_is_explained_and_nothing_typed_is_lost[values11-Enter how many must approve.]",
    ),
    Safeguard(
        "whoever submits a version that refuses payments without exception confirms it",
        "backoffice.governance.pages.policy_submission:SubmissionForm",
        {"        if refused is None:\n": "        if True:\n"},
        _FORMS + "test_refusing_payments_without_exception_is_confirmed_by_both_people",
    ),
    Safeguard(
        "whoever approves a version that refuses payments without exception confirms it",
        "backoffice.operations.kinds.approval_policy:ApprovalPolicyKind",
        {'        return refused.to_approve if refused else ""\n': '        return ""\n'},
        _FORMS + "test_refusing_payments_without_exception_is_confirmed_by_both_people",
    ),
    Safeguard(
        "a version that requires less is announced",
        "backoffice.operations.kinds.approval_policy:requires_less",
        {"    return requires_less_texts(old, new, kind_facts())\n": "    return RequiresLess()\n"},
        _FORMS + "test_a_version_that_requires_less_is_announced_to_both_people",
    ),
    Safeguard(
        "approvals of others are less than those of a group",
        "backoffice.policies.evaluator:requires_less",
        {
            "    return len(_with_the_rest(tuple(after), tuple(before))) > len(after)\n": (
                "    return approvals_in(tuple(after)) < approvals_in(tuple(before))\n"
            )
        },
        "tests/policies/test_weakening.py::test_what_requires_less_is_said_in_one_sentence[of others]",
    ),
    Safeguard(
        "a draft that changed after its review is not submitted",
        "backoffice.governance.pages.policy_submission:propose",
        {'    if request.POST.get("reviewed") != draft.document.digest:\n': "    if False:\n"},
        _FORMS + "test_what_changed_after_the_review_is_reviewed_again",
    ),
    Safeguard(
        "on a list, a name means an approved recipient only",
        "backoffice.governance.policy_recipients:_approved",
        {".filter(state=RecipientState.APPROVED)": ""},
        _FORMS + "test_lists_are_made_of_the_register_and_of_typed_accounts",
    ),
    Safeguard(
        "a night belongs to the weekday on which it begins",
        "backoffice.policies.evaluator:is_at",
        {"(weekday, (weekday - 1) % 7)": "(weekday, weekday)"},
        "tests/policies/test_evaluator.py::test_a_night_belongs_to_the_weekday_on_which_it_begins",
    ),
)
