"""Two receivers of webhooks to compare ours with, each a Django project of its own (`rival_settings`).

`bare` is the limit: no middleware, one INSERT of the body, nothing verified. `stock` is what a tutorial makes: the
middleware of a new Django project, the signature verified, `get_or_create` by the hash of the signed data.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from django.conf import settings
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.urls import path
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.AUTO)
_key = cast(RSAPublicKey, load_pem_public_key(Path(settings.WEBHOOK_KEYS).read_bytes()))


class BareDelivery(models.Model):
    received_at = models.DateTimeField()
    body = models.BinaryField()

    class Meta:
        app_label, db_table, managed = "rivals", "rival_bare", False

    def __str__(self) -> str:
        return f"delivery {self.pk}"


class StockDelivery(models.Model):
    identity = models.CharField(max_length=64, unique=True)
    received_at = models.DateTimeField(auto_now_add=True)
    event = models.CharField(max_length=200)
    data = models.JSONField()
    headers = models.JSONField()
    body = models.BinaryField()

    class Meta:
        app_label, db_table, managed = "rivals", "rival_stock", False

    def __str__(self) -> str:
        return self.event


def bare(request: HttpRequest) -> HttpResponse:
    BareDelivery._default_manager.create(received_at=timezone.now(), body=request.body)
    return HttpResponse(headers={"Content-Length": "0"})


@csrf_exempt
def stock(request: HttpRequest) -> HttpResponse:
    document = json.loads(request.body)
    signed = json.dumps(document["data"], separators=(",", ":")).encode()
    try:
        _key.verify(base64.b64decode(document["signature"]), signed, _PSS, hashes.SHA256())
    except InvalidSignature:
        return HttpResponseBadRequest()
    StockDelivery._default_manager.get_or_create(
        identity=hashlib.sha256(signed).hexdigest(),
        defaults={
            "event": document["event"],
            "data": document["data"],
            "headers": dict(request.headers),
            "body": request.body,
        },
    )
    return HttpResponse(headers={"Content-Length": "0"})


urlpatterns = [path("hooks/bare/", bare), path("hooks/stock/", stock)]
