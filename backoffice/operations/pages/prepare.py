"""Prepare an operation: fill in, check, review, submit. Nothing is stored before the last step."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template import TemplateDoesNotExist
from django.template.loader import select_template
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.core import clock
from backoffice.core.web.formatting import format_amount
from backoffice.core.web.forms import PageForm
from backoffice.core.web.submissions import is_navigation, submission_id
from backoffice.ledger import balances
from backoffice.ledger.models import Balance
from backoffice.operations import selectors
from backoffice.operations.allow_list import check_recipients, recipient_warnings, requirements_for
from backoffice.operations.approval import requirements
from backoffice.operations.descriptions import Subject
from backoffice.operations.errors import (
    ContentUnreadableError,
    DuplicatePaymentError,
    DuplicatePendingError,
    DuplicateUnknownError,
    OperationError,
    RetriedInBatchError,
)
from backoffice.operations.kinds.base import KindForm, MoneyKind, OperationKind
from backoffice.operations.kinds.batch import BatchKind
from backoffice.operations.kinds.form_fields import AmountForm
from backoffice.operations.kinds.otp_secret import OtpSecretForm
from backoffice.operations.kinds.registry import KINDS, facts_of, read_content
from backoffice.operations.models.operations import Operation, content_digest, verification_code
from backoffice.operations.pages.recipient_choice import RecipientOption, recipient_option, recipient_options
from backoffice.operations.payee_look_alikes import look_alike_warnings
from backoffice.operations.states import Status
from backoffice.operations.workflow.prepare import (
    batches_paying,
    check_not_retried,
    duplicate_payments,
    duplicates_with_unknown_outcome,
    earlier_submission,
    prepare_operation,
)


class RecipientChoiceForm(PageForm):
    """The choice among registered and recent recipients, with a search text if there are many."""

    prefix = "known"

    text = forms.CharField(
        required=False,
        max_length=60,
        label=_("Find a recipient"),
        widget=forms.TextInput(
            attrs={"type": "search", "autocomplete": "off", "placeholder": _("Name, account holder or bank")}
        ),
    )
    account = forms.CharField(
        label=_("Registered and recent recipients"),
        widget=forms.Select,
        error_messages={"required": _("Select a recipient. Nothing was filled in.")},
    )

    def __init__(self, *args: Any, user: User, kind: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user, self.kind = user, kind
        self.known = recipient_options(user, kind, self._typed("text"))
        account: Any = self.fields["account"].widget
        groups = (
            (gettext("Recipients"), self.known.registered),
            (gettext("Recent"), self.known.recent),
        )
        account.choices = [
            ("", gettext("Select a recipient, or enter one below")),
            *((name, [(one.ref, one.label) for one in accounts]) for name, accounts in groups if accounts),
        ]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to choose from, whatever is typed."""
        return not (self.known.registered or self.known.recent or self._typed("text"))

    @property
    def is_long(self) -> bool:
        """Whether the list is long enough to need a search text."""
        return self.known.has_more or bool(self._typed("text"))

    def clean_account(self) -> RecipientOption:
        ref = self.cleaned_data["account"]
        offered = (one for one in (*self.known.registered, *self.known.recent) if one.ref == ref)
        found = next(offered, None) or recipient_option(self.user, self.kind, ref)
        if found is None:
            raise forms.ValidationError(
                gettext("This recipient is no longer available. Nothing was filled in. Select another.")
            )
        return found

    def _typed(self, name: str) -> str:
        return str(self[name].value() or "").strip()[:60]


@dataclass(frozen=True)
class FullBalance:
    """The largest amount of one currency that its last reported balance covers, for "Use full balance".

    On one network if the fee depends on it; `network` is empty otherwise. `note` says what became of the fee.
    """

    currency: str
    network: str
    amount: Decimal
    note: str


