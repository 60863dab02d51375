"""Bank accounts that the team keeps under a name. It gives no right: whoever uses one only fills in a form with it."""

from django.db import models
from django.db.models.functions import Lower

from backoffice.accounts.models import User
from backoffice.core.display import mask_account

BANK_PREFIX = "bank:"


def bank_key(bank_code: str, account_number: str) -> str:
    """The key of the beneficiary that a bank account is, whoever holds it."""
    return f"{BANK_PREFIX}{bank_code}:{account_number}"


def account_in(key: str) -> tuple[str, str]:
    """The bank's code and the account number out of such a key."""
    bank_code, _, account_number = key.removeprefix(BANK_PREFIX).partition(":")
    return bank_code, account_number


class SavedAccount(models.Model):
    """A bank account under a name of the team's own, with its holder as the bank named it when it was saved."""

    name = models.CharField(max_length=60)
    beneficiary_key = models.CharField(max_length=200, unique=True)
    bank = models.CharField(max_length=200)
    account_name = models.CharField(max_length=200)
    saved_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    saved_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        ordering = (Lower("name"), "pk")
        constraints = [models.UniqueConstraint(Lower("name"), name="saved_account_name_once")]

    def __str__(self) -> str:
        return f"“{self.name}”, {self.account_name}, {self.masked}"

    @property
    def masked(self) -> str:
        """The bank, and of the number no more than people need to recognise it."""
        return f"{self.bank} {mask_account(self.beneficiary_key)}"
