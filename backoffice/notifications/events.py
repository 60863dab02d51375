"""Notifications: the groups that people choose channels for, the notices, and which audit entry gives which.

One line of `EVENTS` adds an event. An action that is in neither `EVENTS` nor `SILENT` fails a test.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from backoffice.audit.actions import Action
from backoffice.operations.lifecycle.transitions import OperationAction
from backoffice.operations.refusals.codes import Refusal


class Group(TextChoices):
    """The groups of events for which a person chooses channels and times."""

    WAITING = "waiting", _("Waiting for you")
    DECISIONS = "decisions", _("Decisions and expiry of your operations")
    OUTCOMES = "outcomes", _("Results of your operations")
    PROBLEMS = "problems", _("Unknown outcomes, incidents and discrepancies")
    PAYMENTS = "payments", _("Payments paused or resumed")
    KEYS = "keys", _("API keys that expire")
    FILES = "files", _("Exports and batches")
    SECURITY = "security", _("Security and rights of your account")


CHOSEN_GROUPS = [group for group in Group if group != Group.SECURITY]
"""The groups that can be switched off."""


class Notice(TextChoices):
    """What happened. The label is the sentence; it never holds an amount or a name."""

    WAITS = "waits", _("Waits for your decision")
    EXPIRES_SOON = "expires_soon", _("Expires soon and waits for your decision")
    ESCALATED = "escalated", _("Has waited long for a decision")
    WITHOUT_APPROVERS = "without_approvers", _("Too few people can approve it")
    PARTLY_APPROVED = "partly_approved", _("Approval given, more are needed")
    APPROVED = "approved", _("Approved")
    REJECTED = "rejected", _("Rejected")
    CANCELLED = "cancelled", _("Cancelled")
    OWN_EXPIRES_SOON = "own_expires_soon", _("Expires soon")
    EXPIRED = "expired", _("Expired, not sent")
    SUCCEEDED = "succeeded", _("Sent, and confirmed by the provider")
    APPLIED = "applied", _("Applied")
    FAILED = "failed", _("Failed")
    ROWS_FAILED = "rows_failed", _("Payments of this batch failed")
    NOT_SENT = "not_sent", _("Not sent, needs attention")
    HELD = "held", _("Not sent: the name at the bank differs from the approved one")
    RETURNED = "returned", _("Not executed: returned to approved")
    RESOLVED = "resolved", _("Unknown outcome resolved by two people")
    OUTCOME_UNKNOWN = "outcome_unknown", _("Outcome unknown")
    REVIEW = "review", _("Needs manual review")
    CONTRADICTED = "contradicted", _("A response from the provider contradicts the record")
    ATTEMPT_LOST = "attempt_lost", _("A sent request is missing from the database")
    INCIDENT = "incident", _("Incident")
    DISCREPANCY = (
        "discrepancy",
        _("Unexplained discrepancy between the provider's summary and its transactions"),
    )
    WEBHOOKS_SILENT = "webhooks_silent", _("Expected webhooks of the provider did not arrive")
    PAUSED = "paused", _("Payments paused")
    RESUMED = "resumed", _("Payments resumed")
    KEY_EXPIRES_30 = "key_expires_30", _("An API key expires in 30 days or less")
    KEY_EXPIRES_7 = "key_expires_7", _("An API key expires in 7 days or less")
    KEY_EXPIRES_1 = "key_expires_1", _("An API key expires in 1 day or less")
    EXPORT_READY = "export_ready", _("Your export is ready to download")
    EXPORT_FAILED = "export_failed", _("Your export failed")
    BATCH_FINISHED = "batch_finished", _("Your batch is finished: check the result of each operation")
    PASSWORD_CHANGED = "password_changed", _("The password of your account was changed")
    PASSWORD_RESET = "password_reset", _("The password of your account was reset")
    SETUP_LINK_CREATED = "setup_link_created", _("A one-time link to set up your account was created")
    SETUP_LINK_USED = "setup_link_used", _("The one-time link to set up your account was used")
    LOCKED_OUT = "locked_out", _("Your account was locked for a while after too many wrong passwords")
    AUTHENTICATOR_ENROLLED = "authenticator_enrolled", _("An authenticator was set up for your account")
    SECOND_FACTOR_RESET = "second_factor_reset", _("The second factor of your account was reset")
    RECOVERY_CODE_USED = "recovery_code_used", _("A recovery code of your account was used")
    RECOVERY_CODES_ISSUED = "recovery_codes_issued", _("New recovery codes were generated for your account")
    SESSION_ENDED = "session_ended", _("A session of your account was ended")
    ACCOUNT_CREATED = "account_created", _("An account was created for you")
    ROLES_CHANGED = "roles_changed", _("The roles of your account were changed")
    DEACTIVATED = "deactivated", _("Your account was deactivated")
    REACTIVATED = "reactivated", _("Your account was reactivated")
    BREAK_GLASS = "break_glass", _("One person changed your account on the server (break-glass)")
    BREAK_GLASS_ACKNOWLEDGED = (
        "break_glass_acknowledged",
        _("The break-glass change of your account was acknowledged"),
    )
    CHANNEL_SAVED = "channel_saved", _("A chat channel was set for the notifications of your account")
    CHANNEL_DELETED = "channel_deleted", _("The chat channel of your account was deleted")
    TEAM_ACCOUNT_CREATED = "team_account_created", _("An account was created for a person")
    TEAM_PASSWORD_RESET = "team_password_reset", _("The password of a person's account was reset")
    TEAM_SECOND_FACTOR_RESET = "team_second_factor_reset", _("The second factor of a person was reset")
    TEAM_SESSIONS_ENDED = "team_sessions_ended", _("All sessions of a person were ended")
    TEAM_ROLES_CHANGED = "team_roles_changed", _("The roles of a person were changed")
    GROUPS_CHANGED = "groups_changed", _("The groups of your account were changed")
    TEAM_GROUPS_CHANGED = "team_groups_changed", _("The groups of a person were changed")
    TEAM_GROUP_CHANGED = "team_group_changed", _("A group was created, renamed or retired")
    TEAM_START_CODE_REFUSED = "team_start_code_refused", _("A wrong start code was entered for an account")
    POLICY_IN_EFFECT = "policy_in_effect", _("A new version of the approval policies is in effect")
    DELEGATION_AGREED = "delegation_agreed", _("A delegation to or from you was approved")
    DELEGATION_ENDED = "delegation_ended", _("A delegation to or from you was ended early")
    TEAM_DEACTIVATED = "team_deactivated", _("The account of a person was deactivated")
    TEAM_REACTIVATED = "team_reactivated", _("The account of a person was reactivated")
    TEAM_BREAK_GLASS = "team_break_glass", _("One person changed an account on the server (break-glass)")
    TEST = "test", _("Test message")


class Audience(StrEnum):
    """Who is notified, given an audit entry. `audiences` finds the people."""

    DECIDERS = "deciders"  # who can decide the operation now, if it still waits
    OWNERS = "owners"  # its preparer and who released it last, but not who acted
    RESPONDERS = "responders"  # who may acknowledge incidents
    ADMINISTRATORS = "administrators"
    EVERYBODY = "everybody"  # who may see operations
    ACTOR = "actor"
    SUBJECT = "subject"  # the person whom the entry concerns: its target, or its actor
    # whom the entry names: the two people of a delegation, those to whom it was escalated, who released it, or
    # who was in a group
    NAMED = "named"
    OTHER_ADMINISTRATORS = "other_administrators"  # all but the person whom the entry concerns
    OTHER_RESPONDERS = "other_responders"


@dataclass(frozen=True)
class Event:
    """One notice to one audience. `page` is the URL name to link to; empty for the page of the entry's object."""

    notice: Notice
    group: Group
    audience: Audience
    page: str = ""
    # Also for operations that are rows of a batch, which is notified of as a whole.
    for_batch_rows: bool = True
    pending: bool | None = None  # only if the operation was still pending afterwards, or only if it was not
    gathered: bool = False  # may come by the hundred: see `recording.audit_feed`


