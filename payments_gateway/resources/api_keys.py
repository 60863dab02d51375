"""API keys: create, list, invalidate, delete. A new key is returned once, as a secret.

Specification: API key; Authentication, 7 and 8.
"""

from functools import partial
from typing import Annotated, Self

from pydantic import ConfigDict, Field, Secret, SecretStr, model_validator

from payments_gateway.errors import InputError, NotSentError
from payments_gateway.errors import gettext_noop as _
from payments_gateway.fields import (
    Flag,
    LenientText,
    RequestModel,
    RequiredText,
    Text,
    Timestamp,
    WireModel,
)
from payments_gateway.money import UnreadableError
from payments_gateway.operations import Endpoint, key_management_endpoint
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.profile.values import OtpType
from payments_gateway.responses import (
    HIDDEN,
    KeyResponseReader,
    ParsedResponse,
    first_list,
    first_text,
    missing,
    read_acknowledgement,
    rename_members,
    text_at,
)
from payments_gateway.transport import Resource, require_otp


class KeyRequest(RequestModel):
    """An API key to create. `scope` is one of the codes of `api_keys.scopes`.

    It expires after a number of days or of months, not both; without either the provider decides. `replaces`
    is an old key that the same call invalidates.
    """

    name: RequiredText
    scope: RequiredText
    replaces: SecretStr | None = None
    expires_in_days: Annotated[int, Field(strict=True, gt=0, le=36_500)] | None = None
    expires_in_months: Annotated[int, Field(strict=True, gt=0, le=1_200)] | None = None

    @model_validator(mode="after")
    def _lives_for_days_or_months(self) -> Self:
        if self.expires_in_days is not None and self.expires_in_months is not None:
            raise InputError(_("A key expires in a number of days or of months, not both."))
        return self

    def wire(self, otp: SecretStr | None, profile: ProviderProfile) -> dict[str, object]:
        """Return the body of POST /user/api-key, with the old key and the one-time code still as secrets."""
        body: dict[str, object | None] = {
            profile.key_name_member: self.name,
            profile.key_scope_member: self.scope,
            profile.key_replaced_member: self.replaces,
            profile.key_days_member: self.expires_in_days,
            profile.key_months_member: self.expires_in_months,
            profile.key_otp_member: otp,
        }
        return {name: value for name, value in body.items() if value is not None}