def full_balances(kind: OperationKind[Any], form: KindForm, reported: list[Balance]) -> list[FullBalance]:
    """What can be offered for each currency that the form debits; nothing if it debits none."""
    if not isinstance(form, AmountForm):
        return []
    fees = selectors.last_fees(kind.name)
    found = []
    for balance in reported:
        if balance.currency in form.debit_currencies:
            unknown = gettext("Fees are charged on top: leave enough for them.")
            offers = {"": (balance.amount, unknown)} | {
                network: (balance.amount - fee, _fee_note(fee, currency))
                for (currency, network), fee in fees.items()
                if currency == balance.currency
            }
            found += [
                FullBalance(balance.currency, network, amount, note)
                for network, (amount, note) in offers.items()
                if amount > 0
            ]
    return found


def _fee_note(fee: Decimal, currency: str) -> str:
    if not fee:
        return ""
    amount = f"{currency} {format_amount(fee, currency)}"
    return gettext("{amount} is kept for the fee, as charged last time.").format(amount=amount)


MAX_DRAFTS = 5  # of one session
_DRAFTS = "drafts"
_NOT_TYPED = frozenset({"csrfmiddlewaretoken", "submission", "step", "digest"})
SHOWN_DUPLICATES = 3
_ACCOUNT_FIELDS = ("bank_code", "account_number", "address", "network", "receiver_username")


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("secret", "code", "sealed")
def prepare(request: StaffRequest, kind_name: str) -> HttpResponse:
    """The form; and, by the submitted button, its check, its review, or the operation itself."""
    kind = _kind(request, kind_name)
    if kind.prepared_on:
        return _to_own_page(request, kind)
    if request.method != "POST":
        is_first = "submission" not in request.GET
        if is_first and (elsewhere := kind.form_page(request.GET)):
            return redirect(elsewhere)
        if is_first and is_navigation(request):
            return redirect(_with_submission(request))
        original, draft = _original(request, kind), _draft(request)
        if original is not None and (retried := _retried_already(original)):
            messages.error(request, str(retried))
            return redirect(original)
        given = _prefilled(request, kind, original)
        form = _as_typed(kind, draft, given) if draft else kind.form_type(initial=given)
        return _form_page(request, kind, form, original=original)
    _keep_draft(request, kind)
    steps = {"check": _check, "find": _edit, "use": _fill_in_account, "change": _edit, "prepare": _prepare}
    return steps.get(request.POST.get("step", ""), _review)(request, kind)


@require_POST
@sensitive_post_parameters("secret", "code", "sealed")
def check(request: StaffRequest, kind_name: str) -> HttpResponse:
    """The provider's checks of the form so far, while it is being filled in."""
    kind = _kind(request, kind_name)
    context = {"kind": kind, "form": _as_typed(kind, _typed(request, kind)), "check": _checked(request, kind)}
    try:
        return render(request, f"operations/kinds/{kind.name}_check.html", context)
    except TemplateDoesNotExist as exc:
        raise Http404("This kind has nothing to check while it is filled in") from exc


def _check(request: StaffRequest, kind: OperationKind[Any]) -> HttpResponse:
    """The same without JavaScript: the form as typed, without errors for fields that are still empty."""
    return _form_page(request, kind, _as_typed(kind, _typed(request, kind)), check=_checked(request, kind))


def _edit(request: StaffRequest, kind: OperationKind[Any]) -> HttpResponse:
    return _form_page(request, kind, _as_typed(kind, _typed(request, kind)))


def _fill_in_account(request: StaffRequest, kind: OperationKind[Any]) -> HttpResponse:
    """The form with the chosen account filled in, all else as typed, and the bank's holder of the account."""
    choice = RecipientChoiceForm(request.POST, user=request.user, kind=kind.name)
    if not choice.is_valid():
        return _form_page(request, kind, _as_typed(kind, _typed(request, kind)), status=422, choice=choice)
    chosen = choice.cleaned_data["account"]
    check = kind.form_type({**request.POST.dict(), **chosen.values})
    check.is_being_typed = True
    check.full_clean()
    form = _as_typed(kind, {**_typed(request, kind), **chosen.values})
    return _form_page(request, kind, form, check=check, choice=choice, chosen=chosen)


