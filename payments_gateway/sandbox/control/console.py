"""The console: a page for people who look at the simulation and change it. It needs no script.

The page with the forms does not refresh itself, so that nobody loses what they are typing; /_sandbox/watch shows the
same readings without the forms and does.
"""

from django.db.transaction import atomic
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render

from payments_gateway.sandbox.control import notes
from payments_gateway.sandbox.control.forms import FORMS, ConsoleForm
from payments_gateway.sandbox.control.readings import readings
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.wire.errors import RefusedError

_SEE_OTHER = 303


@operation("GET", credentials=False)
def console(request: HttpRequest) -> HttpResponse:
    """Readings and forms."""
    return _page(request, note=notes.find(request.GET.get("note", "")))


@operation("GET", credentials=False)
@atomic
def watch(request: HttpRequest) -> HttpResponse:
    """Readings alone, again every five seconds."""
    return render(request, "sandbox/watch.html", readings())


@operation("POST", credentials=False)
def act(request: HttpRequest, name: str) -> HttpResponse:
    """Do what a form asks for and show the console again; what was typed is kept if it is refused."""
    if name not in FORMS:
        raise RefusedError(404, "there is no such form")
    form = FORMS[name](request.POST)
    if form.is_valid():
        try:
            note = form.carry_out()
        except RefusedError as exc:
            form.add_error(None, exc.message)
        else:
            return HttpResponseRedirect(f"/_sandbox/?note={notes.leave(note)}", status=_SEE_OTHER)
    return _page(request, refused=form)


@atomic
def _page(request: HttpRequest, *, note: str = "", refused: ConsoleForm | None = None) -> HttpResponse:
    forms = [refused if refused and refused.name == name else kind() for name, kind in FORMS.items()]
    context = {**readings(), "forms": forms, "note": note}
    return render(request, "sandbox/console.html", context, status=422 if refused else 200)