class CreatedKey(WireModel):
    """A new API key, shown only once. All other members of the response are kept as secrets too."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Secret[object]]

    key: Annotated[SecretStr, Field(min_length=1)]
    expires: Timestamp = None


class KeyInfo(WireModel):
    """A key of the merchant as listed: identified by a short hash, without the key itself."""

    short_hash: Annotated[Text, Field(min_length=1)]
    name: LenientText = ""
    username: LenientText = ""
    is_expirable: Flag = None
    expires_at: Timestamp = None
    deleted_at: Timestamp = None


class ApiKeys(Resource):
    """POST /auth/api-key and the five operations of key management, whose shapes are not specified.

    Errors of these calls contain nothing of a response that may hold a key.
    """

    @property
    def _endpoint(self) -> Endpoint:
        return key_management_endpoint(self._profile)

    def create(self, *, otp: SecretStr | None, otp_type: OtpType | None = None) -> CreatedKey:
        """Create an API key with all permissions (POST /auth/api-key). The old key remains valid.

        `otp` is the one-time code; it may be None only if the profile makes it optional. The OTP type
        defaults to that of the profile. The key is returned as a secret and is never shown again.

        Not repeatable: a second call creates a second key. Raises RejectedError when the provider rejected
        the request, NotSentError when nothing was sent, OutcomeUnknownError otherwise, also when the response
        holds no key. Specification: Endpoints, POST /auth/api-key; API key; Authentication, 5 to 7.
        """
        require_otp(otp, self._profile)
        body = {"otpType": otp_type or self._profile.otp_type} | ({} if otp is None else {"token": otp})
        into = partial(_parse_created_key, self._profile)
        return self._transport.send_once(
            "POST", "/auth/api-key", body, into=into, reader_type=KeyResponseReader
        )

    def generate(self, request: KeyRequest, *, otp: SecretStr | None) -> CreatedKey:
        """Create an API key with a name, a scope and an expiry (POST /user/api-key).

        The scope is one of the codes of `scopes`. A key that the request replaces stops working at once.
        `otp` is the one-time code; it may be None only if the profile makes it optional. The key is returned
        as a secret, once.

        Not repeatable: a second call creates a second key. Raises RejectedError when the provider rejected
        the request (the scope, for example), NotSentError when nothing was sent, OutcomeUnknownError
        otherwise, also when the response holds no key. Specification: Authentication, 7 and 8 (shapes not
        shown: see the profile).
        """
        require_otp(otp, self._profile)
        return self._transport.send_once(
            "POST",
            self._profile.key_generate_path,
            request.wire(otp, self._profile),
            into=partial(_parse_created_key, self._profile),
            endpoint=self._endpoint,
            reader_type=KeyResponseReader,
        )

    def list(self) -> list[KeyInfo]:
        """Return the merchant's keys, identified by short hashes (GET /user/api-keys).

        Deleted keys are included, with the time. Changes nothing and is retried. Raises RejectedError,
        ReadFailedError. Specification: Authentication, 8 (shapes not shown: see the profile).
        """
        into = partial(_parse_key_list, self._profile)
        return self._transport.read(
            "GET",
            self._profile.key_list_path,
            into=into,
            endpoint=self._endpoint,
            reader_type=KeyResponseReader,
        )

    def scopes(self) -> dict[str, str]:
        """Return the scopes that a key can have (GET /user/api-key/scopes), as name -> code: Master -> M.

        Changes nothing and is retried. Raises RejectedError, ReadFailedError. Specification: Authentication,
        8 (shapes not shown: see the profile).
        """
        return self._transport.read(
            "GET", self._profile.key_scopes_path, into=_parse_scopes, endpoint=self._endpoint
        )

    def invalidate(self, key: SecretStr) -> str:
        """Invalidate a key, which may be the one this client uses (POST /user/api-key/invalidate).

        Returns the provider's message. Sent once. Invalidating a key twice is harmless, but resolve an unknown
        outcome with `list`. Raises RejectedError when the provider rejected the request, NotSentError when nothing was
        sent, OutcomeUnknownError otherwise. Specification: Authentication, 6 and 8 (shapes not shown: see the profile).
        """
        _require_text(key.get_secret_value(), _("The key to invalidate is missing. Nothing was sent."))
        body = {self._profile.key_invalidate_member: key}
        path = self._profile.key_invalidate_path
        return self._transport.send_once(
            "POST",
            path,
            body,
            into=read_acknowledgement,
            endpoint=self._endpoint,
            reader_type=KeyResponseReader,
        )

    def delete(self, short_hash: str) -> str:
        """Delete a key by its short hash, as returned by `list` (DELETE /user/api-key).

        Returns the provider's message. Sent once. Deleting a key twice is harmless, but resolve an unknown outcome
        with `list`. Raises RejectedError when the provider rejected the request, NotSentError when nothing was sent,
        OutcomeUnknownError otherwise. Specification: Authentication, 8 (shapes not shown: see the profile).
        """
        _require_text(short_hash, _("The short hash of the key to delete is missing. Nothing was sent."))
        query = {self._profile.key_hash_query: short_hash}
        path = self._profile.key_delete_path
        return self._transport.send_once(
            "DELETE",
            path,
            None,
            into=read_acknowledgement,
            query=query,
            endpoint=self._endpoint,
            reader_type=KeyResponseReader,
        )


def _require_text(text: str, template: str) -> None:
    """Raise NotSentError for an empty key or hash: the provider might take it to mean all keys."""
    if not text.strip():
        raise NotSentError.of(template)


def _parse_created_key(profile: ProviderProfile, response: ParsedResponse) -> CreatedKey:
    key = first_text(response.data, profile.created_key_paths)
    if key is None or HIDDEN in key:
        raise UnreadableError(_("it contains no new key"))
    places = {path[-1:] for path in (*profile.created_key_paths, *profile.created_key_expiry_paths)}
    others = {name: value for name, value in response.data.items() if (name,) not in places}
    expires = first_text(response.data, profile.created_key_expiry_paths)
    return CreatedKey.model_validate(others | {"key": key, "expires": expires})


def _parse_key_list(profile: ProviderProfile, response: ParsedResponse) -> list[KeyInfo]:
    found = first_list(response.members.get("data"), profile.key_list_paths)
    return [_parse_key(profile, key) for key in found]


def _parse_key(profile: ProviderProfile, key: object) -> KeyInfo:
    if not isinstance(key, dict):
        raise UnreadableError(_("one of its keys is not an object"))
    if text_at(key, [(name,) for name in profile.listed_key_hash_members]) is None:
        raise missing(profile.listed_key_hash_members)
    places = {
        "short_hash": profile.listed_key_hash_members,
        "name": profile.listed_key_name_members,
        "username": profile.listed_key_username_members,
        "is_expirable": profile.listed_key_expirable_members,
        "expires_at": profile.listed_key_expiry_members,
        "deleted_at": profile.listed_key_deletion_members,
    }
    return KeyInfo.model_validate(rename_members(key, places))


def _parse_scopes(response: ParsedResponse) -> dict[str, str]:
    if not response.data:
        raise UnreadableError(_("it contains no scopes"))
    return {name: _scope_code(response.data, name) for name in response.data}


def _scope_code(scopes: dict[str, object], name: str) -> str:
    code = text_at(scopes, [(name,)])
    if code is None:
        raise UnreadableError(_("{member} has no code"), member=name)
    return code