def _review(request: StaffRequest, kind: OperationKind[Any]) -> HttpResponse:
    form = kind.form_type(request.POST)
    is_valid = form.is_valid()
    if unused := _unused_choice(request, kind, form):
        return _refused(request, kind, form, choice=unused)
    if not is_valid:
        return _refused(request, kind, form)
    original = _original(request, kind)
    if original is not None and (retried := _retried_already(original)):
        return _refused(request, kind, form, waiting=retried, original=original)
    duplicate = duplicates_with_unknown_outcome(kind, form.payload()).first()
    if duplicate is not None:
        return _refused(request, kind, form, waiting=DuplicateUnknownError(duplicate.reference, duplicate.pk))
    try:
        check_recipients(submission_id(request.POST, request.GET), KINDS[kind.name], form.payload())
    except OperationError as exc:
        form.add_error(kind.recipient_field or None, str(exc))
        return _refused(request, kind, form)
    duplicates = _unexplained_duplicates(request, kind, form)
    return (
        _refused(request, kind, form, duplicates=duplicates)
        if duplicates
        else _review_page(request, kind, form)
    )


def _unused_choice(
    request: StaffRequest, kind: OperationKind[Any], form: KindForm
) -> RecipientChoiceForm | None:
    """The choice, empty and with an error, if a recipient is chosen and the fields name another account; else None.

    Such as when the form was submitted before the chosen recipient was filled in.
    """
    choice = RecipientChoiceForm(request.POST, user=request.user, kind=kind.name)
    if not choice["account"].data or not choice.is_valid():
        return None
    chosen = choice.cleaned_data["account"]
    entered = {**request.POST.dict(), **form.cleaned_data}
    identity = {name: chosen.values.get(name) for name in _ACCOUNT_FIELDS}
    if all(not value or str(entered.get(name)) == value for name, value in identity.items()):
        return None
    choice.data = {**request.POST.dict(), choice.add_prefix("account"): ""}
    choice.add_error(
        "account",
        gettext(
            "{name} was not filled in: the details below are those of another account. Select it again, or compare "
            "the details and continue."
        ).format(name=chosen.name),
    )
    return choice


def _prepare(request: StaffRequest, kind: OperationKind[Any]) -> HttpResponse:
    """Store what was reviewed. If the content has changed since, it is reviewed again.

    The same form submitted again is answered with its operation, before the provider is read.
    """
    submission, form = submission_id(request.POST, request.GET), kind.form_type(request.POST)
    before = earlier_submission(request.user, submission, request.POST.get("digest", ""))
    if before is not None:
        messages.info(request, gettext("This form was already submitted. The operation was prepared once."))
        return redirect(before)
    if not form.is_valid():
        return _refused(request, kind, form)
    payload = form.payload()
    if request.POST.get("digest") != content_digest(submission, kind.name, payload.stored()):
        return _review_page(request, kind, form, changed=True)
    return _store(request, kind, form, submission)


def _store(request: StaffRequest, kind: OperationKind[Any], form: KindForm, submission: UUID) -> HttpResponse:
    copied = _original(request, kind)
    try:
        operation = prepare_operation(
            submission,
            actor=request.user,
            kind=kind.name,
            payload=form.payload(),
            prepared_from=copied.pk if copied else None,
            otp_secret=form.totp_secret if isinstance(form, OtpSecretForm) else None,
        )
    except (DuplicatePendingError, DuplicateUnknownError, RetriedInBatchError) as exc:
        return _refused(request, kind, form, waiting=exc)
    except DuplicatePaymentError:
        return _refused(request, kind, form, duplicates=_unexplained_duplicates(request, kind, form))
    except OperationError as exc:
        form.add_error(None, str(exc))
        return _refused(request, kind, form)
    messages.success(request, submitted_text(operation), extra_tags=operation.status)
    return redirect(operation)


def submitted_text(operation: Operation) -> str:
    """What the preparer reads after submitting: how many approvals are needed, if more than one."""
    n = operation.approvals_needed
    if n == 1:
        return gettext("Submitted for approval. Another person must approve it.")
    return ngettext(
        "Submitted for approval. {n} approval is needed.",
        "Submitted for approval. {n} approvals are needed.",
        n,
    ).format(n=n)


