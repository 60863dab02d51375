"""Safeguards against rows that someone writes who has the whole database and no key."""

from tests.sabotage.workshop import Safeguard

_SEALS = "tests/operations/test_seals.py::"
_NOT_SENT = f"{_SEALS}test_altered_rows_are_not_sent"
_REQUEST_START = "tests/operations/delivery/test_request_start.py::"
_BULK_RELEASE = (
    "tests/operations/pages/bulk/test_release.py"
    "::test_an_order_written_with_the_database_alone_releases_nothing_and_raises_an_incident"
)
_CHECKED_AT_THE_CLAIM = {"    seals.check_record(operation, approvals, release, trusts_digests=True)\n": ""}
_IMPOSTORS = "tests/faults/test_forged_records.py::test_a_preparer_does_not_become_an_approver_too"
_UNREADABLE = "tests/operations/monitoring/test_unreadable_rows.py::"
_ROWS = "tests/accounts/test_altered_rows.py::"

FORGERY = (
    Safeguard(
        "an operation whose content was replaced by what Python cannot read fails no list",
        "backoffice.core.fields:TolerantJSONField.from_db_value",
        {"except (ValueError, RecursionError):": "except ZeroDivisionError:"},
        "tests/operations/pages/test_forged_rows.py"
        "::test_an_operation_that_cannot_be_loaded_fails_no_page[approver-payload]",
    ),
    Safeguard(
        "an attempt whose content cannot be read is no match",
        "backoffice.operations.reconciliation.rules:_recipient_differences",
        {"        yield difference(DifferenceCode.CONTENT_UNREADABLE)\n": ""},
        "tests/operations/reconciliation/test_runner.py"
        "::test_an_attempt_of_unreadable_content_is_reported_and_ends_no_other_comparison",
    ),
    Safeguard(
        "who was deactivated and reactivated in the database alone does not decide",
        "backoffice.operations.policy:_entitled_person",
        {
            "without_reactivated_outside(users_with_permission(permission))": "users_with_permission(permission)"
        },
        f"{_IMPOSTORS}[with_a_session_from_before_the_deactivation]",
    ),
    Safeguard(
        "an approval of who was deactivated and reactivated in the database alone does not count",
        "backoffice.operations.approval.progress:counting_approvals",
        {"without_reactivated_outside(involved)": "involved"},
        "tests/operations/test_approval_policies.py"
        "::test_an_approval_of_somebody_who_was_deactivated_puts_nothing_into_effect[True]",
    ),
    Safeguard(
        "who was deactivated and reactivated in the database alone does not sign in",
        "backoffice.accounts.roles:StaffBackend.user_can_authenticate",
        {"without_reactivated_outside(User": "(User"},
        f"{_ROWS}test_an_account_reactivated_in_the_database_alone_signs_nobody_in",
    ),
    Safeguard(
        "who was deactivated and reactivated in the database alone is reported",
        "backoffice.operations.monitoring.recorded_rights:_found",
        {"        if pk not in recorded\n        or staffing": "        if staffing"},
        "tests/operations/monitoring/test_integrity_checks.py::test_each_violation_is_found_by_exactly_its_check",
    ),
    Safeguard(
        "a password that was written into the database is not accepted",
        "backoffice.accounts.models:User.check_password",
        {"if self.is_genuine:": "if self.pk:"},
        f"{_ROWS}test_a_password_written_into_the_database_is_not_accepted[none]",
    ),
    Safeguard(
        "the seal of a password is that of the person",
        "backoffice.accounts.models:User.sealed_content",
        {'"password_of": self.pk': '"password_of": None'},
        f"{_ROWS}test_a_password_written_into_the_database_is_not_accepted[of another]",
    ),
    Safeguard(
        "the password alone sets up no authenticator",
        "backoffice.accounts.second_factor:_check_may_enrol",
        {"elif not request.session.allows_enrolment:": "elif not request.user.pk:"},
        f"{_IMPOSTORS}[with_the_password_and_no_authenticator]",
    ),
    Safeguard(
        "a one-time link sets up one authenticator",
        "backoffice.accounts.second_factor:finish_enrolment",
        {"    request.session.end_enrolment()\n": ""},
        "tests/accounts/test_enrolment.py::test_the_session_of_the_link_has_no_second_enrolment",
    ),
    Safeguard(
        "an authenticator is that of its person",
        "backoffice.accounts.models:AuthenticatorDevice.verify_token",
        {" or not self.is_genuine": ""},
        f"{_IMPOSTORS}[with_the_password_and_his_own_authenticator]",
    ),
    Safeguard(
        "the data of a session is that of its row",
        "backoffice.accounts.sessions:SessionStore.key_salt",
        {'f"{super().key_salt}:{self.row_key}"': "super().key_salt"},
        f"{_IMPOSTORS}[with_the_data_of_a_session]",
    ),
    Safeguard(
        "a one-time link is that of its person",
        "backoffice.accounts.sign_in:open_setup_link",
        {" or not found.is_genuine": ""},
        f"{_IMPOSTORS}[with_a_link_of_his_own]",
    ),
    Safeguard(
        "nothing is shown of a one-time link that was inserted into the database",
        "backoffice.accounts.setup_links:handover_of",
        {"    if not link.is_genuine:\n        return None\n": ""},
        f"{_IMPOSTORS}[with_a_link_that_is_shown_to_him]",
    ),
    Safeguard(
        "a start code is that of its link",
        "backoffice.accounts.models:SetupLink.sealed_content",
        {'            "code_digest": self.code_digest,\n': ""},
        f"{_ROWS}test_an_altered_link_of_two_people_is_not_valid[another_start_code]",
    ),
    Safeguard(
        "a one-time link expires when it was said",
        "backoffice.accounts.models:SetupLink.sealed_content",
        {'            "expires_at": canonical_time(self.expires_at),\n': ""},
        f"{_ROWS}test_an_altered_link_of_two_people_is_not_valid[longer]",
    ),
    Safeguard(
        "a link is shown to the two who agreed on it",
        "backoffice.accounts.models:SetupLink.sealed_content",
        {'            "link_for": self.link_for_id,\n            "code_for": self.code_for_id,\n': ""},
        f"{_ROWS}test_nothing_is_shown_of_a_link_that_was_written_into_the_database[both_halves]",
    ),
    Safeguard(
        "a password or an authenticator that was written into the database is reported",
        "backoffice.operations.monitoring.recorded_rights:altered_accounts",
        {" if not row.is_genuine": " if not row.pk"},
        "tests/operations/monitoring/test_integrity_checks.py"
        "::test_each_violation_is_found_by_exactly_its_check",
    ),
    Safeguard(
        "roles that the audit log does not record are found",
        "backoffice.operations.monitoring.recorded_rights:_found",
        {"        or staffing.roles[pk] != roles.get(str(pk))\n": ""},
        "tests/operations/kinds/staff/test_staff_change.py"
        "::test_the_audit_log_has_the_rights_after_every_change",
    ),
    Safeguard(
        "the permissions of the roles are compared with the table",
        "backoffice.operations.monitoring.recorded_rights:_found",
        {" + _roles_with_other_permissions()": ""},
        "tests/operations/monitoring/test_integrity_checks.py"
        "::test_each_violation_is_found_by_exactly_its_check",
    ),
    Safeguard(
        "an operation that was inserted into the database is not sent",
        "backoffice.operations.policy:check_may_send",
        _CHECKED_AT_THE_CLAIM,
        "tests/faults/test_forged_records.py::test_an_inserted_operation_moves_no_money",
    ),
    Safeguard(
        "content that was altered with its approvals is not sent",
        "backoffice.operations.policy:check_may_send",
        _CHECKED_AT_THE_CLAIM,
        "tests/faults/test_forged_records.py::test_content_altered_after_its_approval_moves_no_money",
    ),
    Safeguard(
        "the audit log is compared at the claim",
        "backoffice.operations.seals:check_record",
        {"    if unsealed or unlogged:\n": "    if unsealed:\n"},
        f"{_NOT_SENT}[approved_with_another_digest]",
    ),
    Safeguard(
        "who released is compared with the audit log",
        "backoffice.operations.seals:_is_released_by",
        {
            "by_person == [[release.released_by_id, operation.digest]]": (
                "[operation.digest] in [members[1:] for members in by_person]"
            )
        },
        f"{_NOT_SENT}[released_by_another]",
    ),
    Safeguard(
        "a release that was claimed is used up",
        "backoffice.operations.seals:_is_released_by",
        {"return is_waiting and by_person": "return by_person", "        return False\n": "        pass\n"},
        f"{_NOT_SENT}[claimed_already]",
    ),
    Safeguard(
        "an entry that somebody adds makes a used release no newer",
        "backoffice.operations.seals:_is_released_by",
        {"        return False\n": "        pass\n"},
        f"{_NOT_SENT}[used_up]",
    ),
    Safeguard(
        "a release orders one attempt, whatever the audit log has",
        "backoffice.operations.delivery.send:_open_attempt",
        {
            "        raise AlteredRecordError(Refusal.LOG_MISMATCH, [RecordFault.LOGGED_RELEASE])\n": "        pass\n"
        },
        f"{_REQUEST_START}test_a_used_release_orders_no_second_attempt",
    ),
    Safeguard(
        "the seal of a release names its attempt",
        "backoffice.operations.models.operations:Release.sealed_content",
        {'            **({"attempt": self.attempt_number} if (self.attempt_number or 1) > 1 else {}),\n': ""},
        f"{_NOT_SENT}[release_attempt]",
    ),
    Safeguard(
        "what an attempt of the operation has claimed stops another one",
        "backoffice.operations.matching:exclude_claimed",
        {"    if but_by is not None:\n": "    if but_by is None:\n"},
        f"{_REQUEST_START}test_what_an_attempt_of_the_operation_has_claimed_is_no_other_payment",
    ),
    Safeguard(
        "what nobody stated with Countersign is no statement",
        "backoffice.operations.delivery.release:_statements",
        {
            "        raise AlteredRecordError(Refusal.SEAL_INVALID, [RecordFault.HOLD_SEAL])\n": "        pass\n"
        },
        "tests/operations/delivery/test_look_alikes.py"
        "::test_a_declaration_that_nobody_made_with_countersign_releases_nothing[reason]",
    ),
    Safeguard(
        "the seal of the operation is verified",
        "backoffice.operations.seals:_seal_faults",
        {"(RecordFault.OPERATION_SEAL, [operation])": "(RecordFault.OPERATION_SEAL, [])"},
        f"{_NOT_SENT}[sentence]",
    ),
    Safeguard(
        "the seal of each approval is verified",
        "backoffice.operations.seals:_seal_faults",
        {"(RecordFault.APPROVAL_SEAL, list(approvals))": "(RecordFault.APPROVAL_SEAL, [])"},
        f"{_NOT_SENT}[approval_time]",
    ),
    Safeguard(
        "the seal of the release is verified",
        "backoffice.operations.seals:_seal_faults",
        {"[release] if release else []": "[]"},
        f"{_NOT_SENT}[releaser]",
    ),
    Safeguard(
        "the seal of a release covers its expiry",
        "backoffice.operations.models.operations:Release.sealed_content",
        {'            "expires_at": canonical_time(self.expires_at),\n': ""},
        f"{_NOT_SENT}[release_expiry]",
    ),
    Safeguard(
        "the seal of an operation covers its policy",
        "backoffice.operations.models.operations:Operation.decision",
        {'            "approvals_needed": self.approvals_needed,\n': ""},
        f"{_SEALS}test_a_lowered_policy_is_not_sent",
    ),
    Safeguard(
        "a missing seal is not valid",
        "backoffice.core.encryption:SealedRow.seal_state",
        {"return SealState.MISSING": "return SealState.VALID"},
        f"{_NOT_SENT}[seal_removed]",
    ),
    Safeguard(
        "a seal is made with a key of its own",
        "backoffice.core.encryption:_derived_keys",
        {"HKDF(SHA256(), 32, salt=None, info=purpose).derive(raw)": "raw"},
        f"{_SEALS}test_a_seal_is_made_with_a_derived_key",
    ),
    Safeguard(
        "a wrong seal is not renewed",
        "backoffice.core.encryption:SealedRow.reseal",
        {"if self.seal_state() != SealState.VALID:": "if self.seal_state() == SealState.MISSING:"},
        f"{_SEALS}test_a_seal_of_an_altered_row_is_not_renewed",
    ),
    Safeguard(
        "an order to send several operations needs a valid seal",
        "backoffice.operations.workflow.bulk_release:_check_authentic",
        {"bulk_release.seal_state() == SealState.VALID and is_logged": "is_logged"},
        f"{_BULK_RELEASE}[second factor]",
    ),
    Safeguard(
        "an order to send several operations is compared with the audit log",
        "backoffice.operations.workflow.bulk_release:_check_authentic",
        {
            "bulk_release.seal_state() == SealState.VALID and is_logged": (
                "bulk_release.seal_state() == SealState.VALID"
            )
        },
        f"{_BULK_RELEASE}[no audit entry]",
    ),
    Safeguard(
        "an altered operation is not applied",
        "backoffice.operations.policy:check_may_approve",
        {"    seals.check_record(operation, list(operation.approvals.all()), None)\n": ""},
        f"{_SEALS}test_an_altered_resumption_does_not_end_the_pause",
    ),
    Safeguard(
        "the seal of an operation covers its expiry",
        "backoffice.operations.models.operations:Operation.sealed_content",
        {'            "expires_at": canonical_time(self.expires_at),\n': ""},
        f"{_NOT_SENT}[expiry]",
    ),
    Safeguard(
        "a payload that is no object is a fault of the record",
        "backoffice.operations.seals:_BatchFaults.of",
        {"            return [RecordFault.UNREADABLE]\n": "            return []\n"},
        f"{_NOT_SENT}[payload_a_number]",
    ),
    Safeguard(
        "a row that cannot be read hides no other altered operation",
        "backoffice.operations.seals:_has_fault",
        {"        return True\n": "        return False\n"},
        "tests/operations/batches/test_batches.py"
        "::test_a_row_that_cannot_be_read_hides_no_other_altered_operation[payload2]",
    ),
    Safeguard(
        "an operation or entry that cannot be read ends no comparison of the others",
        "backoffice.operations.monitoring.integrity_checks:_compared",
        {"            if _concerns_no_row(exc):\n": "            if exc:\n"},
        "tests/operations/monitoring/test_unreadable_rows.py"
        "::test_an_unreadable_release_is_reported_and_hides_no_other",
    ),
    Safeguard(
        "an operation that cannot be read is reported, also while it is skipped",
        "backoffice.operations.monitoring.integrity_checks:_compared_alone",
        {"if pk not in equal]": "if pk not in equal and operations is None]"},
        "tests/operations/monitoring/test_unreadable_rows.py"
        "::test_an_unreadable_entry_hides_no_unrecorded_transition",
    ),
    Safeguard(
        "an attempt that cannot be read ends no reconciliation of the others",
        "backoffice.operations.reconciliation.runner:_with_operations",
        {"    except UNREADABLE as exc:\n": "    except NotImplementedError as exc:\n"},
        "tests/operations/reconciliation/test_runner.py"
        "::test_an_attempt_that_cannot_be_read_is_compared_like_the_others_and_has_its_incident",
    ),
    Safeguard(
        "an attempt that cannot be read has its incident",
        "backoffice.operations.reconciliation.store:_raise_incident_once",
        {'found.defer(*attempt_json("attempt__"))': "found"},
        "tests/operations/reconciliation/test_runner.py"
        "::test_an_attempt_that_cannot_be_read_is_compared_like_the_others_and_has_its_incident",
    ),
    Safeguard(
        "a release that cannot be checked is deleted when the database was restored",
        "backoffice.operations.delivery.restore_check:_withdraw_releases",
        {
            "            delete_unchecked_release(pk, DatabaseRestoredError(), error=type(exc).__name__)\n": (
                "            pass\n"
            )
        },
        "tests/operations/delivery/test_restored_database.py"
        "::test_a_release_that_cannot_be_checked_does_not_hide_it",
    ),
    Safeguard(
        "what was closed does not become open again",
        "backoffice.operations.seals:_log_faults",
        {"        faults.append(RecordFault.LOGGED_CLOSING)\n": "        pass\n"},
        f"{_NOT_SENT}[cancelled_before]",
    ),
    Safeguard(
        "an altered operation is not approved",
        "backoffice.operations.policy:check_may_approve",
        {"    seals.check_record(operation, list(operation.approvals.all()), None)\n": ""},
        f"{_SEALS}test_an_altered_operation_is_not_approved",
    ),
    Safeguard(
        "an altered operation is not released",
        "backoffice.operations.policy:check_may_release",
        {
            "    seals.check_record("
            "operation, list(operation.approvals.all()), None, trusts_digests=True)\n": ""
        },
        f"{_SEALS}test_a_forged_approval_is_not_released",
    ),
    Safeguard(
        "an altered operation raises an incident when it is refused",
        "backoffice.operations.lifecycle.transitions:record_refusal",
        {"        incidents.raise_altered(operation, reason)\n": "        pass\n"},
        f"{_NOT_SENT}[content]",
    ),
    Safeguard(
        "a forged release raises an incident, whatever else is wrong with it",
        "backoffice.operations.delivery.release:withdraw_release",
        {"_alteration(operation, stored) or reason": "reason"},
        f"{_SEALS}test_a_forged_release_of_a_person_without_the_role_raises_an_incident",
    ),
    Safeguard(
        "a pause that was ended in the database begins again before a request",
        "backoffice.operations.delivery.send:send_operation",
        {"        or pause_if_altered()\n": ""},
        f"{_SEALS}test_a_pause_that_was_ended_in_the_database_begins_again[send-deleted]",
    ),
    Safeguard(
        "a pause that was ended in the database begins again within the minute",
        "backoffice.operations.monitoring.inspection:_stop_altered",
        {"    pause_if_altered()\n": ""},
        f"{_SEALS}test_a_pause_that_was_ended_in_the_database_begins_again[inspect-deleted]",
    ),
    Safeguard(
        "a second entry about an earlier pause hides no deleted one",
        "backoffice.operations.lifecycle.pause:_altered_pause",
        {'order_by("-first")': 'order_by("-position")'},
        f"{_SEALS}test_a_pause_that_was_ended_in_the_database_begins_again"
        "[send-deleted_with_another_entry_of_an_earlier_pause]",
    ),
    Safeguard(
        "an entry about no pause begins a pause and stops no check",
        "backoffice.operations.lifecycle.pause:pauses_with_logged_id",
        {'alias(text=Cast("pk", TextField())).filter(text=target_id)': "filter(pk=target_id)"},
        f"{_SEALS}test_a_pause_that_was_ended_in_the_database_begins_again"
        "[send-deleted_with_an_entry_of_no_pause]",
    ),
    Safeguard(
        "a pause that was ended in the database is noticed in the claim",
        "backoffice.operations.delivery.send:_may_be_claimed",
        {"        and not is_pause_altered()\n": ""},
        f"{_SEALS}test_a_pause_that_was_ended_just_before_the_claim_stops_it",
    ),
    Safeguard(
        "a pause ends by a resumption of its own",
        "backoffice.operations.lifecycle.pause:was_resumed",
        {"        and payload.pause == pause.pk\n": ""},
        f"{_SEALS}test_a_pause_that_was_ended_in_the_database_begins_again"
        "[send-ended_by_the_resumption_of_another_pause]",
    ),
    Safeguard(
        "a pause ends by a sealed resumption",
        "backoffice.operations.lifecycle.pause:was_resumed",
        {"        seals.check_record(resumption, approvals, None)\n": ""},
        f"{_SEALS}test_a_pause_that_was_ended_in_the_database_begins_again[send-ended_by_a_forged_approval]",
    ),
    Safeguard(
        "a pause ends by a resumption that enough people approved",
        "backoffice.operations.lifecycle.pause:was_resumed",
        {"        and len(people) >= resumption.approvals_needed\n": ""},
        f"{_SEALS}test_a_pause_that_was_ended_in_the_database_begins_again"
        "[send-ended_by_a_resumption_without_approval]",
    ),
    Safeguard(
        "an integrity check that fails ends no other",
        "backoffice.operations.monitoring.inspection:_finding",
        {"            if _ends_inspection(exc):\n": "            if exc:\n"},
        f"{_UNREADABLE}test_a_check_that_fails_is_a_violation_and_the_others_are_checked",
    ),
    Safeguard(
        "what a check found before it failed is reported",
        "backoffice.operations.monitoring.inspection:_finding",
        {
            "            error = type(exc).__name__\n            continue\n": "            found, error = [], ''\n"
        },
        f"{_UNREADABLE}test_what_a_check_found_is_kept_if_it_fails_afterwards",
    ),
    Safeguard(
        "an entry of the audit log that cannot be read gives no right",
        "backoffice.operations.monitoring.recorded_rights:_recorded",
        {"        if not is_readable or not person.isdecimal():\n": "        if not person:\n"},
        f"{_UNREADABLE}test_an_unreadable_entry_is_reported_and_ends_no_check[roles_of_no_person]",
    ),
    Safeguard(
        "a forged entry about no operation stops no comparison with the provider",
        "backoffice.audit.models:target_uuid",
        {"    except ValueError:\n": "    except KeyError:\n"},
        "tests/operations/reconciliation/test_runner.py"
        "::test_a_forged_entry_about_no_operation_stops_no_comparison",
    ),
    Safeguard(
        "a forged entry keeps no other message back",
        "backoffice.notifications.recording.audit_feed:_add_all",
        {"LookupError, TypeError, ": "TypeError, "},
        "tests/notifications/test_audit_feed.py::test_a_forged_entry_keeps_no_other_message_back"
        "[delegation.agreed-policies.delegation-1-detail6]",
    ),
    Safeguard(
        "an altered operation is stopped within the minute",
        "backoffice.operations.monitoring.inspection:inspect",
        {"    _stop_altered(report)\n": ""},
        f"{_SEALS}test_an_inserted_operation_is_found_within_the_minute",
    ),
)
