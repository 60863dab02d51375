"""Safeguards against one person alone, each caught by a test of the fault campaign: break-glass, invited accounts,
delegations, policies, changes of groups, and batches.
"""

from tests.sabotage.workshop import Safeguard

_ALONE = "tests/faults/test_one_person_alone.py"
_MEANWHILE = "tests/faults/test_rules_changed_meanwhile.py"
_BY_THE_PREPARER = {
    "    _check_other_person(person, operation)\n    _check_awaits_approval(operation)\n": "    pass\n"
}
_WITHHELD = "backoffice.accounts.roles"

ONE_PERSON = (
    # Break-glass
    Safeguard(
        "two accounts made at the shell by one person move no money",
        _WITHHELD,
        {
            "    RestrictionCause.BREAK_GLASS: _MONEY_DECISIONS\n    | {": "    RestrictionCause.BREAK_GLASS: {"
        },
        f"{_ALONE}::test_two_accounts_of_one_person_move_no_money",
    ),
    # Two accounts invited by one person
    Safeguard(
        "an invitation needs a second administrator",
        "backoffice.operations.policy:check_is_decidable",
        _BY_THE_PREPARER,
        f"{_ALONE}::test_an_administrator_alone_invites_nobody",
    ),
    Safeguard(
        "who invited two people opens neither account with the links",
        "backoffice.accounts.models:SetupLink.accepts_code",
        {"not self.code_digest or ": "bool(self.digest) or "},
        f"{_ALONE}::test_the_inviter_of_two_accounts_opens_neither",
    ),
    Safeguard(
        "two accounts invited by one person move no money",
        _WITHHELD,
        {
            "    RestrictionCause.NEW_RIGHTS: _MONEY_DECISIONS,\n": "    RestrictionCause.NEW_RIGHTS: frozenset(),\n"
        },
        f"{_ALONE}::test_two_accounts_invited_by_one_person_move_no_money",
    ),
    Safeguard(
        "two invited administrators do not make their inviter an approver",
        "backoffice.operations.lifecycle.staff_change:_check_invited_by_others",
        {'    if set(invited.values_list("user", flat=True)) == agreed:\n': "    if invited is None:\n"},
        f"{_ALONE}::test_two_invited_administrators_do_not_make_their_inviter_an_approver",
    ),
    # Delegation to oneself
    Safeguard(
        "a person cannot be their own stand-in",
        "backoffice.operations.kinds.delegation:check_delegation",
        {"    if payload.person == payload.stand_in:\n": "    if payload.person == 0:\n"},
        f"{_ALONE}::test_a_delegation_to_oneself_can_neither_be_entered_nor_begin",
    ),
    Safeguard(
        "a delegation needs a second person",
        "backoffice.operations.policy:check_is_decidable",
        _BY_THE_PREPARER,
        f"{_ALONE}::test_nobody_delegates_to_themselves_or_agrees_alone",
    ),
    Safeguard(
        "a stand-in does not approve for the preparer",
        "backoffice.policies.evaluator:capacity",
        {
            "        if hindrance(replace(away, is_on_leave=False), level, **terms) is None:\n": "        if away:\n"
        },
        f"{_ALONE}::test_a_stand_in_approves_for_nobody_what_one_of_the_two_prepared",
    ),
    # A policy that names its proposer
    Safeguard(
        "a policy by which the preparer alone could approve is not put into effect",
        "backoffice.operations.kinds.satisfiability:_unsatisfied_levels",
        {"[person for person in approvers if person != preparer]": "approvers"},
        f"{_MEANWHILE}::test_a_policy_that_names_its_proposer_alone_is_not_put_into_effect",
    ),
    Safeguard(
        "the proposer of a policy cannot approve it",
        "backoffice.operations.policy:check_is_decidable",
        _BY_THE_PREPARER,
        f"{_MEANWHILE}::test_nobody_puts_a_policy_of_their_own_into_effect",
    ),
    Safeguard(
        "a policy that names the preparer does not let the preparer approve",
        "backoffice.operations.policy:check_is_decidable",
        _BY_THE_PREPARER,
        f"{_MEANWHILE}::test_under_a_policy_that_names_the_preparer_alone_nobody_approves",
    ),
    # A change of groups in between
    Safeguard(
        "a preparer who joins the approving group meanwhile does not approve",
        "backoffice.operations.policy:check_is_decidable",
        _BY_THE_PREPARER,
        f"{_MEANWHILE}::test_a_preparer_who_joins_the_group_meanwhile_does_not_approve",
    ),
    Safeguard(
        "after its approver left the group an operation is not released",
        "backoffice.operations.policy:check_may_release",
        {"    if lacks_approvals(operation):\n": "    if person is None:\n"},
        f"{_MEANWHILE}::test_an_approval_does_not_count_for_a_release_after_a_change_of_its_approver"
        "[leaves_the_group]",
    ),
    Safeguard(
        "after its approver left the group an operation is not claimed",
        "backoffice.operations.policy:_check_complete",
        {"    if not approval_progress(operation, counted).is_complete:\n": "    if counted is None:\n"},
        f"{_MEANWHILE}::test_an_approval_does_not_count_at_the_claim_after_a_change_of_its_approver"
        "[leaves_the_group-approvals_missing]",
    ),
    # A batch
    Safeguard(
        "the preparer of a batch does not approve it",
        "backoffice.operations.policy:check_is_decidable",
        _BY_THE_PREPARER,
        f"{_ALONE}::test_the_preparer_of_a_batch_does_not_approve_it",
    ),
    Safeguard(
        "the preparer of a batch sends none of its rows, alone or in one order",
        "backoffice.operations.policy:check_may_release",
        {"    _check_other_person(person, operation)\n": ""},
        f"{_ALONE}::test_the_preparer_of_a_batch_does_not_send_its_rows",
    ),
    Safeguard(
        "the preparer of a batch does not end its pause",
        "backoffice.operations.policy:check_may_resume_batch",
        {"    _check_other_person(person, batch.operation)\n": ""},
        f"{_ALONE}::test_the_preparer_of_a_batch_does_not_send_its_rows",
    ),
    Safeguard(
        "a row is not claimed after the approver of its batch lost the role",
        "backoffice.operations.policy:_check_people",
        {"    if len(counted) < operation.approvals_needed:": "    if counted is None:"},
        f"{_MEANWHILE}::test_a_row_is_not_claimed_after_the_approver_of_its_batch_lost_the_role",
    ),
)
