"""The actions of the audit log: one list for the whole product, one block for each app.

A value is an object and a past participle (`operation.approved`) and never changes, since stored entries contain
it. The label is the verb between the person and the object: "Ada Obi *approved* W-7Q2K9F …".
"""

from django.db import models
from django.utils.translation import pgettext_lazy


class Action(models.TextChoices):
    # audit
    LOG_VERIFIED = "audit.verified", pgettext_lazy("audit action", "verified")
    EVIDENCE_ARCHIVED = "audit.archived", pgettext_lazy("audit action", "archived")
    DATA_PRUNED = "audit.pruned", pgettext_lazy("audit action", "deleted expired data from")

    # reports
    REPORT_REQUESTED = "report.requested", pgettext_lazy("audit action", "started to export")
    REPORT_EXPORTED = "report.exported", pgettext_lazy("audit action", "exported")
    EXPORT_REQUESTED = "export.requested", pgettext_lazy("audit action", "started a background export of")
    EXPORT_COMPLETED = "export.completed", pgettext_lazy("audit action", "received the finished export")
    EXPORT_FAILED = "export.failed", pgettext_lazy("audit action", "had a failed export of")
    EXPORT_CANCELLED = "export.cancelled", pgettext_lazy("audit action", "cancelled the export of")
    EXPORT_DOWNLOADED = "export.downloaded", pgettext_lazy("audit action", "downloaded the export of")
    EXPORT_DELETED = "export.deleted", pgettext_lazy("audit action", "deleted the export of")
    EXPORT_EXPIRED = "export.expired", pgettext_lazy("audit action", "deleted the expired export of")
    SCHEDULE_CREATED = "schedule.created", pgettext_lazy("audit action", "created the schedule")
    SCHEDULE_CHANGED = "schedule.changed", pgettext_lazy("audit action", "changed the schedule")
    SCHEDULE_PAUSED = "schedule.paused", pgettext_lazy("audit action", "paused the schedule")
    SCHEDULE_RESUMED = "schedule.resumed", pgettext_lazy("audit action", "resumed the schedule")
    SCHEDULE_DELETED = "schedule.deleted", pgettext_lazy("audit action", "deleted the schedule")
    SCHEDULE_RUN = "schedule.run", pgettext_lazy("audit action", "ran the schedule")

    WEBHOOK_ADDRESS_SHOWN = (
        "delivery.address_shown",
        pgettext_lazy("audit action", "viewed the secret callback URL"),
    )

    # accounts
    ACCESS_REFUSED = "access.refused", pgettext_lazy("audit action", "was refused access to")
    PASSWORD_ACCEPTED = "password.accepted", pgettext_lazy("audit action", "entered the correct password")
    PASSWORD_REFUSED = "password.refused", pgettext_lazy("audit action", "entered a wrong current password")
    PASSWORD_CHANGED = "password.changed", pgettext_lazy("audit action", "changed the password of")
    PASSWORD_RESET = "password.reset", pgettext_lazy("audit action", "reset the password of")
    SETUP_LINK_CREATED = (
        "setup_link.created",
        pgettext_lazy("audit action", "created a one-time link for"),
    )
    SETUP_LINK_USED = "setup_link.used", pgettext_lazy("audit action", "used the one-time link of")
    # no longer recorded one by one: SIGN_INS_REFUSED counts them
    SETUP_LINK_REFUSED = (
        "setup_link.refused",
        pgettext_lazy("audit action", "tried a one-time link that is not valid"),
    )
    SETUP_LINK_SHOWN = "setup_link.shown", pgettext_lazy("audit action", "viewed the one-time link of")
    SETUP_LINK_MAILED = "setup_link.mailed", pgettext_lazy("audit action", "emailed the one-time link of")
    START_CODE_SHOWN = "setup_link.code_shown", pgettext_lazy("audit action", "viewed the start code of")
    START_CODE_REFUSED = (
        "setup_link.code_refused",
        pgettext_lazy("audit action", "entered a wrong start code for"),
    )
    # no longer recorded one by one: SIGN_INS_REFUSED counts them
    SIGN_IN_REFUSED = "sign_in.refused", pgettext_lazy("audit action", "failed to sign in as")
    SIGN_INS_REFUSED = (
        "sign_in.refusals_counted",
        pgettext_lazy("audit action", "counted refused sign-ins"),
    )
    SIGN_IN_LOCKED = (
        "sign_in.locked",
        pgettext_lazy("audit action", "was locked out after too many wrong passwords as"),
    )
    SIGN_IN_COMPLETED = "sign_in.completed", pgettext_lazy("audit action", "signed in")
    SECOND_FACTOR_CONFIRMED = (
        "second_factor.confirmed",
        pgettext_lazy("audit action", "confirmed with a second factor"),
    )
    SECOND_FACTOR_REFUSED = (
        "second_factor.refused",
        pgettext_lazy("audit action", "failed the second-factor check"),
    )
    AUTHENTICATOR_ENROLLED = (
        "authenticator.enrolled",
        pgettext_lazy("audit action", "set up an authenticator"),
    )
    AUTHENTICATOR_RESET = "authenticator.reset", pgettext_lazy("audit action", "reset the second factor of")
    RECOVERY_CODE_USED = "recovery_code.used", pgettext_lazy("audit action", "used a recovery code")
    RECOVERY_CODES_ISSUED = (
        "recovery_code.issued",
        pgettext_lazy("audit action", "generated ten new recovery codes"),
    )
    RECOVERY_CODES_STORED = (
        "recovery_code.stored",
        pgettext_lazy("audit action", "confirmed that the recovery codes are stored"),
    )
    SESSION_ENDED = "session.ended", pgettext_lazy("audit action", "ended a session of")
    SESSIONS_ENDED = "session.all_ended", pgettext_lazy("audit action", "ended all other sessions of")
    SESSION_SIGNED_OUT = "session.signed_out", pgettext_lazy("audit action", "signed out")
    STAFF_CREATED = "staff.created", pgettext_lazy("audit action", "created the account of")
    STAFF_ROLES_CHANGED = "staff.roles_changed", pgettext_lazy("audit action", "changed the roles of")
    STAFF_DEACTIVATED = "staff.deactivated", pgettext_lazy("audit action", "deactivated the account of")
    STAFF_REACTIVATED = "staff.reactivated", pgettext_lazy("audit action", "reactivated the account of")
    STAFF_GROUPS_CHANGED = "staff.groups_changed", pgettext_lazy("audit action", "changed the groups of")
    STAFF_SESSIONS_ENDED = "staff.sessions_ended", pgettext_lazy("audit action", "ended all sessions of")
    GROUP_CREATED = "group.created", pgettext_lazy("audit action", "created the group")
    GROUP_RENAMED = "group.renamed", pgettext_lazy("audit action", "renamed the group to")
    GROUP_RETIRED = "group.retired", pgettext_lazy("audit action", "retired the group")
    ACCESS_REVIEWED = "access.reviewed", pgettext_lazy("audit action", "signed off the access review")
    BREAK_GLASS_USED = (
        "break_glass.used",
        pgettext_lazy("audit action", "used break-glass access to change the account of"),
    )
    BREAK_GLASS_ACKNOWLEDGED = (
        "break_glass.acknowledged",
        pgettext_lazy("audit action", "acknowledged the use of break-glass access on the account of"),
    )

    # operations
    OPERATION_PREPARED = "operation.prepared", pgettext_lazy("audit action", "prepared")
    OPERATION_APPROVED = "operation.approved", pgettext_lazy("audit action", "approved")
    OPERATION_REJECTED = "operation.rejected", pgettext_lazy("audit action", "rejected")
    OPERATION_CANCELLED = "operation.cancelled", pgettext_lazy("audit action", "cancelled")
    OPERATION_EXPIRED = "operation.expired", pgettext_lazy("audit action", "recorded the expiry of")
    OPERATION_RELEASED = "operation.released", pgettext_lazy("audit action", "released")
    BULK_RELEASE_CONFIRMED = (
        "operation.bulk_release_confirmed",
        pgettext_lazy("audit action", "confirmed"),
    )
    OPERATION_RELEASE_RENEWED = (
        "operation.release_renewed",
        pgettext_lazy("audit action", "renewed the release of"),
    )
    OPERATION_RELEASE_EXPIRED = (
        "operation.release_expired",
        pgettext_lazy("audit action", "deleted the expired release of"),
    )
    OPERATION_CLAIMED = "operation.claimed", pgettext_lazy("audit action", "started to send")
    OPERATION_ATTEMPT_LOST = (
        "operation.attempt_lost",
        pgettext_lazy("audit action", "found, in a journal, a lost attempt of"),
    )
    OPERATION_RETURNED = (
        "operation.returned",
        pgettext_lazy("audit action", "recorded that nothing was executed for"),
    )
    OPERATION_ACCEPTED = (
        "operation.accepted",
        pgettext_lazy("audit action", "recorded that the provider accepted"),
    )
    OPERATION_OUTCOME_UNKNOWN = (
        "operation.outcome_unknown",
        pgettext_lazy("audit action", "recorded an unknown outcome of"),
    )
    OPERATION_LATE_RESPONSE_RECORDED = (
        "operation.late_response_recorded",
        pgettext_lazy("audit action", "recorded a late response about"),
    )
    OPERATION_CONTRADICTED = (
        "operation.contradicted",
        pgettext_lazy("audit action", "received a contradictory response about"),
    )
    OPERATION_ESCALATED = "operation.escalated", pgettext_lazy("audit action", "requested a review of")
    OPERATION_WAITING_ESCALATED = (
        "operation.waiting_escalated",
        pgettext_lazy("audit action", "escalated the long wait of"),
    )
    OPERATION_WITHOUT_APPROVERS = (
        "operation.without_approvers",
        pgettext_lazy("audit action", "found too few people who can approve"),
    )
    OPERATION_SUCCEEDED = "operation.succeeded", pgettext_lazy("audit action", "recorded the success of")
    OPERATION_FAILED = "operation.failed", pgettext_lazy("audit action", "recorded the failure of")
    OPERATION_ACTION_REFUSED = (
        "operation.action_refused",
        pgettext_lazy("audit action", "was refused an action on"),
    )
    OPERATION_APPLIED = "operation.applied", pgettext_lazy("audit action", "applied")
    OPERATION_RESOLVED = "operation.resolved", pgettext_lazy("audit action", "resolved")
    OPERATION_HELD = (
        "operation.held",
        pgettext_lazy("audit action", "found another name at the bank and held"),
    )
    BATCH_PAUSED = "batch.paused", pgettext_lazy("audit action", "paused")
    BATCH_RESUMED = "batch.resumed", pgettext_lazy("audit action", "resumed")
    BATCH_CANCELLED = "batch.cancelled", pgettext_lazy("audit action", "cancelled the unsent rows of")
    INCIDENT_RAISED = "incident.raised", pgettext_lazy("audit action", "raised an incident about")
    INCIDENT_ACKNOWLEDGED = (
        "incident.acknowledged",
        pgettext_lazy("audit action", "acknowledged an incident about"),
    )
    POLICY_IN_EFFECT = "policy.put_into_effect", pgettext_lazy("audit action", "put into effect")
    PAYMENTS_PAUSED = "payments.paused", pgettext_lazy("audit action", "paused")
    PAYMENTS_RESUMED = "payments.resumed", pgettext_lazy("audit action", "resumed")
    JOURNAL_IN_USE = (
        "payments.journal_in_use",
        pgettext_lazy("audit action", "began or found again the journal of"),
    )

    RECIPIENT_ADDED = "recipient.added", pgettext_lazy("audit action", "added the recipient")
    RECIPIENT_CHANGED = "recipient.changed", pgettext_lazy("audit action", "changed the recipient")
    DELEGATION_AGREED = "delegation.agreed", pgettext_lazy("audit action", "approved the delegation")
    DELEGATION_ENDED = "delegation.ended", pgettext_lazy("audit action", "ended the delegation")
    RECIPIENT_RETIRED = "recipient.retired", pgettext_lazy("audit action", "retired the recipient")

    RECIPIENTS_IMPORTED = "recipient.imported", pgettext_lazy("audit action", "added the recipients of")

    # of earlier releases, in which one person saved bank accounts
    ACCOUNT_SAVED = "saved_account.saved", pgettext_lazy("audit action", "saved the recipient")
    ACCOUNT_RENAMED = "saved_account.renamed", pgettext_lazy("audit action", "renamed the recipient, now")
    ACCOUNT_DELETED = "saved_account.deleted", pgettext_lazy("audit action", "deleted the recipient")

    # ledger
    SUMMARY_DISCREPANCY_FOUND = (
        "summary_discrepancy.found",
        pgettext_lazy("audit action", "found an unexplained discrepancy in"),
    )
    SUMMARY_DISCREPANCY_CLOSED = (
        "summary_discrepancy.closed",
        pgettext_lazy("audit action", "closed the discrepancy in"),
    )

    # webhooks
    DELIVERY_RECHECKED = (
        "delivery.rechecked",
        pgettext_lazy("audit action", "requested reprocessing of"),
    )
    DELIVERY_TEST_SENT = "delivery.test_sent", pgettext_lazy("audit action", "started a test delivery to")

    # api_keys
    SECRET_REVEALED = "secret.revealed", pgettext_lazy("audit action", "viewed the key created by")
    SECRET_REFUSED = "secret.refused", pgettext_lazy("audit action", "was refused the key created by")
    KEY_SWITCHED = (
        "api_key.switched_back",
        pgettext_lazy("audit action", "switched back to the API key configured at installation, from"),
    )
    ROTATION_STARTED = "rotation.started", pgettext_lazy("audit action", "started")
    ROTATION_TESTED = "rotation.tested", pgettext_lazy("audit action", "tested the new key of")
    ROTATION_WATCH_STARTED = (
        "rotation.watch_started",
        pgettext_lazy("audit action", "set the monitoring time of"),
    )
    ROTATION_FINISHED = "rotation.finished", pgettext_lazy("audit action", "finished")
    ROTATION_ABANDONED = "rotation.abandoned", pgettext_lazy("audit action", "abandoned")

    # notifications
    NOTIFICATION_CHANNEL_SAVED = (
        "notification_channel.saved",
        pgettext_lazy("audit action", "set the chat channel for notifications of"),
    )
    NOTIFICATION_CHANNEL_DELETED = (
        "notification_channel.deleted",
        pgettext_lazy("audit action", "deleted the chat channel for notifications of"),
    )

    @property
    def group(self) -> str:
        """The object of the action: the part before the dot."""
        return self.value.partition(".")[0]

    @classmethod
    def groups(cls) -> list[str]:
        """Every group once, in the order of this list."""
        return list(dict.fromkeys(action.group for action in cls))
