"""Safeguards of the register of recipients: two people, their seal, and the allow-list wherever money depends on it."""

from tests.sabotage.workshop import Safeguard

_TESTS = "tests/operations/test_allow_list.py::"
_REQUIRED = "tests/operations/test_recipient_requirements.py::"
_FORM = (
    "tests/governance/test_policies.py::"
    "test_requirements_for_recipients_are_proposed_in_a_form_and_seen_by_who_approves"
)
_HOLDERS = "tests/operations/delivery/test_holder_names.py::"
_IMPORTS = "tests/operations/batches/test_recipient_imports.py::"
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
        {"    allow_list.check_recipients_of(operation)\n": ""},
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
        "the payout of a payment is in the currency that two people agreed on",
        "backoffice.operations.kinds.payment:PaymentKind.paid_currency",
        {"        return payload.outgoing_currency\n": "        return super().paid_currency(payload)\n"},
        _TESTS + "test_the_currency_of_the_register_holds_for_the_payout_of_a_payment",
    ),
    Safeguard(
        "a user is paid under exactly the name that two people agreed on",
        "backoffice.operations.allow_list:_check",
        {"version.account != username": "version.account.casefold() != username.casefold()"},
        _TESTS + "test_a_user_is_paid_under_exactly_the_approved_name",
    ),
    Safeguard(
        "an address is paid on the networks that two people agreed on only",
        "backoffice.operations.allow_list:_check",
        {"            raise RecipientNetworkError(version.network)\n": "            pass\n"},
        _TESTS + "test_another_network_is_refused_at_every_later_step",
    ),
    Safeguard(
        "an address is approved for a policy on its networks only",
        "backoffice.operations.descriptions:History.recipient",
        {" and approved.is_payable_on(network)": ""},
        _TESTS + "test_an_address_is_saved_on_its_networks_only",
    ),
    Safeguard(
        "another network begins cooling again",
        "backoffice.operations.lifecycle.recipient:_next_version",
        {"        and newest.network == payload.network\n": ""},
        _TESTS + "test_a_further_network_is_agreed_on_and_begins_cooling_again",
    ),
    Safeguard(
        "cooling holds payments of kinds without an allow-list",
        "backoffice.operations.allow_list:cooling_hold",
        {
            "    if cooling is None:\n": "    if cooling is None or operation.kind not in required.approved_only:\n"
        },
        _TESTS + "test_cooling_holds_registered_recipients_without_an_allow_list_too",
    ),
    Safeguard(
        "a recipient is not paid before cooling has ended",
        "backoffice.operations.allow_list:check_payable",
        {"        raise RecipientCoolingError(hold.until)\n": "        return\n"},
        _TESTS + "test_cooling_holds_the_payment_and_not_its_approval",
    ),
    Safeguard(
        "the ceiling of cooling is for all payments to a recipient together",
        "backoffice.operations.allow_list:_is_within_ceiling",
        {"sum(others, operation.amount)": "operation.amount"},
        _TESTS + "test_the_ceiling_is_for_all_payments_together",
    ),
    Safeguard(
        "a payment that lacks only the approval in place of cooling does not wait to be sent",
        "backoffice.operations.approval.waiting:_operations_to_evaluate",
        {" | allow_list.may_need_one_more()": ""},
        _TESTS + "test_what_lacks_only_the_approval_in_place_of_cooling_waits_for_who_can_give_it",
    ),
    Safeguard(
        "the approval that takes the place of cooling is needed at the claim",
        "backoffice.operations.approval.requirements:required_now",
        {"        levels = (*levels, Level(needed=1))\n": "        pass\n"},
        _TESTS + "test_one_more_approval_takes_the_place_of_cooling",
    ),
    Safeguard(
        "the allow-list of the approval policies holds in the moment of sending",
        "backoffice.operations.allow_list:requirements_for",
        {"demanded_by_deployment().stricter(policy.document.recipients)": "demanded_by_deployment()"},
        _REQUIRED + "test_a_tightened_policy_holds_at_every_later_step",
    ),
    Safeguard(
        "a loosened policy frees no payment that waits to a recipient that is no longer approved",
        "backoffice.operations.allow_list:requirements_for",
        {"    return required.stricter(_required_by_versions({number})[number])\n": "    return required\n"},
        _REQUIRED + "test_a_loosened_policy_frees_nothing_that_waits",
    ),
    Safeguard(
        "a policy takes away nothing that the settings demand of recipients",
        "backoffice.operations.allow_list:requirements_for",
        {"demanded_by_deployment().stricter(policy.document.recipients)": "policy.document.recipients"},
        _REQUIRED + "test_a_policy_cannot_take_away_what_the_settings_demand",
    ),
    Safeguard(
        "cooling of the settings holds whatever a policy permits",
        "backoffice.policies.document:RecipientRequirements.stricter",
        {
            "            cooling=both or self.cooling or other.cooling,\n": "            cooling=other.cooling,\n"
        },
        _REQUIRED + "test_cooling_of_the_settings_holds_whatever_the_policy_permits",
    ),
    Safeguard(
        "the digest of a policy covers what is required of recipients",
        "backoffice.policies.document:PolicyDocument._without_empty_requirements",
        {"        if self.recipients == RecipientRequirements():\n": "        if True:\n"},
        "tests/policies/test_document.py::test_the_digest_covers_everything_that_is_required_of_recipients",
    ),
    Safeguard(
        "whoever approves a policy sees what it changes for recipients",
        "backoffice.policies.sentences:compare_recipients",
        {"        if not same\n": "        if not before\n"},
        _FORM,
    ),
    Safeguard(
        "another list of a policy leaves what it requires of recipients as it is",
        "backoffice.governance.policy_drafts:keep_draft",
        {
            "draft.document.model_copy(update=changes)": "PolicyDocument(rules=draft.document.rules, **changes)"
        },
        _FORM,
    ),
    Safeguard(
        "a payment whose holder has another name is not sent",
        "backoffice.operations.delivery.holder_names:check_unchanged",
        {"        raise FoundHolderError(payload.account_name, name)\n": "        return {}\n"},
        _HOLDERS + "test_a_name_that_changed_since_the_approval_holds_the_payment",
    ),
    Safeguard(
        "a name that is only similar holds a payment too",
        "backoffice.operations.delivery.holder_names:check_unchanged",
        {"is_same_holder(payload.account_name, name)": "payload.account_name.split()[0] in name"},
        _HOLDERS + "test_a_name_that_changed_since_the_approval_holds_the_payment",
    ),
    Safeguard(
        "exactly the name is confirmed that was seen",
        "backoffice.operations.delivery.release:_confirm_holder",
        {" or set(confirmed_holder.names) != {one.name for one in changes}": ""},
        _HOLDERS + "test_it_is_released_again_only_with_the_name_that_was_seen",
    ),
    Safeguard(
        "a name is confirmed with a second factor of after it was found",
        "backoffice.operations.delivery.release:_confirm_holder",
        {" or second_factor_at < max(one.found_at for one in changes)": ""},
        _HOLDERS + "test_it_needs_a_second_factor_after_the_name_was_found",
    ),
    Safeguard(
        "the seal of a release covers the names that it confirms",
        "backoffice.operations.models.operations:Release.sealed_content",
        {'            **({"holder_names": self.holder_names} if self.holder_names else {}),\n': ""},
        _HOLDERS + "test_a_confirmation_written_into_the_database_does_not_count",
    ),
    Safeguard(
        "the rows of an import are those that were approved",
        "backoffice.operations.kinds.recipient_import:is_as_approved",
        {"row.digest != row_digest(operation.pk, row.number, row.payload)": "not row.digest"},
        _IMPORTS + "test_rows_altered_after_submission_are_not_approved",
    ),
    Safeguard(
        "an import is applied to the register that it was checked against",
        "backoffice.operations.lifecycle.recipient:apply_import",
        {"    check_all_applicable(added)\n": ""},
        _IMPORTS + "test_one_recipient_that_was_added_meanwhile_stops_the_whole_import",
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
        {"                typed[name] = value\n": "                pass\n"},
        "tests/operations/kinds/test_recipient.py::test_a_change_cannot_touch_who_is_paid",
    ),
    Safeguard(
        "an altered recipient does not avoid the check of its holder's name",
        "backoffice.operations.delivery.holder_names:_is_registered",
        {"        raise RecipientAlteredError\n": "        return False\n"},
        _HOLDERS + "test_a_recipient_retired_in_the_database_alone_does_not_avoid_the_check",
    ),
    Safeguard(
        "the rules of a single recipient decide about an import, too",
        "backoffice.operations.descriptions:describe_with",
        {"(kind.name, *kind.ruled_as_well_as)": "(kind.name,)"},
        _IMPORTS + "test_an_import_needs_the_approvals_that_a_single_recipient_needs",
    ),
)
