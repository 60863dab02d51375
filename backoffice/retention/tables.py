"""How long the rows of every table are kept. The one list: `manage.py prune`, archives, the documentation and the
System page use it.

A test fails for a table that is not listed. Evidence is never deleted: triggers refuse it for most of its tables, and
the integrity checks compare operations with the whole audit log.
"""

from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from backoffice.accounts import models as accounts
from backoffice.accounts.models import AccessReview
from backoffice.accounts.restrictions import BreakGlassChange, RightsGrant
from backoffice.api_keys.models import KnownKey, Rotation
from backoffice.audit.models import ChainHead, CheckpointDestination, Entry, LastVerification
from backoffice.core.models import (
    AnsweredForm,
    CachedReadRow,
    ConfiguredKey,
    GatewayKey,
    LeaseRow,
    ProcessRow,
    ProviderCallCount,
)
from backoffice.core.storage.retention import Keeping, TableRetention
from backoffice.ledger import models as ledger
from backoffice.notifications.models import AuditCursor, ChatChannel, Message, Occurrence, Preference
from backoffice.operations.models import (
    batches,
    bulk_releases,
    holds,
    monitoring,
    operations,
    otp,
    reconciliation,
)
from backoffice.operations.models.saved_views import SavedView
from backoffice.operations.models.secret import Secret
from backoffice.policies.delegations import Delegation
from backoffice.policies.models import PolicyVersion
from backoffice.recipients.models import RecipientVersion
from backoffice.reports.models import ExportJob, ExportState, Schedule
from backoffice.webhooks.models import Delivery, DeliveryTestKey

_ONE_PER_PERSON = "a few for each person"
_ONE_ROW = "one row"
_CONFIGURED = "grows with what people set up"
_ENDED_EXPORTS = (ExportState.FAILED, ExportState.CANCELLED, ExportState.EXPIRED, ExportState.REMOVED)

_PRUNED = [
    TableRetention(
        Delivery,
        Keeping.PRUNED,
        label=_("Webhook deliveries"),
        setting="KEEP_DELIVERIES_DAYS",
        since="received_at",
        which=Q(check_due_at=None),
    ),
    TableRetention(
        ExportJob,
        Keeping.PRUNED,
        label=_("Exports without a file"),
        setting="KEEP_EXPORTS_DAYS",
        since="ended_at",
        which=Q(state__in=_ENDED_EXPORTS, mail_due_at=None),
    ),
    TableRetention(
        Message,
        Keeping.PRUNED,
        label=_("Notifications"),
        setting="KEEP_NOTIFICATIONS_DAYS",
        since="created_at",
        which=Q(due_at=None),
    ),
    TableRetention(
        Occurrence, Keeping.PRUNED, label=_("Notified events"), setting="KEEP_OCCURRENCES_DAYS", since="at"
    ),
    TableRetention(
        batches.PayoutFile,
        Keeping.PRUNED,
        label=_("Uploaded files that were not submitted"),
        setting="KEEP_UPLOADS_DAYS",
        since="uploaded_at",
        which=~Q(state=batches.FileState.SUBMITTED),
        cascades=(batches.PayoutFileRow,),
    ),
    TableRetention(
        ledger.BalanceSnapshot,
        Keeping.PRUNED,
        label=_("Balance history"),
        setting="KEEP_BALANCE_SNAPSHOTS_DAYS",
        since="slot",
    ),
    TableRetention(
        CachedReadRow,
        Keeping.PRUNED,
        label=_("Last results of reads from the provider"),
        setting="KEEP_EXPIRED_DAYS",
        since="expires_at",
    ),
    TableRetention(
        AnsweredForm,
        Keeping.PRUNED,
        label=_("Answers to submitted forms"),
        setting="KEEP_EXPIRED_DAYS",
        since="created_at",
    ),
    TableRetention(
        accounts.StaffSession,
        Keeping.PRUNED,
        label=_("Expired sessions"),
        setting="KEEP_EXPIRED_DAYS",
        since="expire_date",
    ),
    TableRetention(
        accounts.SetupLink,
        Keeping.PRUNED,
        label=_("Expired set-up links"),
        setting="KEEP_SETUP_LINKS_DAYS",
        since="expires_at",
    ),
]