def _unexplained_duplicates(
    request: StaffRequest, kind: OperationKind[Any], form: KindForm
) -> list[Operation]:
    """The same payments within a day, if the form does not say why it is paid again; adds the errors to the form."""
    payload = form.payload()
    if payload.duplicate_reason:
        return []
    found = duplicate_payments(kind.recipient(payload).key, kind.exposure(payload))
    duplicates = list(found.exclude(pk=submission_id(request.POST, request.GET))[:SHOWN_DUPLICATES])
    duplicates += batches_paying(kind.recipient(payload).key, kind.exposure(payload))[:SHOWN_DUPLICATES]
    if duplicates and not form.cleaned_data["duplicate_confirmed"]:
        form.add_error("duplicate_confirmed", gettext("Confirm that this is an additional payment."))
    if duplicates and not form.cleaned_data["duplicate_reason"]:
        form.add_error("duplicate_reason", gettext("Enter the reason for the additional payment."))
    return duplicates


def _refused(request: StaffRequest, kind: OperationKind[Any], form: KindForm, **shown: Any) -> HttpResponse:
    return _form_page(request, kind, form, status=422, check=form, **shown)


def _form_page(
    request: StaffRequest, kind: OperationKind[Any], form: KindForm, *, status: int = 200, **shown: Any
) -> HttpResponse:
    """The page with the form.

    `shown`: `check` is the form after the provider's checks, `duplicates` the same payments before, `waiting`
    the operation with the same content, `choice` the choice of an account and `chosen` the one filled in. `original`
    is what is copied, if it was read already.
    """
    form.set_focus()
    if "original" not in shown:
        shown["original"] = _original(request, kind)
    reported = balances.stored_balances()
    context = {
        "kind": kind,
        "form": form,
        "fields": select_template(
            [f"operations/kinds/{kind.name}_form.html", "operations/_default_form.html"]
        ),
        "submission": submission_id(request.POST, request.GET),
        "balances": reported,
        "full_balances": full_balances(kind, form, reported),
        "choice": lambda: RecipientChoiceForm(
            initial=_account_choice_values(request), user=request.user, kind=kind.name
        ),
    }
    return render(request, "operations/prepare.html", context | shown, status=status)


def _review_page(
    request: StaffRequest, kind: OperationKind[Any], form: KindForm, *, changed: bool = False
) -> HttpResponse:
    submission, payload = submission_id(request.POST, request.GET), form.payload()
    digest, debit = content_digest(submission, kind.name, payload.stored()), kind.debit(payload)
    subject = Subject(submission, KINDS[kind.name], payload, request.user.pk, str(request.user), clock.now())
    policy = selectors.current_policy()
    context = {
        "kind": kind,
        "form": form,
        "submission": submission,
        "sentence": kind.sentence(payload),
        "facts": facts_of(kind, payload),
        "moves_money": isinstance(kind, MoneyKind),
        "cautions": [
            *kind.cautions(payload),
            *look_alike_warnings(KINDS[kind.name], payload),
            *recipient_warnings(submission, KINDS[kind.name], payload, requirements_for(policy)),
        ],
        "first_payment": selectors.first_payment_warning(kind.recipient(payload).key),
        "digest": digest,
        "code": verification_code(digest),
        "requirement": requirements.requirement_under(policy, subject),
        "balances": [row for row in balances.stored_balances() if debit and row.currency == debit.currency],
        "changed": changed,
    }
    return render(request, "operations/review.html", context, status=422 if changed else 200)


def _with_submission(request: StaffRequest) -> str:
    """The same page at an address with a submission id, so that Back from the review finds what was typed."""
    query = request.GET.copy()
    query["submission"] = str(uuid4())
    return f"{request.path}?{query.urlencode()}"


def _keep_draft(request: StaffRequest, kind: OperationKind[Any]) -> None:
    """Keep in the session what was typed, for the last few forms; no secret."""
    typed = {name: value for name, value in _typed(request, kind).items() if name not in _NOT_TYPED}
    drafts = request.session.get(_DRAFTS, {}) | {str(submission_id(request.POST, request.GET)): typed}
    request.session[_DRAFTS] = dict(list(drafts.items())[-MAX_DRAFTS:])


def _draft(request: StaffRequest) -> dict[str, str]:
    """What was typed into this form before; empty if nothing was."""
    typed: dict[str, str] = request.session.get(_DRAFTS, {}).get(request.GET.get("submission", ""), {})
    return typed


