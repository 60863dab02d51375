"""Safeguards against rows that someone writes who has the whole database and no key."""

from tests.sabotage.workshop import Safeguard

_SEALS = "tests/operations/test_seals.py::"
_NOT_SENT = f"{_SEALS}test_altered_rows_are_not_sent"
_CHECKED_AT_THE_CLAIM = {"    seals.check_record(operation, approvals, release)\n": ""}

FORGERY = (
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
            "last == [[release.released_by_id, operation.digest]]": (
                "[operation.digest] in [members[1:] for members in last]"
            )
        },
        f"{_NOT_SENT}[released_by_another]",
    ),
    Safeguard(
        "a release that was claimed is used up",
        "backoffice.operations.seals:_is_released_by",
        {
            "entry.action in {Action.OPERATION_RELEASED, Action.OPERATION_CLAIMED}": (
                "entry.action == Action.OPERATION_RELEASED"
            )
        },
        f"{_NOT_SENT}[claimed_already]",
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
        "backoffice.core.encryption:_sealing_keys",
        {"HKDF(SHA256(), 32, salt=None, info=_SEAL_PURPOSE).derive(raw)": "raw"},
        f"{_SEALS}test_a_seal_is_made_with_a_derived_key",
    ),
    Safeguard(
        "a wrong seal is not renewed",
        "backoffice.core.encryption:SealedRow.reseal",
        {"if self.seal_state() != SealState.VALID:": "if self.seal_state() == SealState.MISSING:"},
        f"{_SEALS}test_a_seal_of_an_altered_row_is_not_renewed",
    ),
    Safeguard(
        "an altered operation is not applied",
        "backoffice.operations.workflow.approvals:_apply_local_effect",
        {"    policy.check_may_apply(operation)\n": ""},
        f"{_SEALS}test_an_altered_resumption_does_not_end_the_pause",
    ),
    Safeguard(
        "an altered operation raises an incident at the claim",
        "backoffice.operations.delivery.release:withdraw_release",
        {"        _raise_altered(operation, reason)\n": "        pass\n"},
        f"{_NOT_SENT}[content]",
    ),
    Safeguard(
        "an altered operation is stopped within the minute",
        "backoffice.operations.monitoring.inspection:inspect",
        {"    _stop_altered(report)\n": ""},
        f"{_SEALS}test_an_inserted_operation_is_found_within_the_minute",
    ),
)
