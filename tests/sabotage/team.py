"""Safeguards of the team: what keeps one person from giving rights alone, or from acting as two."""

from tests.sabotage.workshop import Safeguard

_CHANGES = "tests/operations/kinds/staff/test_staff_change.py"
_TEAM = "tests/governance/test_team.py"
_JOINT = "tests/governance/test_joint_handover.py"
_MAIL = "tests/governance/test_setup_mail.py"
_INVITATIONS = "tests/governance/test_invitations.py"
_RENEWED = "tests/governance/test_renewed_link.py"
_LINKS = "backoffice.accounts.setup_links"
_DEACTIVATION = "backoffice.governance.deactivation"

TEAM = (
    Safeguard(
        "nobody prepares a change of their own rights",
        "backoffice.operations.policy:check_proposal",
        {"    if person.pk in KINDS[kind].affected_people(payload):\n": "    if kind not in KINDS:\n"},
        f"{_CHANGES}::test_nobody_prepares_a_change_of_their_own_rights",
    ),
    Safeguard(
        "nobody approves a change of their own rights",
        "backoffice.operations.policy:_check_not_affected",
        {"    if person.pk in affected_people(operation):\n": "    if person is None:\n"},
        f"{_CHANGES}::test_nobody_approves_a_change_of_their_own_rights",
    ),
    Safeguard(
        "approvers of payments do not approve staff changes",
        "backoffice.operations.kinds.staff_change:StaffChangeKind",
        {"    approval_permission = APPROVE_GOVERNANCE\n": ""},
        f"{_CHANGES}::test_an_approver_of_payments_does_not_approve_a_change_of_staff",
    ),
    Safeguard(
        "administrators do not approve payments",
        "backoffice.operations.policy:check_may_approve",
        {"approval_permission_for(operation.kind)": "permissions.VIEW"},
        f"{_CHANGES}::test_an_administrator_does_not_approve_payments",
    ),
    Safeguard(
        "two accounts that one person invited give that person no rights",
        "backoffice.operations.lifecycle.staff_change:apply_staff_change",
        {
            "    if payload.change == StaffChange.RIGHTS and payload.gives_rights:\n": "    if not payload.reason:\n"
        },
        f"{_CHANGES}::test_two_accounts_invited_by_one_person_give_that_person_no_rights",
    ),
    Safeguard(
        "a link alone opens no account that two people agreed on",
        "backoffice.accounts.models:SetupLink.accepts_code",
        {"not self.code_digest or ": "bool(self.digest) or "},
        f"{_CHANGES}::test_one_person_cannot_open_two_invited_accounts",
    ),
    Safeguard(
        "link and start code are shown to two different people",
        f"{_LINKS}:handover_of",
        {
            "    if link is None or person.pk not in {link.link_for_id, link.code_for_id}:\n": "    if link is None:\n"
        },
        f"{_CHANGES}::test_the_halves_need_a_fresh_second_factor_and_are_for_the_two_people_only",
    ),
    Safeguard(
        "each half of a link is shown once",
        f"{_LINKS}:show_handover",
        {
            "found.shown_at is not None or ": "",
        },
        f"{_TEAM}::test_link_and_code_are_shown_once_to_the_two_who_agreed",
    ),
    Safeguard(
        "the start code is never in a mail",
        "backoffice.governance.pages.handover:handover",
        {
            "found is not None and found.is_link and may_mail_links()": "found is not None and may_mail_links()"
        },
        f"{_MAIL}::test_the_start_code_is_never_mailed",
    ),
    Safeguard(
        "wrong start codes lock out whoever has the link",
        "backoffice.accounts.sign_in:_start_code_refusal",
        {"lockout.count_wrong_link(": "lockout.are_links_locked_out("},
        "tests/operations/kinds/staff/test_staff_change.py"
        "::test_wrong_start_codes_lock_out_whoever_has_the_link",
    ),
    Safeguard(
        "a link is not written to the log in place of a mail",
        "backoffice.governance.pages.handover:may_mail_links",
        {"email_is_on() and bool(settings.PUBLIC_URL)": "bool(settings.PUBLIC_URL)"},
        f"{_MAIL}::test_without_mail_the_link_is_shown",
    ),
    Safeguard(
        "a half is shown with a fresh second factor only",
        f"{_LINKS}:show_handover",
        {"    if not is_second_factor_fresh(second_factor_at):\n": "    if actor is None:\n"},
        f"{_CHANGES}::test_the_halves_need_a_fresh_second_factor_and_are_for_the_two_people_only",
    ),
    Safeguard(
        "the page of several shows only one's own halves",
        "backoffice.governance.pages.joint_handover:_chosen_lines",
        {
            "own_operations(person, part).filter(": "Operation.objects.filter(",
            "open_halves(person, part).filter(": "SetupLink.objects.filter(",
        },
        f"{_JOINT}::test_each_person_sees_only_their_own_half",
    ),
    Safeguard(
        "the page of several needs a fresh second factor",
        "backoffice.governance.pages.joint_handover",
        {
            "    if not form.is_valid():\n": "    if not form.is_bound:\n",
            "second_factor_at=second_factor_at(request)": "second_factor_at=clock.now()",
            "from backoffice.core.web.submissions": (
                "from backoffice.core import clock\nfrom backoffice.core.web.submissions"
            ),
        },
        f"{_JOINT}::test_without_a_fresh_second_factor_nothing_is_shown",
    ),
    Safeguard(
        "the page of several asks for the second factor again for each person",
        "backoffice.governance.pages.joint_handover:_hand_over",
        {"second_factor_at=second_factor_at(request)": "second_factor_at=request.session.now"},
        f"{_JOINT}::test_a_second_factor_that_ends_in_between_is_refused_for_each_of_the_others",
    ),
    Safeguard(
        "who was invited waits before deciding about money",
        "backoffice.operations.lifecycle.staff_change:_invite",
        {"    _grant(user, AccountChange.CREATED, operation, payload, actor)\n": ""},
        f"{_CHANGES}::test_who_was_invited_cannot_approve_release_or_resolve_for_24_hours",
    ),
    Safeguard(
        "who was reactivated waits before deciding about money",
        "backoffice.operations.lifecycle.staff_change:_reactivate",
        {"    _grant(user, AccountChange.REACTIVATED, operation, payload, actor)\n": "    return None\n"},
        f"{_CHANGES}::test_a_deactivated_person_is_reactivated_by_two_people",
    ),
    Safeguard(
        "who got a new second factor waits before deciding about money",
        "backoffice.operations.lifecycle.staff_change:_reset_second_factor",
        {"    _grant(user, AccountChange.SECOND_FACTOR_RESET, operation, payload, actor)\n": ""},
        f"{_CHANGES}::test_a_reset_deletes_the_second_factor_and_gives_a_link_of_two_halves",
    ),
    Safeguard(
        "a group is a right: who joins one in between has not approved",
        "backoffice.operations.kinds.staff_change:StaffChangePayload",
        {"bool(self.new_roles or self.new_groups)": "bool(self.new_roles)"},
        f"{_CHANGES}::test_a_group_change_in_between_withholds_the_approval_and_the_release[approver]",
    ),
    Safeguard(
        "a change of what has changed meanwhile is not applied",
        "backoffice.operations.lifecycle.staff_change:apply_staff_change",
        {"    check_applicable(payload)\n": ""},
        f"{_CHANGES}::test_a_change_of_what_has_changed_meanwhile_is_not_applied",
    ),
    Safeguard(
        "break-glass withholds the approval of staff changes",
        "backoffice.accounts.roles",
        {', "operations.approve_governance_change"}': "}"},
        f"{_CHANGES}::test_break_glass_withholds_the_approval_of_changes_of_staff",
    ),
    Safeguard(
        "two active administrators remain after a deactivation",
        f"{_DEACTIVATION}:deactivate_person",
        {"    check_administrators(before, after)\n": ""},
        f"{_TEAM}::test_two_active_administrators_remain",
    ),
    Safeguard(
        "administrators without an authenticator do not count among those who remain",
        "backoffice.operations.kinds.staffing:check_administrators",
        {", (before.enrolled_only(), after.enrolled_only())": ","},
        f"{_TEAM}::test_administrators_without_an_authenticator_do_not_count_among_those_who_remain",
    ),
    Safeguard(
        "one administrator cannot end all staff and policy changes",
        f"{_DEACTIVATION}:deactivate_person",
        {"    check_governance_stays_satisfiable(before, after)\n": ""},
        f"{_TEAM}::test_an_administrator_without_whom_nothing_could_be_approved_remains",
    ),
    Safeguard(
        "administrators without an authenticator do not count for sending",
        "backoffice.accounts.roles:enrolled_administrators",
        {"enrolled_people()": "User.objects.filter(is_active=True)"},
        f"{_TEAM}::test_nothing_is_sent_until_two_administrators_are_active",
    ),
    Safeguard(
        "two active administrators remain after a staff change",
        "backoffice.operations.kinds.staffing",
        {"= [check_administrators, check_somebody_approves]": "= [check_somebody_approves]"},
        f"{_CHANGES}::test_a_change_that_leaves_one_administrator_is_refused",
    ),
    Safeguard(
        "the first steps do not return once a second administrator has set up the account",
        "backoffice.governance.bootstrap:bootstrap_state",
        {"    is_open = len(started) < REQUIRED_ADMINISTRATORS and": "    is_open = started is not None and"},
        f"{_TEAM}::test_the_first_steps_end_for_good[a second who set up the account]",
    ),
    Safeguard(
        "the first steps end with the first account of anybody else",
        "backoffice.governance.bootstrap:bootstrap_state",
        {" and not has_others": ""},
        f"{_TEAM}::test_the_first_steps_end_for_good[other people]",
    ),
    Safeguard(
        "the first steps end with the first use of break-glass",
        "backoffice.governance.bootstrap:bootstrap_state",
        {" and not was_break_glass_used": ""},
        f"{_TEAM}::test_the_first_steps_end_for_good[break-glass]",
    ),
    Safeguard(
        "the first steps do not replace an account that was made at the shell",
        "backoffice.governance.bootstrap:bootstrap_state",
        {" or (person.is_active and not person.invited_alone)": ""},
        f"{_TEAM}::test_the_first_steps_leave_an_account_that_was_made_at_the_shell",
    ),
    Safeguard(
        "one administrator alone renews a link in a new installation only",
        "backoffice.governance.bootstrap:renew_second_administrator_link",
        {"not state.is_open or ": ""},
        f"{_RENEWED}::test_the_link_is_not_renewed_any_more[other people]",
    ),
    Safeguard(
        "one administrator alone renews no link once two are active",
        "backoffice.governance.bootstrap:renew_second_administrator_link",
        {"not state.is_open or ": ""},
        f"{_RENEWED}::test_the_link_is_not_renewed_any_more[a second active one]",
    ),
    Safeguard(
        "who once set up an authenticator gets no new link from one administrator alone",
        "backoffice.governance.bootstrap:bootstrap_state",
        {
            "person.invited_alone and not person.ever_enrolled and": "person.invited_alone and",
            "person.ever_enrolled or (person.is_active": "(person.is_active",
        },
        f"{_RENEWED}::test_the_link_is_not_renewed_any_more[reset]",
    ),
    Safeguard(
        "who was deactivated gets no new link from one administrator alone",
        "backoffice.governance.bootstrap:renew_second_administrator_link",
        {" or person not in state.invited": ""},
        f"{_RENEWED}::test_the_link_is_not_renewed_any_more[deactivated]",
    ),
    Safeguard(
        "a new link ends the session that the earlier one opened",
        "backoffice.governance.bootstrap:renew_second_administrator_link",
        {"    if person.has_usable_password():\n": "    if not person.is_active:\n"},
        f"{_RENEWED}::test_a_new_link_replaces_a_password_without_an_authenticator",
    ),
    Safeguard(
        "the link of the second administrator is renewed with a fresh second factor only",
        "backoffice.governance.pages.bootstrap:renew_link",
        {"    if form.is_valid():\n": "    if form.is_bound:\n"},
        f"{_RENEWED}::test_a_new_link_needs_a_fresh_second_factor_and_a_csrf_token",
    ),
    Safeguard(
        "people are invited together or none of them",
        "backoffice.operations.workflow.prepare:prepare_together",
        {"        with transaction.atomic():\n": "        if drafts:\n"},
        f"{_INVITATIONS}::test_all_are_prepared_or_none",
    ),
    Safeguard(
        "an invitation by one person alone is an incident",
        "backoffice.governance.bootstrap:invite_second_administrator",
        {
            "    BreakGlassChange.objects.create(\n        user=user, change=AccountChange.INVITED_ALONE, "
            "roles=roles, at=now, invited_by=actor\n    )\n": ""
        },
        f"{_TEAM}::test_an_invitation_by_one_alone_is_red_until_a_third_person_acknowledges_it",
    ),
    Safeguard(
        "the second administrator made at the shell is an incident",
        "backoffice.accounts.break_glass:_first_administrator_beside",
        {"    return _active_administrators().exclude(pk=user.pk).first()\n": "    return None\n"},
        "tests/accounts/test_commands.py::test_the_second_administrator_made_at_the_shell_is_an_incident",
    ),
    Safeguard(
        "who invited the second administrator alone does not acknowledge that",
        "backoffice.accounts.restrictions:BreakGlassChange.is_about",
        {"{self.user_id, self.invited_by_id}": "{self.user_id}"},
        f"{_TEAM}::test_neither_of_the_two_acknowledges_the_invitation",
    ),
    Safeguard(
        "who got a new second factor or was reactivated waits before approving staff changes",
        "backoffice.accounts.roles",
        {
            '    RestrictionCause.RECOVERED_ACCOUNT: frozenset({"operations.approve_governance_change"}),\n': (
                "    RestrictionCause.RECOVERED_ACCOUNT: frozenset(),\n"
            )
        },
        f"{_CHANGES}::test_a_recovered_account_approves_no_changes_of_staff_for_24_hours",
    ),
    Safeguard(
        "a chat channel is saved with a fresh second factor only",
        "backoffice.notifications.pages:chat_channel",
        {"    if not has_fresh_second_factor(request):\n": "    if request.user is None:\n"},
        "tests/notifications/test_preferences.py::test_a_chat_channel_is_saved_with_a_fresh_second_factor_only",
    ),
    Safeguard(
        "nothing is sent until two administrators are active",
        "backoffice.operations.policy:check_may_release",
        {"    check_administrators()\n": ""},
        f"{_TEAM}::test_nothing_is_sent_until_two_administrators_are_active",
    ),
    Safeguard(
        "an access review of rights that have changed is not signed off",
        "backoffice.operations.lifecycle.access_review:sign_access_review",
        {"    check_report_unchanged(payload)\n": ""},
        f"{_TEAM}::test_a_review_of_rights_that_have_changed_is_not_signed_off",
    ),
)
