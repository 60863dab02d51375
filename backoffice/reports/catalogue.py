"""Every report. Adding one is adding a file beside this one and a line here."""

from backoffice.accounts.models import User
from backoffice.accounts.roles import PERMISSIONS
from backoffice.reports.api_keys_report import API_KEYS
from backoffice.reports.approvals_report import APPROVALS
from backoffice.reports.attempts_report import ATTEMPTS
from backoffice.reports.audit_report import AUDIT_LOG
from backoffice.reports.balances_report import BALANCES
from backoffice.reports.bank_accounts_report import BANK_ACCOUNTS
from backoffice.reports.continuity_report import CONTINUITY
from backoffice.reports.deliveries_report import DELIVERIES
from backoffice.reports.incidents_report import INCIDENTS
from backoffice.reports.operations_report import OPERATIONS
from backoffice.reports.payments_report import PAYMENTS
from backoffice.reports.reconciliation_report import RECONCILIATION, RECONCILIATION_BY_DAY
from backoffice.reports.report import AnyReport
from backoffice.reports.staff_report import STAFF
from backoffice.reports.statement_report import STATEMENT
from backoffice.reports.transactions_report import TRANSACTIONS
from backoffice.reports.wallets_report import WALLETS

REPORTS: dict[str, AnyReport] = {
    report.name: report
    for report in (
        TRANSACTIONS,
        STATEMENT,
        CONTINUITY,
        BALANCES,
        OPERATIONS,
        APPROVALS,
        ATTEMPTS,
        RECONCILIATION,
        RECONCILIATION_BY_DAY,
        PAYMENTS,
        BANK_ACCOUNTS,
        WALLETS,
        API_KEYS,
        DELIVERIES,
        INCIDENTS,
        STAFF,
        AUDIT_LOG,
    )
}


def reports_for(user: User) -> list[AnyReport]:
    """The reports that the person may read."""
    return [report for report in REPORTS.values() if report.may_be_read_by(user)]


def roles_that_read(report: AnyReport) -> list[str]:
    """The roles that bring the right to read it, in one word where all do."""
    roles = [role.label for role, names in PERMISSIONS.items() if names.issuperset(report.permissions)]
    return roles if len(roles) < len(PERMISSIONS) else ["Everybody"]
