"""Files: at once where they are small, in the background where they are big or somebody wants it so."""

from functools import partial
from http import HTTPStatus
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_safe

from backoffice.accounts.http import StaffRequest
from backoffice.ledger.mirror.state import mirror_state
from backoffice.reports import services
from backoffice.reports.asking import wish_of
from backoffice.reports.errors import BusyError, NoRoomError, TooLongError
from backoffice.reports.estimating import estimated_rows, is_big
from backoffice.reports.file_name import file_name
from backoffice.reports.services.streaming import Export
from backoffice.reports.views.asked import Asked, asked
from backoffice.reports.views.sending import file_answer, hang_up
from backoffice.reports.wanted import Wanted
from payments_gateway import GatewayError

_BIG = "It is big, so it is made in the background: you need not wait, and nobody else has to."
_BUSY = "Other files are being sent just now. Try again in a moment, or have it made in the background."


@require_http_methods(["GET", "HEAD", "POST"])
def report(request: StaffRequest, name: str) -> HttpResponseBase:
    """One report: its filters, columns and kinds of file. What is sent here is made, kept for later or scheduled."""
    wish = asked(request, name, request.POST if request.method == "POST" else request.GET)
    if request.method != "POST":
        return _page(wish, refused=bool(wish.filters) and not wish.is_valid())
    if not wish.is_valid():
        return _page(wish, refused=True)
    match request.POST.get("then"):
        case "background":
            return _in_background(wish)
        case "schedule":
            return redirect(f"{reverse('reports:new_schedule', args=[name])}?{_address(wish)}")
    return _file(wish)


@require_GET
def csv(request: StaffRequest, name: str) -> HttpResponseBase:
    """One report as a file, narrowed by the filters in the address."""
    wish = asked(request, name, request.GET)
    return _file(wish) if wish.is_valid() else _page(wish, refused=True)


@require_safe
def size(request: StaffRequest, name: str) -> HttpResponse:
    """About how many rows the filters in the address leave, and how the file will be made."""
    wish = asked(request, name, request.GET)
    return render(request, "reports/_size.html", _size(wish.wanted) if wish.is_valid() else {})


def _file(wish: Asked) -> HttpResponseBase:
    wanted = wish.wanted
    estimate = estimated_rows(wanted)
    if is_big(wanted, estimate):
        return _offer(wish, _BIG, estimate)
    as_of = wanted.report.as_of()
    try:
        export = Export(wanted, hang_up=partial(hang_up, wish.request))
    except BusyError:
        return _offer(wish, _BUSY, estimate, status=HTTPStatus.SERVICE_UNAVAILABLE)
    except TooLongError as exc:
        return _offer(wish, str(exc), estimate, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    except GatewayError as exc:
        failed = {"report": wish.report, "error": exc, "again": f"{_link(wish)}?{_address(wish)}"}
        return render(wish.request, "reports/unavailable.html", failed, status=HTTPStatus.BAD_GATEWAY)
    return file_answer(export, wanted.format, file_name(wanted, as_of))


def _in_background(wish: Asked) -> HttpResponse:
    wanted = wish.wanted
    texts = {**wish_of(wanted, wish.filters), "estimate": estimated_rows(wanted)}
    try:
        return redirect(services.request_export(wish.request.user, texts))
    except NoRoomError as exc:
        wish.file.add_error(None, str(exc))
        return _page(wish, refused=True)


def _offer(wish: Asked, why: str, estimate: int | None, *, status: int = HTTPStatus.OK) -> HttpResponse:
    """A page that says why not at once, with one button for the background."""
    context = {"report": wish.report, "why": why, "estimate": estimate, "sent": list(_sent(wish))}
    return render(wish.request, "reports/offer.html", context, status=status)


def _page(wish: Asked, *, refused: bool) -> HttpResponse:
    context: dict[str, object] = {"report": wish.report, "form": wish.form, "file": wish.file}
    if wish.report.told_up_to:
        context["mirror"] = mirror_state()
    if not refused and wish.is_valid():
        context |= _size(wish.wanted)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if refused else HTTPStatus.OK
    return render(wish.request, "reports/report.html", context, status=status)


def _size(wanted: Wanted) -> dict[str, object]:
    estimate = estimated_rows(wanted)
    return {"estimate": estimate, "is_big": is_big(wanted, estimate)}


def _sent(wish: Asked) -> list[tuple[str, str]]:
    """Everything that was sent, as names and texts."""
    names = [*wish.filters, "columns", "format", "has_mark"]
    data = wish.file.data
    return [
        (name, text) for name in names for text in (data.getlist(name) if isinstance(data, QueryDict) else ())
    ]


def _address(wish: Asked) -> str:
    return urlencode(_sent(wish))


def _link(wish: Asked) -> str:
    return reverse("reports:csv", args=[wish.report.name])
