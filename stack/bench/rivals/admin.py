"""The Django admin's list of transactions, tuned for large tables as its documentation says.

No second count of the whole table, and filters that know their choices without asking the database for them.
"""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from backoffice.ledger.facets import known_facets
from backoffice.ledger.mirrored import Transaction

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Transaction]
else:
    ModelAdmin = admin.ModelAdmin


class WordFilter(admin.SimpleListFilter):
    """One word of the facets."""

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        words = sorted({str(getattr(facet, self.parameter_name or "")) for facet in known_facets()})
        return [(word, word) for word in words]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.parameter_name or "": self.value()}) if self.value() else queryset


def filter_by(column: str) -> type[WordFilter]:
    """The filter of one column."""
    return type(f"By{column.title()}", (WordFilter,), {"title": column, "parameter_name": column})


class TransactionAdmin(ModelAdmin):
    """The same columns, filters, order and number of rows as our list."""

    list_display = ("transaction_id", "type", "counterparty", "amount", "currency", "status", "occurred_at")
    list_filter = tuple(filter_by(column) for column in ("currency", "type", "status", "direction"))
    search_fields = ("counterparty", "sender", "username", "business_id", "transaction_id")
    ordering = ("-occurred_at", "-id")
    list_per_page = 50
    show_full_result_count = False
    actions = None

    def has_view_permission(self, _request: HttpRequest, _obj: Transaction | None = None) -> bool:
        return True

    def has_module_permission(self, _request: HttpRequest) -> bool:
        return True

    has_add_permission = has_change_permission = has_delete_permission = lambda *_: False


class Site(admin.AdminSite):
    """An admin for whoever is signed in at ours."""

    def has_permission(self, _request: HttpRequest) -> bool:
        return True


site = Site(name="admin")
site.register(Transaction, TransactionAdmin)
