"""The rows of an import of recipients: those to check first, and each with whom it can be mistaken for."""

from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from django.views.decorators.http import require_safe

from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.pagination import keyset_page
from backoffice.operations import permissions
from backoffice.operations.batches.row_rules import similar_text
from backoffice.operations.kinds.recipient import RecipientPayload
from backoffice.operations.kinds.recipient_import import RecipientImportKind
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.batches import ImportedRow
from backoffice.operations.selectors import visible_operations
from backoffice.recipients.models import RecipientType

_ORDER = ("-attention", "number")
_VIEWS = {
    "": (pgettext_lazy("rows", "All"), Q()),
    "first": (_("Check first"), Q(attention__gt=0)),
}


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def imported_rows(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = get_object_or_404(visible_operations(request.user), pk=pk, kind=RecipientImportKind.name)
    shown = request.GET.get("show", "")
    shown = shown if shown in _VIEWS else ""
    rows = operation.imported_rows.filter(_VIEWS[shown][1])
    page = keyset_page(rows, order=_ORDER, cursor=request.GET.get("cursor"))
    context = {
        "operation": operation,
        "payload": read_content(operation)[1],
        "page": page,
        "rows": [_shown(row) for row in page.rows],
        "views": [(name, label) for name, (label, _condition) in _VIEWS.items()],
        "shown": shown,
    }
    return render(request, "operations/batches/imported_rows.html", context)


def _shown(row: ImportedRow) -> dict[str, object]:
    payload = RecipientPayload.model_validate(row.payload)
    where = f"{payload.bank} ({payload.bank_code})" if payload.bank else payload.network
    typed = payload.bank_account.typed_name if payload.bank_account else ""
    return {
        "number": row.number,
        "type": RecipientType(payload.type).label,
        "details": payload.details,
        "typed_name": typed if typed != payload.details.name else "",
        "name_reason": payload.bank_account.name_reason if payload.bank_account else "",
        "account": payload.account,
        "where": where,
        "flags": row.flag_labels,
        "similar": [similar_text(one) for one in row.similar],
    }