def _about_account(own: Notice, others: Notice | None = None) -> tuple[Event, ...]:
    """A change to a person's security or rights: notifies that person, and with `others` administrators."""
    notified = Event(own, Group.SECURITY, Audience.SUBJECT, "accounts:my_account")
    if others is None:
        return (notified,)
    return notified, Event(others, Group.SECURITY, Audience.OTHER_ADMINISTRATORS, "audit:list")


_WAITS = Event(Notice.WAITS, Group.WAITING, Audience.DECIDERS, for_batch_rows=False)
_NOT_SENT = (
    Event(Notice.NOT_SENT, Group.OUTCOMES, Audience.OWNERS, gathered=True),
    Event(Notice.NOT_SENT, Group.OUTCOMES, Audience.NAMED, gathered=True),
    Event(Notice.NOT_SENT, Group.WAITING, Audience.DECIDERS, for_batch_rows=False, gathered=True),
)
_INCIDENTS = "operations:incidents"
_GROUP_CHANGED = Event(
    Notice.TEAM_GROUP_CHANGED, Group.SECURITY, Audience.ADMINISTRATORS, "governance:groups"
)
_POLICY_IN_EFFECT = Event(
    Notice.POLICY_IN_EFFECT, Group.SECURITY, Audience.ADMINISTRATORS, "governance:policies"
)
_START_CODE_REFUSED = Event(
    Notice.TEAM_START_CODE_REFUSED, Group.SECURITY, Audience.ADMINISTRATORS, "audit:list"
)

