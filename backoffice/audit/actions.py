"""The actions of the audit log: one list for the whole product, one block for each app.

A value is an object and a past participle (`operation.approved`) and never changes, since stored entries contain
it. The label is the verb between the person and the object: "Ada Obi *approved* W-7Q2K9F …".
"""

from django.db import models


class Action(models.TextChoices):
    # audit
    LOG_VERIFIED = "audit.verified", "verified"

    # reports
    REPORT_REQUESTED = "report.requested", "began to export"
    REPORT_EXPORTED = "report.exported", "exported"
    EXPORT_REQUESTED = "export.requested", "asked to have made in the background"
    EXPORT_COMPLETED = "export.completed", "received the file"
    EXPORT_FAILED = "export.failed", "did not get the file of"
    EXPORT_CANCELLED = "export.cancelled", "cancelled"
    EXPORT_DOWNLOADED = "export.downloaded", "took away"
    EXPORT_DELETED = "export.deleted", "removed"
    EXPORT_EXPIRED = "export.expired", "removed, as its time was over,"
    SCHEDULE_CREATED = "schedule.created", "made the schedule"
    SCHEDULE_CHANGED = "schedule.changed", "changed the schedule"
    SCHEDULE_PAUSED = "schedule.paused", "paused the schedule"
    SCHEDULE_RESUMED = "schedule.resumed", "resumed the schedule"
    SCHEDULE_DELETED = "schedule.deleted", "removed the schedule"
    SCHEDULE_RUN = "schedule.run", "ran the schedule"

    # accounts
    ACCESS_REFUSED = "access.refused", "has no permission and was refused"
    PASSWORD_ACCEPTED = "password.accepted", "gave the right password"
    PASSWORD_REFUSED = "password.refused", "gave a wrong present password"
    PASSWORD_CHANGED = "password.changed", "changed the password of"
    SIGN_IN_REFUSED = "sign_in.refused", "was refused a sign-in as"
    SIGN_IN_LOCKED = "sign_in.locked", "gave too many wrong passwords and was locked out as"
    SIGN_IN_COMPLETED = "sign_in.completed", "signed in"
    SECOND_FACTOR_CONFIRMED = "second_factor.confirmed", "confirmed with a second factor"
    SECOND_FACTOR_REFUSED = "second_factor.refused", "was refused a second factor"
    AUTHENTICATOR_ENROLLED = "authenticator.enrolled", "set up an authenticator"
    AUTHENTICATOR_RESET = "authenticator.reset", "reset the second factor of"
    RECOVERY_CODE_USED = "recovery_code.used", "used a recovery code"
    RECOVERY_CODES_ISSUED = "recovery_code.issued", "received ten new recovery codes"
    RECOVERY_CODES_STORED = "recovery_code.stored", "confirmed that the recovery codes are stored"
    SESSION_ENDED = "session.ended", "ended a session of"
    SESSIONS_ENDED = "session.all_ended", "ended every other session of"
    SESSION_SIGNED_OUT = "session.signed_out", "signed out"
    STAFF_CREATED = "staff.created", "created the account of"
    STAFF_ROLES_CHANGED = "staff.roles_changed", "changed the roles of"
    STAFF_DEACTIVATED = "staff.deactivated", "deactivated the account of"

    # operations
    OPERATION_PREPARED = "operation.prepared", "prepared"
    OPERATION_APPROVED = "operation.approved", "countersigned"
    OPERATION_REJECTED = "operation.rejected", "rejected"
    OPERATION_CANCELLED = "operation.cancelled", "cancelled"
    OPERATION_EXPIRED = "operation.expired", "closed as expired"
    OPERATION_RELEASED = "operation.released", "released for sending"
    OPERATION_RELEASE_EXPIRED = (
        "operation.release_expired",
        "dropped the release, not sent in time, of",
    )
    OPERATION_CLAIMED = "operation.claimed", "began to send"
    OPERATION_RETURNED = "operation.returned", "took back, because nothing was executed,"
    OPERATION_ACCEPTED = "operation.accepted", "noted that the service accepted"
    OPERATION_OUTCOME_UNKNOWN = "operation.outcome_unknown", "could not tell the outcome of"
    OPERATION_LATE_RESPONSE_RECORDED = (
        "operation.late_response_recorded",
        "got an answer, too late to count, about",
    )
    OPERATION_CONTRADICTED = "operation.contradicted", "got a contradictory answer about"
    OPERATION_ESCALATED = "operation.escalated", "asked people to review"
    OPERATION_SUCCEEDED = "operation.succeeded", "confirmed"
    OPERATION_FAILED = "operation.failed", "closed as failed"
    OPERATION_ACTION_REFUSED = "operation.action_refused", "was refused an action on"
    OPERATION_APPLIED = "operation.applied", "applied"
    OPERATION_RESOLVED = "operation.resolved", "settled, as two people signed,"
    INCIDENT_RAISED = "incident.raised", "raised an incident about"
    INCIDENT_ACKNOWLEDGED = "incident.acknowledged", "took note of an incident about"
    PAYMENTS_PAUSED = "payments.paused", "paused"
    PAYMENTS_RESUMED = "payments.resumed", "ended the pause of"

    ACCOUNT_SAVED = "saved_account.saved", "saved the bank account"
    ACCOUNT_RENAMED = "saved_account.renamed", "renamed the saved bank account, now"
    ACCOUNT_DELETED = "saved_account.deleted", "deleted the saved bank account"

    # webhooks
    DELIVERY_RECHECKED = "delivery.rechecked", "had the service read again because of"

    # api_keys
    SECRET_REVEALED = "secret.revealed", "was shown, this once, what was made by"
    SECRET_REFUSED = "secret.refused", "was refused a look at what was made by"
    KEY_SWITCHED = "api_key.switched_back", "went back to the API key of the environment, away from"
    ROTATION_STARTED = "rotation.started", "started"
    ROTATION_TESTED = "rotation.tested", "tested the new key of"
    ROTATION_WATCH_STARTED = "rotation.watch_started", "set the time to watch in"
    ROTATION_FINISHED = "rotation.finished", "finished"
    ROTATION_ABANDONED = "rotation.abandoned", "abandoned"

    @property
    def group(self) -> str:
        """The object of the action: the part before the dot."""
        return self.value.partition(".")[0]

    @classmethod
    def groups(cls) -> list[str]:
        """Every group once, in the order of this list."""
        return list(dict.fromkeys(action.group for action in cls))
