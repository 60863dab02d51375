"""Preparing an operation: fill in, check, review, prepare. Nothing is stored before the last step."""

from typing import Any
from uuid import UUID, uuid4

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from backoffice.accounts.http import StaffRequest
from backoffice.ledger import selectors as ledger
from backoffice.operations import permissions, policy, selectors, services
from backoffice.operations.content import short_code
from backoffice.operations.errors import OperationError, UnreadableContentError
from backoffice.operations.kinds import KINDS, Kind, KindForm, content_of
from backoffice.operations.models import Operation, content_digest


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.PREPARE, raise_exception=True)
def prepare(request: StaffRequest, kind_name: str) -> HttpResponse:
    """The form; and, by the button that was pressed, its check, its review, or the operation itself."""
    kind = _kind(kind_name)
    if request.method != "POST":
        return _form_page(request, kind, kind.form_type(initial=_copied(request, kind)))
    steps = {"check": _check, "change": _change, "prepare": _prepare}
    return steps.get(request.POST.get("step", ""), _review)(request, kind)


@require_POST
@permission_required(permissions.PREPARE, raise_exception=True)
def check(request: StaffRequest, kind_name: str) -> HttpResponse:
    """What the service says about the form so far, while it is being filled in."""
    kind = _kind(kind_name)
    context = {"kind": kind, "form": _as_typed(request, kind), "check": _checked(request, kind)}
    return render(request, f"operations/kinds/{kind.name}_check.html", context)


def _check(request: StaffRequest, kind: Kind[Any]) -> HttpResponse:
    """The same without JavaScript: the form as typed, without complaints about what is still empty."""
    return _form_page(request, kind, _as_typed(request, kind), checked=_checked(request, kind))


def _change(request: StaffRequest, kind: Kind[Any]) -> HttpResponse:
    return _form_page(request, kind, _as_typed(request, kind))


def _review(request: StaffRequest, kind: Kind[Any]) -> HttpResponse:
    form = kind.form_type(request.POST)
    return _review_page(request, kind, form) if form.is_valid() else _refused(request, kind, form)


def _prepare(request: StaffRequest, kind: Kind[Any]) -> HttpResponse:
    """Store what was reviewed. If it is not what was reviewed any more, it is reviewed again.

    The same form sent again is answered with its operation, before the service is asked about anything.
    """
    submission, form = _submission(request), kind.form_type(request.POST)
    before = selectors.submitted_before(request.user, submission, request.POST.get("digest", ""))
    if before is not None:
        messages.info(request, "This form had been sent before. It was prepared once.")
        return redirect(before)
    if not form.is_valid():
        return _refused(request, kind, form)
    payload = form.payload()
    if request.POST.get("digest") != content_digest(submission, kind.name, payload.stored()):
        return _review_page(request, kind, form, changed=True)
    copied = _original(request, kind)
    try:
        operation = services.prepare_operation(
            submission,
            actor=request.user,
            kind=kind.name,
            payload=payload,
            prepared_from=copied.pk if copied else None,
        )
    except OperationError as exc:
        form.add_error(None, str(exc))
        return _refused(request, kind, form)
    messages.success(request, "Prepared. Nothing is sent before another person has countersigned it.")
    return redirect(operation)


def _refused(request: StaffRequest, kind: Kind[Any], form: KindForm) -> HttpResponse:
    return _form_page(request, kind, form, checked=form, status=422)


def _form_page(
    request: StaffRequest,
    kind: Kind[Any],
    form: KindForm,
    *,
    checked: KindForm | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "kind": kind,
        "form": form,
        "check": checked,
        "fields": f"operations/kinds/{kind.name}_form.html",
        "submission": _submission(request),
        "original": _original(request, kind),
        "balances": ledger.known_balances(),
    }
    return render(request, "operations/prepare.html", context, status=status)


def _review_page(
    request: StaffRequest, kind: Kind[Any], form: KindForm, *, changed: bool = False
) -> HttpResponse:
    submission, payload = _submission(request), form.payload()
    digest, debit = content_digest(submission, kind.name, payload.stored()), kind.debit(payload)
    context = {
        "kind": kind,
        "form": form,
        "submission": submission,
        "sentence": kind.sentence(payload),
        "facts": kind.facts(payload),
        "digest": digest,
        "code": short_code(digest),
        "requirement": policy.requirement(kind.label, debit),
        "balances": [row for row in ledger.known_balances() if debit and row.currency == debit.currency],
        "changed": changed,
    }
    return render(request, "operations/review.html", context, status=422 if changed else 200)


def _kind(name: str) -> Kind[Any]:
    if name not in KINDS:
        raise Http404("There is no such kind of operation")
    return KINDS[name]


def _checked(request: StaffRequest, kind: Kind[Any]) -> KindForm:
    form = kind.form_type(request.POST)
    form.full_clean()
    return form


def _as_typed(request: StaffRequest, kind: Kind[Any]) -> KindForm:
    return kind.form_type(initial=request.POST.dict())


def _copied(request: StaffRequest, kind: Kind[Any]) -> dict[str, Any]:
    """The values to prepare the same again; 404 if they cannot be read any more."""
    original = _original(request, kind)
    try:
        return kind.initial(content_of(original)[1]) if original else {}
    except UnreadableContentError as exc:
        raise Http404(str(exc)) from exc


def _original(request: StaffRequest, kind: Kind[Any]) -> Operation | None:
    """The operation named by `?copy=`; 404 if it is not of this kind or this person may not see it."""
    pk = _uuid(request.GET.get("copy", ""))
    return (
        get_object_or_404(selectors.visible_operations(request.user), pk=pk, kind=kind.name) if pk else None
    )


def _submission(request: StaffRequest) -> UUID:
    """The id that the filled-in form came with, so that sending it twice finds the same operation; or a new one."""
    return _uuid(request.POST.get("submission", "")) or uuid4()


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