EVENTS: dict[Action, tuple[Event, ...]] = {
    Action.OPERATION_PREPARED: (_WAITS,),
    Action.OPERATION_APPROVED: (
        Event(Notice.PARTLY_APPROVED, Group.DECISIONS, Audience.OWNERS, for_batch_rows=False, pending=True),
        Event(Notice.APPROVED, Group.DECISIONS, Audience.OWNERS, for_batch_rows=False, pending=False),
        _WAITS,
    ),
    Action.OPERATION_WAITING_ESCALATED: (Event(Notice.ESCALATED, Group.WAITING, Audience.NAMED),),
    Action.OPERATION_WITHOUT_APPROVERS: (Event(Notice.WITHOUT_APPROVERS, Group.PROBLEMS, Audience.NAMED),),
    Action.OPERATION_REJECTED: (Event(Notice.REJECTED, Group.DECISIONS, Audience.OWNERS),),
    Action.OPERATION_CANCELLED: (
        Event(Notice.CANCELLED, Group.DECISIONS, Audience.OWNERS, for_batch_rows=False),
    ),
    Action.OPERATION_EXPIRED: (Event(Notice.EXPIRED, Group.DECISIONS, Audience.OWNERS, gathered=True),),
    Action.OPERATION_SUCCEEDED: (
        Event(Notice.SUCCEEDED, Group.OUTCOMES, Audience.OWNERS, for_batch_rows=False),
    ),
    Action.OPERATION_APPLIED: (Event(Notice.APPLIED, Group.OUTCOMES, Audience.OWNERS),),
    # The rows of a batch that failed are counted in one message: `recording.occurrences`.
    Action.OPERATION_FAILED: (Event(Notice.FAILED, Group.OUTCOMES, Audience.OWNERS, for_batch_rows=False),),
    Action.OPERATION_HELD: (
        Event(Notice.HELD, Group.PROBLEMS, Audience.OWNERS),
        Event(Notice.HELD, Group.WAITING, Audience.DECIDERS, for_batch_rows=False),
    ),
    Action.OPERATION_RELEASE_EXPIRED: _NOT_SENT,
    Action.OPERATION_ACTION_REFUSED: _NOT_SENT,
    Action.OPERATION_RETURNED: (Event(Notice.RETURNED, Group.OUTCOMES, Audience.OWNERS), _WAITS),
    Action.OPERATION_RESOLVED: (Event(Notice.RESOLVED, Group.OUTCOMES, Audience.OWNERS),),
    Action.OPERATION_OUTCOME_UNKNOWN: (
        Event(Notice.OUTCOME_UNKNOWN, Group.OUTCOMES, Audience.OWNERS),
        Event(Notice.OUTCOME_UNKNOWN, Group.PROBLEMS, Audience.RESPONDERS),
    ),
    Action.OPERATION_ESCALATED: (
        Event(Notice.REVIEW, Group.OUTCOMES, Audience.OWNERS),
        Event(Notice.REVIEW, Group.PROBLEMS, Audience.RESPONDERS),
    ),
    Action.OPERATION_CONTRADICTED: (Event(Notice.CONTRADICTED, Group.PROBLEMS, Audience.RESPONDERS),),
    Action.OPERATION_ATTEMPT_LOST: (Event(Notice.ATTEMPT_LOST, Group.PROBLEMS, Audience.RESPONDERS),),
    Action.INCIDENT_RAISED: (Event(Notice.INCIDENT, Group.PROBLEMS, Audience.RESPONDERS, _INCIDENTS),),
    Action.SUMMARY_DISCREPANCY_FOUND: (
        Event(Notice.DISCREPANCY, Group.PROBLEMS, Audience.RESPONDERS, "operations:transaction_summary"),
    ),
    Action.PAYMENTS_PAUSED: (
        Event(Notice.PAUSED, Group.PAYMENTS, Audience.EVERYBODY, "operations:overview"),
    ),
    Action.PAYMENTS_RESUMED: (
        Event(Notice.RESUMED, Group.PAYMENTS, Audience.EVERYBODY, "operations:overview"),
    ),
    Action.EXPORT_COMPLETED: (Event(Notice.EXPORT_READY, Group.FILES, Audience.ACTOR, "reports:exports"),),
    Action.EXPORT_FAILED: (Event(Notice.EXPORT_FAILED, Group.FILES, Audience.ACTOR, "reports:exports"),),
    Action.PASSWORD_CHANGED: _about_account(Notice.PASSWORD_CHANGED),
    Action.PASSWORD_RESET: _about_account(Notice.PASSWORD_RESET, Notice.TEAM_PASSWORD_RESET),
    Action.SETUP_LINK_CREATED: _about_account(Notice.SETUP_LINK_CREATED),
    Action.SETUP_LINK_USED: _about_account(Notice.SETUP_LINK_USED),
    Action.SIGN_IN_LOCKED: _about_account(Notice.LOCKED_OUT),
    Action.AUTHENTICATOR_ENROLLED: _about_account(Notice.AUTHENTICATOR_ENROLLED),
    Action.AUTHENTICATOR_RESET: _about_account(Notice.SECOND_FACTOR_RESET, Notice.TEAM_SECOND_FACTOR_RESET),
    Action.RECOVERY_CODE_USED: _about_account(Notice.RECOVERY_CODE_USED),
    Action.RECOVERY_CODES_ISSUED: _about_account(Notice.RECOVERY_CODES_ISSUED),
    Action.SESSION_ENDED: _about_account(Notice.SESSION_ENDED),
    Action.SESSIONS_ENDED: _about_account(Notice.SESSION_ENDED),
    Action.STAFF_CREATED: _about_account(Notice.ACCOUNT_CREATED, Notice.TEAM_ACCOUNT_CREATED),
    Action.STAFF_ROLES_CHANGED: _about_account(Notice.ROLES_CHANGED, Notice.TEAM_ROLES_CHANGED),
    Action.STAFF_GROUPS_CHANGED: _about_account(Notice.GROUPS_CHANGED, Notice.TEAM_GROUPS_CHANGED),
    Action.STAFF_SESSIONS_ENDED: _about_account(Notice.SESSION_ENDED, Notice.TEAM_SESSIONS_ENDED),
    Action.START_CODE_REFUSED: (_START_CODE_REFUSED,),
    Action.GROUP_CREATED: (_GROUP_CHANGED,),
    Action.GROUP_RENAMED: (_GROUP_CHANGED,),
    Action.GROUP_RETIRED: (
        _GROUP_CHANGED,
        Event(Notice.GROUPS_CHANGED, Group.SECURITY, Audience.NAMED, "accounts:my_account"),
    ),
    Action.POLICY_IN_EFFECT: (_POLICY_IN_EFFECT,),
    Action.DELEGATION_AGREED: (
        Event(Notice.DELEGATION_AGREED, Group.SECURITY, Audience.NAMED, "governance:delegations"),
    ),
    Action.DELEGATION_ENDED: (
        Event(Notice.DELEGATION_ENDED, Group.SECURITY, Audience.NAMED, "governance:delegations"),
    ),
    Action.STAFF_DEACTIVATED: _about_account(Notice.DEACTIVATED, Notice.TEAM_DEACTIVATED),
    Action.STAFF_REACTIVATED: _about_account(Notice.REACTIVATED, Notice.TEAM_REACTIVATED),
    Action.BREAK_GLASS_USED: (
        *_about_account(Notice.BREAK_GLASS),
        Event(Notice.TEAM_BREAK_GLASS, Group.SECURITY, Audience.OTHER_RESPONDERS, _INCIDENTS),
    ),
    Action.BREAK_GLASS_ACKNOWLEDGED: _about_account(Notice.BREAK_GLASS_ACKNOWLEDGED),
    Action.NOTIFICATION_CHANNEL_SAVED: _about_account(Notice.CHANNEL_SAVED),
    Action.NOTIFICATION_CHANNEL_DELETED: _about_account(Notice.CHANNEL_DELETED),
}

