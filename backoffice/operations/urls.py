"""URLs of operations, transactions, payments and reconciliation.

Also of the overview, incidents, unknown outcomes, saved views, the payment pause, the system,
search, metrics.
"""

from django.urls import path

from backoffice.operations.models.saved_views import FilteredList
from backoffice.operations.monitoring import metrics
from backoffice.operations.pages import (
    bulk,
    bulk_release,
    operation_list,
    overview,
    pause,
    payments,
    prepare,
    saved_views,
    search,
    transactions,
)
from backoffice.operations.pages.batches import batch, files, imported_rows, retry
from backoffice.operations.pages.operation import actions, detail
from backoffice.operations.pages.reconciliation import findings, investigation
from backoffice.operations.pages.system.page import system

app_name = "operations"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("balances/", overview.balances, name="balances"),
    path("operations/", operation_list.operation_list, name="list"),
    path("operations/approve/", bulk.bulk_approve, name="bulk_approve"),
    path("operations/reject/", bulk.bulk_reject, name="bulk_reject"),
    path("operations/send/", bulk_release.confirm, name="bulk_send"),
    path("operations/send/<uuid:pk>/", bulk_release.progress, name="bulk_release"),
    path("operations/send/<uuid:pk>/live/", bulk_release.live, name="bulk_release_live"),
    path(
        "operations/views/",
        saved_views.saved_view_list,
        {"of": FilteredList.OPERATIONS},
        name="saved_views",
    ),
    path("operations/views/<int:pk>/rename/", saved_views.saved_view_rename, name="saved_view_rename"),
    path("operations/views/<int:pk>/delete/", saved_views.saved_view_delete, name="saved_view_delete"),
    path("reconciliation/unknown/", investigation.investigation, name="investigation"),
    path("operations/pause/", pause.pause, name="pause"),
    path("settings/system/", system, name="system"),
    path("reconciliation/incidents/", findings.incident_list, name="incidents"),
    path("reconciliation/incidents/<int:pk>/", findings.incident, name="incident"),
    path("reconciliation/incidents/break-glass/<int:pk>/", findings.break_glass, name="break_glass"),
    path("metrics", metrics.metrics, name="metrics"),
    path("search/", search.search, name="search"),
    path("operations/prepare/<slug:kind_name>/", prepare.prepare, name="prepare"),
    path("operations/prepare/<slug:kind_name>/check/", prepare.check, name="prepare_check"),
    path("operations/batches/files/", files.payout_files, name="payout_files"),
    path(
        "operations/batches/templates/<slug:kind>.<slug:suffix>",
        files.payout_template,
        name="payout_template",
    ),
    path("operations/batches/bank-codes.<slug:suffix>", files.bank_codes, name="bank_codes"),
    path("operations/batches/files/<uuid:pk>/", files.payout_file, name="payout_file"),
    path("operations/batches/files/<uuid:pk>/live/", files.payout_file_live, name="payout_file_live"),
    path("operations/batches/files/<uuid:pk>/check/", files.payout_file_check, name="payout_file_check"),
    path("operations/batches/files/<uuid:pk>/submit/", files.payout_file_submit, name="payout_file_submit"),
    path("operations/batches/files/<uuid:pk>/delete/", files.payout_file_delete, name="payout_file_delete"),
    path("operations/batches/files/<uuid:pk>/errors/", files.payout_file_errors, name="payout_file_errors"),
    path("operations/<uuid:pk>/rows/", batch.batch, name="batch"),
    path("operations/<uuid:pk>/rows/live/", batch.batch_live, name="batch_live"),
    path("operations/<uuid:pk>/rows/pause/", batch.batch_pause, name="batch_pause"),
    path("operations/<uuid:pk>/rows/resume/", batch.batch_resume, name="batch_resume"),
    path("operations/<uuid:pk>/rows/cancel/", batch.batch_cancel, name="batch_cancel"),
    path("operations/<uuid:pk>/rows/retry/", retry.batch_retry, name="batch_retry"),
    path("operations/<uuid:pk>/rows/retry/file/", retry.batch_retry_file, name="batch_retry_file"),
    path("operations/<uuid:pk>/rows/retry/upload/", retry.batch_retry_upload, name="batch_retry_upload"),
    path("operations/<uuid:pk>/recipients/", imported_rows.imported_rows, name="imported_rows"),
    path("operations/<uuid:pk>/", detail.detail, name="detail"),
    path("operations/<uuid:pk>/live/", detail.live, name="live"),
    path("operations/<uuid:pk>/receipt/", detail.receipt, name="receipt"),
    path("operations/<uuid:pk>/approve/", actions.approve, name="approve"),
    path("operations/<uuid:pk>/approve-and-send/", actions.approve_and_send, name="approve_and_send"),
    path("operations/<uuid:pk>/reject/", actions.reject, name="reject"),
    path("operations/<uuid:pk>/release/", actions.release, name="release"),
    path("operations/<uuid:pk>/cancel/", actions.cancel, name="cancel"),
    path("operations/<uuid:pk>/check/", actions.check_status, name="check_status"),
    path("operations/<uuid:pk>/case/", investigation.case, name="case"),
    path("operations/<uuid:pk>/evidence/", investigation.evidence, name="evidence"),
    path("operations/<uuid:pk>/payment/", payments.payment_refresh, name="payment_refresh"),
    path("operations/off-ramp-payments/", payments.payments, name="payments"),
    path("operations/off-ramp-payments/now/", payments.payments_refresh, name="payments_refresh"),
    path("operations/<slug:slug>/", operation_list.kind_list, name="kind"),
    path("reconciliation/", findings.reconciliation, name="reconciliation"),
    path("transactions/", transactions.transactions, name="transactions"),
    path("transactions/count/", transactions.transactions_count, name="transactions_count"),
    path(
        "transactions/views/",
        saved_views.saved_view_list,
        {"of": FilteredList.TRANSACTIONS},
        name="saved_transaction_views",
    ),
    path("transactions/summary/", transactions.transaction_summary, name="transaction_summary"),
    path("transactions/summary/now/", transactions.transaction_summary_now, name="transaction_summary_now"),
    path("transactions/<int:pk>/", transactions.transaction, name="transaction"),
]
