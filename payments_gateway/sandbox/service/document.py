"""GET /openapi.json: the description of the service. The real one does not serve it."""

import json
from functools import cache
from pathlib import Path

from django.http import HttpRequest, HttpResponse

from payments_gateway.sandbox.merchant.entrance import operation

_SOURCE = Path(__file__).resolve().parents[2] / "openapi.yaml"


@operation("GET", credentials=False)
def openapi(request: HttpRequest) -> HttpResponse:
    """`payments_gateway/openapi.yaml`, as JSON."""
    return HttpResponse(_document(), content_type="application/json")


@cache
def _document() -> str:
    import yaml  # only here: most runs are never asked, and it would take several megabytes of each

    return json.dumps(yaml.safe_load(_SOURCE.read_text(encoding="utf-8")), ensure_ascii=False)
