"""Why an action is refused: the codes, each with its text."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Refusal(TextChoices):
    """Why it was refused. The label is the sentence, with its parameters in braces."""

    REFUSED = "refused", _("This could not be done. Nothing was changed.")
    PERMISSION_MISSING = (
        "permission_missing",
        _("You do not have permission to do this. Nothing was changed."),
    )
    ACCOUNT_RESTRICTED = (
        "account_restricted",
        _(
            "Your account was changed on the server by one person alone (break-glass). You cannot approve, send, "
            "resolve or acknowledge before {until}."
        ),
    )
    NEW_RIGHTS_WAIT = (
        "new_rights_wait",
        _(
            "Your account is new, or you got new rights or a new second factor. You cannot approve, send or resolve "
            "before {until}."
        ),
    )
    ON_LEAVE = (
        "on_leave",
        _(
            "You are on leave until {until}, and {stand_in} approves for you. End the delegation under My account to "
            "approve yourself. Nothing was changed."
        ),
    )
    DELEGATION_TO_ONESELF = (
        "delegation_to_oneself",
        _("Nobody can stand in for themselves. Choose another person. Nothing was changed."),
    )
    DELEGATION_OF_ANOTHER = (
        "delegation_of_another",
        _("Only the approver who goes on leave can name the stand-in. Nothing was changed."),
    )
    DELEGATION_PERIOD = (
        "delegation_period",
        _(
            "The last day must not be before the first day, and at most six months after it. Nothing was changed."
        ),
    )
    DELEGATION_OVER = ("delegation_over", _("This delegation has already ended. Nothing was changed."))
    DELEGATION_ENDED = (
        "delegation_ended",
        _("The delegation by which you approve for {person} has ended. Nothing was changed."),
    )
    DELEGATION_NOT_ENTITLED = (
        "delegation_not_entitled",
        _(
            "Both people must be active approvers, without new rights in the last {hours} hours. Nothing was "
            "changed. Try again later, or choose another person."
        ),
    )
    DELEGATION_GROUP = (
        "delegation_group",
        _("Both people must be in the same group. Nothing was changed. Choose another person."),
    )
    DELEGATION_OVERLAPS = (
        "delegation_overlaps",
        _(
            "Another delegation of this person covers some of these days. Nothing was changed. End that "
            "one first."
        ),
    )
    DELEGATION_CHAIN = (
        "delegation_chain",
        _(
            "A stand-in cannot have a stand-in: on some of these days, one of the two people already is "
            "or has a stand-in. Nothing was changed."
        ),
    )
    RECOVERY_WAIT = (
        "recovery_wait",
        _(
            "Your account was reactivated, or you got a new second factor. You cannot approve staff "
            "changes or policy changes, or deactivate accounts, before {until}. Another administrator "
            "can."
        ),
    )
    APPROVER_RIGHTS_NEW = (
        "approver_rights_new",
        _(
            "Nothing was sent. An approver recently got new rights or a new second factor, so this "
            "approval does not count yet. Send the operation after the approver's waiting time."
        ),
    )
    OWN_RIGHTS = (
        "own_rights",
        _(
            "This changes your own account, so two other people must prepare and approve it. Nothing was changed."
        ),
    )
    OWN_INVITEES = (
        "own_invitees",
        _(
            "This gives rights to the person who invited both its preparer and its approver. Someone whom that "
            "person did not invite must prepare or approve it. Nothing was changed."
        ),
    )
    TOO_FEW_ADMINISTRATORS = (
        "too_few_administrators",
        _(
            "This would leave fewer than two active administrators with an authenticator. Nothing was changed. "
            "Give another person the role Administrator first."
        ),
    )
    NOBODY_TO_APPROVE = (
        "nobody_to_approve",
        _(
            "Nobody would be left to approve what these people prepare: {people}. Nothing was changed. "
            "Give another person the role Approver first."
        ),
    )
    PERSON_CHANGED = (
        "person_changed",
        _(
            "The account or the group has changed since this was prepared. This operation changed nothing. Cancel or "
            "reject it, and prepare it again."
        ),
    )
    EMAIL_TAKEN = "email_taken", _("An account with this email address already exists. Nothing was changed.")
    GROUP_NAME_TAKEN = "group_name_taken", _("A group with this name already exists. Nothing was changed.")
    NOTHING_CHANGES = "nothing_changes", _("There is no change to submit. Nothing was prepared.")
    ACCESS_CHANGED = (
        "access_changed",
        _(
            "Roles, groups or people have changed since this review was prepared. It was not signed off. Cancel or "
            "reject it, and prepare it again."
        ),
    )
    ADMINISTRATORS_MISSING = (
        "administrators_missing",
        _("Two administrators must be active first. Nothing was sent or changed."),
    )
    OWN_DEACTIVATION = "own_deactivation", _("You cannot deactivate your own account. Nothing was changed.")
    ALREADY_DEACTIVATED = (
        "already_deactivated",
        _("This account is deactivated already. Nothing was changed."),
    )
    APPROVER_RESTRICTED = (
        "approver_restricted",
        _(
            "The account of an approver was changed on the server by one person alone (break-glass), so the "
            "approval does not count for now. Nothing was sent. The incident shows when the approval counts "
            "again; send the operation then."
        ),
    )
    OWN_ACCOUNT = (
        "own_account",
        _(
            "Your own account was changed, so another person must acknowledge this. The incident is "
            "still open."
        ),
    )
    PREPARER_NOT_ENTITLED = (
        "preparer_not_entitled",
        _(
            "The preparer no longer has permission to prepare this kind of operation, so this operation cannot be "
            "approved or sent. Another preparer must cancel it and prepare it again."
        ),
    )
    SELF_APPROVAL = (
        "self_approval",
        _("You prepared this operation, so another person must approve and send it."),
    )
    ALREADY_APPROVED = (
        "already_approved",
        _("You have already approved this operation. Another person must approve it too."),
    )
    WRONG_STATUS = (
        "wrong_status",
        _("The status of this operation has changed. Nothing was done; check it again."),
    )
    EXPIRED = (
        "expired",
        _("This operation has expired. Nothing was done; prepare it again if you still need it."),
    )
    CONTENT_CHANGED = (
        "content_changed",
        _("The content is not what you saw. Nothing was done; check the operation again."),
    )
    CONTENT_UNREADABLE = (
        "content_unreadable",
        _("This version of Countersign cannot read the content. Nothing was done. Contact the operator."),
    )
    SECOND_FACTOR_STALE = (
        "second_factor_stale",
        _("Your last authenticator code is more than five minutes old. Nothing was done. Enter a new one."),
    )
    REASON_MISSING = "reason_missing", _("Enter a reason: the preparer will see it. Nothing was done.")
    OTP_MISSING = "otp_missing", _("Enter the provider's one-time code. Nothing was sent.")
    ALREADY_RELEASED = (
        "already_released",
        _("This operation has already been released for sending. Nothing was changed."),
    )
    PAYMENTS_PAUSED = (
        "payments_paused",
        _(
            "Payments are paused. Nothing was done, and the one-time code was not stored. Try again "
            "once payments are resumed."
        ),
    )
    SUBMISSION_REUSED = (
        "submission_reused",
        _("This form was already submitted with other content. Nothing was prepared; open a new form."),
    )
    CONFIRMATION_WRONG = (
        "confirmation_wrong",
        _("What you typed does not match the content. Nothing was done; compare them again."),
    )
    ACKNOWLEDGEMENT_MISSING = (
        "acknowledgement_missing",
        _(
            "The page shows a warning that the approver has to confirm. Nothing was done; read it and confirm it."
        ),
    )
    DUPLICATE_PAYMENT = (
        "duplicate_payment",
        _(
            "An operation with the same amount and recipient is open, or was sent within the last 24 hours. "
            "Nothing was prepared. Confirm that this is an additional payment, and enter the reason."
        ),
    )
    BATCH_PAUSED = (
        "batch_paused",
        _("The batch of this operation is paused. Nothing was sent. Resume it, then send the operation."),
    )
    BATCH_CANCELLED = "batch_cancelled", _("The batch of this operation was cancelled. Nothing was sent.")
    BATCH_CLOSED = (
        "batch_closed",
        _("No operation of this batch is waiting to be sent. Nothing was changed; check the batch again."),
    )
    NOTHING_TO_RETRY = "nothing_to_retry", _("No row of this batch can be retried. Nothing was prepared.")
    FILE_NOT_READY = "file_not_ready", _("The file is not checked, or has errors. Nothing was prepared.")
    FILE_OUTDATED = (
        "file_outdated",
        _(
            "Some rows now repeat operations prepared or sent since the check. Nothing was prepared; the file is "
            "checked again."
        ),
    )
    CANNOT_RESOLVE = (
        "cannot_resolve",
        _("This outcome can no longer be resolved in this way. Nothing was changed; check it again."),
    )
    NOT_IN_BULK = "not_in_bulk", _("This operation must be approved on its own page.")
    NOT_PAUSED = "not_paused", _("This pause has already ended. Nothing was changed.")
    PAUSE_CHANGED = (
        "pause_changed",
        _(
            "An incident was raised during this pause, after the resumption was prepared. Payments stay paused. "
            "Read the incident, then prepare the resumption again."
        ),
    )
    ALREADY_ACKNOWLEDGED = (
        "already_acknowledged",
        _("This incident was already acknowledged. Nothing was changed."),
    )
    NOTE_MISSING = "note_missing", _("Enter what you found. The incident is still open.")
    DUPLICATE_PENDING = (
        "duplicate_pending",
        _("{reference} with exactly this content is already waiting. Nothing was prepared."),
    )
    CHANGE_PENDING = (
        "change_pending",
        _(
            "{reference} is about the same and already waiting. Nothing was prepared. Approve, reject or cancel "
            "{reference} first."
        ),
    )
    DUPLICATE_UNKNOWN = (
        "duplicate_unknown",
        _(
            "{reference} with the same content was sent, and its outcome is unknown. Nothing was "
            "prepared. Wait until its outcome is confirmed or resolved."
        ),
    )
    RETRIED_IN_BATCH = (
        "retried_in_batch",
        _("This payment is already retried as {reference}. Nothing was prepared."),
    )
    POSSIBLY_EXECUTED = (
        "possibly_executed",
        _(
            "An earlier attempt may have been executed: the provider shows {transactions}. The "
            "operation was not sent again. Compare the records. If it is paid, two people resolve the "
            "operation with that transaction."
        ),
    )
    LOOK_ALIKE = (
        "look_alike",
        _(
            "The provider already shows a similar transaction that no operation here explains: {transactions}. "
            "Nothing was sent. Compare them."
        ),
    )
    OPEN_INCIDENT_OF_REPEATED = (
        "open_incident_of_repeated",
        _(
            "According to an open incident, {reference} may have been executed, and this operation may pay the same "
            "again. Compare the records and acknowledge the incident first."
        ),
    )
    OPEN_INCIDENT = (
        "open_incident",
        _(
            "According to an open incident, this may already be paid. Compare the records and acknowledge the incident "
            "first."
        ),
    )
    RESOLUTION_PENDING = (
        "resolution_pending",
        _(
            "{resolution} would resolve this as already paid and waits for approval. "
            "Approve or reject {resolution} first."
        ),
    )
    LOOK_ALIKE_REASON_MISSING = (
        "look_alike_reason_missing",
        _("Enter why that transaction is a different payment. Nothing was sent."),
    )
    HOLDER_CHANGED = (
        "holder_changed",
        _(
            "The name at the bank is now {current}; {approved} was approved. Nothing was sent. Confirm the account "
            "with the recipient through a contact that you already know."
        ),
    )
    HOLDER_NOT_FOUND = (
        "holder_not_found",
        _(
            "The bank no longer finds the account that was approved for {approved}. Nothing was sent. Confirm the "
            "account with the recipient through a contact that you already know."
        ),
    )
    HOLDER_REASON_MISSING = (
        "holder_reason_missing",
        _("Enter how you know that the account is right. Nothing was sent."),
    )
    LIST_TOO_LONG = (
        "list_too_long",
        _(
            "The provider's transactions since this operation was prepared are still being read. Nothing was sent, "
            "and any one-time code was deleted. Try again in five minutes."
        ),
    )
    ALREADY_PAUSED = "already_paused", _("Payments are already paused. Nothing was changed.")
    ALREADY_PAUSED_BY = "already_paused_by", _("Payments are already paused by {by}. Nothing was changed.")
    DATABASE_RESTORED = (
        "database_restored",
        _(
            "The database was restored to an earlier point in time, a standby server took over, or a journal of "
            "sent requests is missing. Nothing was sent, and payments are paused."
        ),
    )
    SENT_BEFORE_RESTORE = (
        "sent_before_restore",
        _(
            "A journal of sent requests shows that this operation may have been sent before the database was "
            "restored. It was not sent again: Countersign checks the provider's records for its transaction."
        ),
    )
    MAYBE_EXECUTED = (
        "maybe_executed",
        _(
            "A journal of sent requests shows that this operation may have been sent before the database was "
            "restored, so it cannot be rejected or cancelled. Nothing was changed. Once it is approved, Countersign "
            "checks the provider's records for its transaction; it is not sent again."
        ),
    )
    FURTHER_APPROVAL_NEEDED = (
        "further_approval_needed",
        _("Another person must approve this before it can be sent. Choose “Approve” instead."),
    )
    KIND_NOT_IN_BULK = (
        "kind_not_in_bulk",
        _("Operations of this kind must be approved one by one, each on its own page."),
    )
    DUPLICATE_NOT_IN_BULK = (
        "duplicate_not_in_bulk",
        _("Possible duplicate: read the reason on the operation's page, then approve it there."),
    )
    TWO_APPROVALS_NOT_IN_BULK = (
        "two_approvals_not_in_bulk",
        _("Two approvals are required: approve the operation on its own page."),
    )
    CONFIRMATION_NOT_IN_BULK = (
        "confirmation_not_in_bulk",
        _("Part of the content must be typed: approve the operation on its own page."),
    )
    ACKNOWLEDGEMENT_NOT_IN_BULK = (
        "acknowledgement_not_in_bulk",
        _("A warning must be confirmed: read it on the operation's page, then approve it there."),
    )
    CAUTION_NOT_IN_BULK = (
        "caution_not_in_bulk",
        _("The page of the operation shows a warning, so the operation must be approved there."),
    )
    NOT_THE_PREPARER = (
        "not_the_preparer",
        _("Only the preparer can cancel this operation. Nothing was changed."),
    )
    APPROVER_NOT_ENTITLED = (
        "approver_not_entitled",
        _(
            "An approver no longer has permission to approve. Nothing was sent. Another person can approve "
            "instead."
        ),
    )
    APPLIED_LOCALLY = (
        "applied_locally",
        _("This operation is applied by its last approval and is never sent. Nothing was changed."),
    )
    STATUS_CHANGED = (
        "status_changed",
        _("The status is “{status}” now. Nothing was changed. Check the operation before you continue."),
    )
    BATCH_APPROVED = (
        "batch_approved",
        _(
            "This batch was approved, and each of its rows is an operation of its own. Nothing was changed. To stop "
            "the rows that are not sent, pause or cancel the batch on the page of its rows."
        ),
    )
    OTP_OF_OTHER_CONTENT = (
        "otp_of_other_content",
        _("The one-time code belongs to other content. Nothing was sent."),
    )
    OTP_USED = (
        "otp_used",
        _(
            "This one-time code was already entered for {reference}, and the provider accepts each code only once. "
            "Nothing was sent. Enter the next code."
        ),
    )
    OTP_SECRET_CHANGED = (
        "otp_secret_changed",
        _(
            "The authenticator secret was changed after this was prepared. This operation changed "
            "nothing. Cancel or reject it, and prepare it again."
        ),
    )
    OTP_SECRET_GONE = (
        "otp_secret_gone",
        _(
            "The authenticator secret of this operation is no longer stored. Nothing was changed. Cancel or "
            "reject this operation, and prepare it again."
        ),
    )
    SEAL_INVALID = (
        "seal_invalid",
        _(
            "The operation, an approval or the release was altered or inserted outside Countersign: a "
            "seal is missing or wrong. Nothing was done. Inform an administrator."
        ),
    )
    LOG_MISMATCH = (
        "log_mismatch",
        _(
            "The audit log shows other content or other people for this operation. Nothing was done. "
            "Inform an administrator."
        ),
    )
    PAUSE_REASON_MISSING = "pause_reason_missing", _("Enter a reason. Payments were not paused.")
    LIST_UNREADABLE = (
        "list_unreadable",
        _("The provider's list could not be read to check this: {error} Nothing was changed. Try again."),
    )
    RECORD_CHANGED = (
        "record_changed",
        _(
            "The provider no longer shows transaction {transaction} as {status}. Nothing was changed; "
            "check it again."
        ),
    )
    RECORD_LISTED_AGAIN = (
        "record_listed_again",
        _("The provider lists transaction {transaction} again. Nothing was changed; check it again."),
    )
    OUTCOME_KNOWN = (
        "outcome_known",
        _("The status of {reference} is already “{status}”. Nothing was changed."),
    )
    MAY_STILL_BE_EXECUTED = (
        "may_still_be_executed",
        _("{reference} may still be executed. Nothing was changed; check its evidence again."),
    )
    TRANSACTION_CLAIMED = (
        "transaction_claimed",
        _(
            "Transaction {transaction} belongs to another operation, or the provider named a "
            "different one for this operation. Nothing was changed; check the evidence again."
        ),
    )
    REFERENCE_USED = (
        "reference_used",
        _("{operation} already has the reference “{used}”. Nothing was prepared. Enter another reference."),
    )
    NO_FREE_REFERENCE = (
        "no_free_reference",
        _("No free reference was found. Nothing was prepared; try again."),
    )
    POLICY_REFUSED = "policy_refused", _("An approval policy refuses this: “{reason}”. Nothing was done.")
    POLICY_ALTERED = (
        "policy_altered",
        _(
            "The approval policies were altered outside Countersign, or a version of them is missing. "
            "Nothing was done. Inform an administrator."
        ),
    )
    NOT_IN_LEVEL = (
        "not_in_level",
        _("Approval is now required from: {level}. You are not one of them. Nothing was changed."),
    )
    APPROVALS_MISSING = (
        "approvals_missing",
        _(
            "The approval policies that are in effect now, or a recipient that was added or changed recently, require "
            "more approvals. Nothing was sent. Once the missing approvals are given, choose “Send” again."
        ),
    )
    POLICY_OUTDATED = (
        "policy_outdated",
        _(
            "Another version took effect meanwhile. Nothing was changed. This version must be prepared again from "
            "the new rules."
        ),
    )
    POLICY_UNCHANGED = (
        "policy_unchanged",
        _("The draft is the same as the rules in effect. Nothing was prepared."),
    )
    POLICY_UNSATISFIABLE = (
        "policy_unsatisfiable",
        _(
            "Rule {number} cannot be satisfied for {kind}: too few people can give {level}. Nothing was changed. "
            "Change this rule of the approval policies first, or give more people the role or group."
        ),
    )
    POLICY_NAMES_OUTDATED = (
        "policy_names_outdated",
        _(
            "Rule {number} names {name}, who was deactivated, or a group that was renamed or retired. Nothing was "
            "changed. This version must be prepared again."
        ),
    )
    RECIPIENT_NOT_APPROVED = (
        "recipient_not_approved",
        _(
            "Only approved recipients can be paid, and this recipient is not approved. Nothing was done. Add the "
            "recipient under Settings, Recipients; another person must approve it."
        ),
    )
    RECIPIENT_COOLING = (
        "recipient_cooling",
        _("The recipient was added or changed recently, and can be paid from {until}. Nothing was sent."),
    )
    RECIPIENT_CURRENCY = (
        "recipient_currency",
        _("This recipient is approved for payments in {currency} only. Nothing was done."),
    )
    RECIPIENT_NETWORK = (
        "recipient_network",
        _("This address is approved for payments on {networks} only. Nothing was done."),
    )
    RECIPIENT_USERNAME = (
        "recipient_username",
        _("This user is approved as {username} only. Nothing was done. Enter exactly this username."),
    )
    RECIPIENT_ALTERED = (
        "recipient_altered",
        _("A recipient was altered outside Countersign. Nothing was done. Inform an administrator."),
    )
    RECIPIENT_CHANGED = (
        "recipient_changed",
        _(
            "The recipient already exists, or was changed in the meantime. Nothing was done. Open the "
            "recipient, then prepare the change again."
        ),
    )
    IMPORT_OUTDATED = (
        "import_outdated",
        _(
            "{name} was added to the register, or changed, after the file was checked. Nothing was added. Reject this "
            "import, and upload the file again without this recipient."
        ),
    )
    INTERNAL_ERROR = (
        "internal_error",
        _("Internal error in Countersign. Contact the operator: the server log has the details."),
    )
    FORM_INVALID = "form_invalid", _("The form was not accepted: {fields}.")
