"""The list of all reports. To add one, declare it in a module of this package and list it here."""

from django.utils.translation import gettext

from backoffice.accounts.models import User
from backoffice.accounts.roles import PERMISSIONS
from backoffice.reports.definitions.access import (
    ACCESS_RIGHTS,
    API_KEYS,
    AUDIT_LOG,
    DELIVERIES,
    RECIPIENTS,
    STAFF,
)
from backoffice.reports.definitions.money import (
    BALANCES,
    BANK_ACCOUNTS,
    CONTINUITY,
    STATEMENT,
    TRANSACTIONS,
    WALLETS,
)
from backoffice.reports.definitions.operations import (
    APPROVALS,
    ATTEMPTS,
    INCIDENTS,
    OPERATIONS,
    PAYMENTS,
    RECONCILIATION,
    RECONCILIATION_BY_DAY,
)
from backoffice.reports.report import AnyReport

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
        RECIPIENTS,
        STAFF,
        ACCESS_RIGHTS,
        AUDIT_LOG,
    )
}


def reports_for(user: User) -> list[AnyReport]:
    return [report for report in REPORTS.values() if report.may_be_read_by(user)]


def roles_that_may_read(report: AnyReport) -> list[str]:
    """The roles with the permission to read it; a single word if all have it."""
    roles = [str(role.label) for role, names in PERMISSIONS.items() if names.issuperset(report.permissions)]
    return roles if len(roles) < len(PERMISSIONS) else [gettext("Everyone")]
