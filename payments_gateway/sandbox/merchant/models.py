"""The merchant's API keys, bank accounts and settings."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from payments_gateway.sandbox.merchant.scopes import Scope


class Profile(models.Model):
    """The single row of the merchant's profile: its KYC status and its callback URL."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    kyc = models.BooleanField(default=True)
    callback_url = models.CharField(max_length=2048, blank=True, default="")

    objects: ClassVar["models.Manager[Profile]"] = models.Manager()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_merchant")]

    def __str__(self) -> str:
        return "verified merchant" if self.kyc else "merchant without KYC"


class ApiKey(models.Model):
    """One API key. The key is not stored: `digest` is its SHA-256, `short_hash` the first eight digits.

    A plain digest is sufficient, because keys are random and too long to be guessed. `expires_at` is in Unix
    seconds, as in the API, so that the check before every request needs no conversion.
    """

    id = models.BigAutoField(primary_key=True)
    digest = models.CharField(max_length=64, unique=True)
    short_hash = models.CharField(max_length=8, unique=True)
    name = models.CharField(max_length=120)
    scope = models.CharField(max_length=1)
    expires_at = models.BigIntegerField(null=True)
    invalidated_at = models.DateTimeField(null=True)

    objects: ClassVar["models.Manager[ApiKey]"] = models.Manager()

    class Meta:
        db_table = "merchant_api_key"
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=[*map(str, Scope)]), name="scope_is_known")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.short_hash})"


class BankAccount(models.Model):
    """A bank account that the provider opened for the merchant (PUT /v4/account).

    `name` is the accountName of the request, `printed_name` the name that the bank shows to payers.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=120)
    printed_name = models.CharField(max_length=120)
    currency = models.CharField(max_length=8)
    account_number = models.CharField(max_length=10, unique=True)
    bank_code = models.CharField(max_length=6)
    status = models.CharField(max_length=16, default="ACTIVE")

    objects: ClassVar["models.Manager[BankAccount]"] = models.Manager()

    class Meta:
        db_table = "merchant_bank_account"

    def __str__(self) -> str:
        return f"{self.account_number} of {self.printed_name}"
