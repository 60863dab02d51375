"""POST /auth/api-key (v2) and key management (v4), whose shapes the specification leaves open."""

from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from payments_gateway.sandbox import API_USER, clock
from payments_gateway.sandbox.api.authentication import api_view
from payments_gateway.sandbox.api.http import (
    OTP_TYPE_IF_ANY,
    ApiRequest,
    EmptyQuery,
    PrintableText,
    TokenText,
    json_response,
    read_body,
    read_query,
)
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.merchant import keys
from payments_gateway.sandbox.models import ApiKey, Scope
from payments_gateway.sandbox.otp import one_time_code

KeyText = Annotated[str, Field(min_length=1, max_length=128)]
_TEN_YEARS_OF_DAYS = 3650
_TEN_YEARS_OF_MONTHS = 120


class CreateKeyRequest(ApiRequest):
    """Body of POST /auth/api-key."""

    token: TokenText | None = None
    otp_type: Literal["otp", "totp"] | None = OTP_TYPE_IF_ANY


class GenerateKeyRequest(ApiRequest):
    """Body of POST /user/api-key. Days and months of expiry add up; 0 means none, like a missing member."""

    keyname: PrintableText
    scope: str
    apikey: KeyText | None = None
    expiration_in_days: Annotated[int, Field(ge=0, le=_TEN_YEARS_OF_DAYS)] = 0
    expiration_in_months: Annotated[int, Field(ge=0, le=_TEN_YEARS_OF_MONTHS)] = 0
    otp: TokenText | None = None


class InvalidateKeyRequest(ApiRequest):
    """Body of POST /user/api-key/invalidate: the key, or its short hash."""

    apikey: KeyText


class DeleteKeyQuery(ApiRequest):
    """Query of DELETE /user/api-key: the short hash as listed."""

    apikey_hash: KeyText


@api_view("POST")
def create(request: HttpRequest) -> HttpResponse:
    """POST /auth/api-key: create a key of scope Master that is valid for a year."""
    body = read_body(request, CreateKeyRequest)
    key, expires_at = keys.create(one_time_code(body.otp_type, body.token))
    return json_response({"data": {"key": key, "expires": expires_at.date().isoformat()}})


@api_view("POST", "DELETE")
def api_key(request: HttpRequest) -> HttpResponse:
    """POST /user/api-key creates a key, which may replace another; DELETE deletes one."""
    return _delete(request) if request.method == "DELETE" else _generate(request)


def _generate(request: HttpRequest) -> HttpResponse:
    body = read_body(request, GenerateKeyRequest)
    key = keys.generate(
        body.keyname,
        _scope(body.scope),
        expires_at=keys.expiry_time(days=body.expiration_in_days, months=body.expiration_in_months),
        replaced=body.apikey,
        code=body.otp,
    )
    return json_response({"data": {"apikey": key}, "message": "API key generated; it is not shown again"})


def _scope(letter: str) -> Scope:
    try:
        return Scope(letter)
    except ValueError as exc:
        phrase = f"must be one of {', '.join(Scope)}"
        raise RefusedError(400, "invalid API scope", [("scope", phrase)]) from exc


def _delete(request: HttpRequest) -> HttpResponse:
    keys.delete(read_query(request, DeleteKeyQuery).apikey_hash)
    return json_response({"message": "API key deleted"})


@api_view("GET")
def api_keys(request: HttpRequest) -> HttpResponse:
    """GET /user/api-keys: all keys that are not deleted, by short hash."""
    read_query(request, EmptyQuery)
    return json_response(
        {"data": {"Apikeys": [_listed(key) for key in keys.all_keys()]}, "message": "API keys retrieved"}
    )


def _listed(key: ApiKey) -> dict[str, object]:
    return {
        "Apikey": key.short_hash,
        "Keyname": key.name,
        "Username": API_USER,
        "Expirable": key.expires_at is not None,
        "Expiration": key.expires_at or 0,
        "DeletedAt": clock.iso_timestamp(key.invalidated_at) if key.invalidated_at else None,
    }


@api_view("GET")
def key_scopes(request: HttpRequest) -> HttpResponse:
    """GET /user/api-key/scopes: the codes of the scopes by name."""
    read_query(request, EmptyQuery)
    return json_response({"data": dict(keys.NAMES), "message": "API key scopes retrieved"})


@api_view("POST")
def invalidate(request: HttpRequest) -> HttpResponse:
    """POST /user/api-key/invalidate: invalidate a key and return its short hash."""
    short_hash = keys.invalidate(read_body(request, InvalidateKeyRequest).apikey)
    return json_response({"data": {"apikey": short_hash}, "message": "API key invalidated"})