SILENT = frozenset(
    {
        Action.LOG_VERIFIED,
        Action.JOURNAL_IN_USE,
        Action.EVIDENCE_ARCHIVED,
        Action.DATA_PRUNED,
        Action.REPORT_REQUESTED,
        Action.REPORT_EXPORTED,
        Action.EXPORT_REQUESTED,
        Action.EXPORT_CANCELLED,
        Action.EXPORT_DOWNLOADED,
        Action.EXPORT_DELETED,
        Action.EXPORT_EXPIRED,
        Action.SCHEDULE_CREATED,
        Action.SCHEDULE_CHANGED,
        Action.SCHEDULE_PAUSED,
        Action.SCHEDULE_RESUMED,
        Action.SCHEDULE_DELETED,
        Action.SCHEDULE_RUN,
        Action.ACCESS_REFUSED,
        Action.PASSWORD_ACCEPTED,
        Action.PASSWORD_REFUSED,
        Action.SETUP_LINK_REFUSED,
        Action.SETUP_LINK_SHOWN,
        Action.SETUP_LINK_MAILED,
        Action.START_CODE_SHOWN,
        Action.ACCESS_REVIEWED,
        Action.SIGN_IN_REFUSED,
        Action.SIGN_INS_REFUSED,
        Action.WEBHOOK_ADDRESS_SHOWN,
        Action.SIGN_IN_COMPLETED,
        Action.SECOND_FACTOR_CONFIRMED,
        Action.SECOND_FACTOR_REFUSED,
        Action.RECOVERY_CODES_STORED,
        Action.SESSION_SIGNED_OUT,
        Action.OPERATION_RELEASED,
        Action.BULK_RELEASE_CONFIRMED,
        Action.OPERATION_RELEASE_RENEWED,
        Action.OPERATION_CLAIMED,
        Action.OPERATION_ACCEPTED,
        Action.OPERATION_LATE_RESPONSE_RECORDED,
        Action.BATCH_PAUSED,
        Action.BATCH_RESUMED,
        Action.BATCH_CANCELLED,
        Action.INCIDENT_ACKNOWLEDGED,
        Action.RECIPIENT_ADDED,
        Action.RECIPIENT_CHANGED,
        Action.RECIPIENT_RETIRED,
        Action.RECIPIENTS_IMPORTED,
        Action.ACCOUNT_SAVED,
        Action.ACCOUNT_RENAMED,
        Action.ACCOUNT_DELETED,
        Action.SUMMARY_DISCREPANCY_CLOSED,
        Action.DELIVERY_RECHECKED,
        Action.DELIVERY_TEST_SENT,
        Action.SECRET_REVEALED,
        Action.SECRET_REFUSED,
        Action.KEY_SWITCHED,
        Action.ROTATION_STARTED,
        Action.ROTATION_TESTED,
        Action.ROTATION_WATCH_STARTED,
        Action.ROTATION_FINISHED,
        Action.ROTATION_ABANDONED,
    }
)
"""The actions that notify nobody."""


def is_notified(action: str, detail: Mapping[str, Any]) -> bool:
    """Whether an entry of this action notifies anybody. Of refused actions only sending does: all others are shown at
    once to the person who tried. A name that differs at the bank has an entry of its own.
    """
    if action != Action.OPERATION_ACTION_REFUSED:
        return action in EVENTS
    if not isinstance(detail, dict) or not isinstance(refusal := detail.get("refusal", {}), dict):
        return False
    is_send = detail.get("attempted") == OperationAction.SEND
    return is_send and refusal.get("code") != Refusal.HOLDER_CHANGED