def _kind(request: StaffRequest, name: str) -> OperationKind[Any]:
    """The kind; 404 if there is none of this name, 403 if this user may not prepare it."""
    if name not in KINDS:
        raise Http404("There is no such kind of operation")
    if not request.user.has_perm(KINDS[name].permission):
        raise PermissionDenied
    return KINDS[name]


def _checked(request: StaffRequest, kind: OperationKind[Any]) -> KindForm:
    """The form after the checks that are made while it is being filled in."""
    form = kind.form_type(request.POST)
    form.is_being_typed = True
    form.full_clean()
    return form


def _typed(request: StaffRequest, kind: OperationKind[Any]) -> dict[str, str]:
    """What was submitted, without secrets."""
    secret = kind.form_type.secret_fields
    return {name: value for name, value in request.POST.dict().items() if name not in secret}


def _as_typed(
    kind: OperationKind[Any], typed: dict[str, str], given: dict[str, Any] | None = None
) -> KindForm:
    """The form with what was submitted, else what is `given`, and without errors.

    A checkbox that was not ticked is missing in what was submitted, or is in it as the text False.
    """
    form = kind.form_type(initial={**(given or {}), **typed})
    for name, field in form.fields.items():
        if isinstance(field, forms.BooleanField):
            left = form.initial if name in typed else {}  # a form may remove a tick itself
            form.initial[name] = field.widget.value_from_datadict(left, {}, name)
    return form


def _prefilled(request: StaffRequest, kind: OperationKind[Any], original: Operation | None) -> dict[str, Any]:
    """Initial values from the query string (`?currency=NGN`) or the operation that is copied."""
    given = {name: value for name, value in request.GET.items() if name not in kind.form_type.secret_fields}
    return {**given, **_copied_values(kind, original)}


def _copied_values(kind: OperationKind[Any], original: Operation | None) -> dict[str, Any]:
    """The values to prepare the same again; 404 if the content is no longer readable."""
    try:
        return kind.initial(read_content(original)[1]) if original else {}
    except ContentUnreadableError as exc:
        raise Http404(str(exc)) from exc


def _original(request: StaffRequest, kind: OperationKind[Any]) -> Operation | None:
    """The operation named by `?copy=`; 404 if it is of another kind or this user may not see it."""
    pk = _uuid(request.GET.get("copy", ""))
    visible = selectors.with_paid_row(selectors.visible_operations(request.user))
    return get_object_or_404(visible, pk=pk, kind=kind.name) if pk else None


def _to_own_page(request: StaffRequest, kind: OperationKind[Any]) -> HttpResponse:
    """To the page on which operations of this kind are prepared, with the operation to prepare again."""
    if to_retry := _batch_to_retry(request, kind):
        return redirect("operations:batch_retry", to_retry)
    copied = {"copy": request.GET["copy"]} if "copy" in request.GET else {}
    return redirect(f"{reverse(kind.prepared_on)}{'?' if copied else ''}{urlencode(copied)}")


def _batch_to_retry(request: StaffRequest, kind: OperationKind[Any]) -> UUID | None:
    """The batch in which the rows of the batch named by `?copy=` are retried; None for one that was rejected, unless it
    retries another itself. A new file of these rows would not show that they are the same payments, so that they could
    be retried as well, and be paid twice.
    """
    original = _original(request, kind) if kind.name == BatchKind.name else None
    if original is None:
        return None
    is_rejected = original.status == Status.REJECTED
    retried: UUID | None = original.batch.retry_of_id
    if retried and (is_rejected or original.decided_at is None):
        return retried
    return None if is_rejected else original.pk


def _retried_already(original: Operation) -> RetriedInBatchError | None:
    """Why this operation must not be copied: a later batch retries its payment. None if it may be."""
    try:
        check_not_retried(original)
    except RetriedInBatchError as exc:
        return exc
    return None


def _account_choice_values(request: StaffRequest) -> dict[str, str]:
    """The chosen account and the search text, as submitted."""
    return {
        name: request.POST.get(f"{RecipientChoiceForm.prefix}-{name}", "")
        for name in RecipientChoiceForm.base_fields
    }


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
