"""Requests and responses of the API key operations (specification: API key; Authentication, 7 and 8)."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, Secret, SecretStr, model_validator

from payments_gateway.profile.model import ProviderProfile
from payments_gateway.schemas.fields import (
    Flag,
    LenientText,
    RequestModel,
    RequiredText,
    Text,
    Timestamp,
    WireModel,
)


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
            raise ValueError("A key expires in a number of days or of months, not both.")
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