_EVIDENCE = [
    TableRetention(model, Keeping.EVIDENCE, since=since)
    for model, since in (
        (Entry, "at"),
        (operations.Operation, "prepared_at"),
        (operations.Approval, "approved_at"),
        (operations.Attempt, "started_at"),
        (holds.LookAlike, "found_at"),
        (holds.HolderChange, "found_at"),
        (batches.Batch, "operation__prepared_at"),
        (batches.BatchRow, "batch__prepared_at"),
        (batches.ImportedRow, "operation__prepared_at"),
        (bulk_releases.BulkRelease, "created_at"),
        (bulk_releases.BulkReleaseItem, "bulk_release__created_at"),
        (monitoring.Pause, "paused_at"),
        (monitoring.Incident, "at"),
        (monitoring.LostAttempt, "started_at"),
        (BreakGlassChange, "at"),
        (RightsGrant, "at"),
        (AccessReview, "signed_at"),
        (PolicyVersion, "in_effect_since"),
        (Delegation, "agreed_at"),
        (RecipientVersion, "since"),
        (Rotation, "started_at"),
    )
]

_RECORD = [
    TableRetention(model, Keeping.RECORD, reason)
    for model, reason in (
        (ledger.Transaction, "one row for each transaction of the provider"),
        (
            ledger.TransactionChange,
            "one row when the provider changes a transaction; triggers refuse to delete it",
        ),
        (ledger.BalanceBreak, "one row for each break of the balance that is still there"),
        (ledger.DayTotal, "one row for each day, type, status and currency"),
        (reconciliation.Comparison, "one row for each attempt, and each transaction that belongs to none"),
        (reconciliation.ReconciliationTotal, "one row for each day, result and currency"),
    )
]

_BOUNDED = [
    TableRetention(model, Keeping.BOUNDED, reason)
    for model, reason in (
        (accounts.User, "accounts are deactivated and never deleted"),
        (accounts.User.groups.through, _ONE_PER_PERSON),
        (accounts.User.user_permissions.through, _ONE_PER_PERSON),
        (accounts.StaffGroup, _CONFIGURED),
        (accounts.GroupMembership, _ONE_PER_PERSON),
        (accounts.AuthenticatorDevice, _ONE_PER_PERSON),
        (accounts.RecoveryCode, _ONE_PER_PERSON),
        (accounts.RefusedSignIns, "deleted when its half hour has ended"),
        (Permission, "defined by the release"),
        (Group, "one for each role"),
        (Group.permissions.through, "defined by the release"),
        (ContentType, "defined by the release"),
        (ChainHead, _ONE_ROW),
        (CheckpointDestination, "one for each destination"),
        (LastVerification, _ONE_ROW),
        (GatewayKey, "the key in use, and former ones until they are deleted at the provider"),
        (LeaseRow, "one for each name of a lease"),
        (ConfiguredKey, "one for each key that was ever used"),
        (ProcessRow, "deleted a day after its last report"),
        (ProviderCallCount, "counts by minute are added up after a day"),
        (ledger.Balance, "one for each currency"),
        (ledger.Facet, "one for each type, status and currency"),
        (ledger.ContinuityCheck, "one for each currency"),
        (ledger.Mirror, _ONE_ROW),
        (ledger.Sighting, "empty between two counts of the provider's list"),
        (operations.Release, "deleted when it is sent, withdrawn or expires"),
        (Secret, "deleted when it was shown or used"),
        (batches.PayoutFileRow, "deleted with its file, or when the file is submitted"),
        (batches.ColumnMapping, _ONE_PER_PERSON),
        (monitoring.Inspection, _ONE_ROW),
        (monitoring.Heartbeat, "one for each job"),
        (otp.OtpSecret, "the secret in use and those that wait"),
        (otp.UsedOtp, "deleted when the code is no longer valid"),
        (reconciliation.ReconciliationState, _ONE_ROW),
        (SavedView, _CONFIGURED),
        (KnownKey, "one for each key at the provider"),
        (DeliveryTestKey, _ONE_ROW),
        (Schedule, _CONFIGURED),
        (Schedule.recipients.through, _CONFIGURED),
        (AuditCursor, _ONE_ROW),
        (Preference, _ONE_PER_PERSON),
        (ChatChannel, _ONE_PER_PERSON),
    )
]

TABLES: list[TableRetention] = [*_PRUNED, *_EVIDENCE, *_RECORD, *_BOUNDED]
