"""What users save under a name: bank accounts to pay (for the whole team) and views of a list.

Neither grants a right: an account only fills in a form, a view only narrows a list.
"""

from django.db import models
from django.db.models.functions import Lower
from django.http import QueryDict
from django.urls import reverse

from backoffice.accounts.models import User
from backoffice.core.web.formatting import mask_account
from backoffice.core.web.forms import query_of_stored

BANK_PREFIX = "bank:"


def bank_account_key(bank_code: str, account_number: str) -> str:
    """The recipient key of a bank account; it does not depend on the holder's name."""
    return f"{BANK_PREFIX}{bank_code}:{account_number}"


def parse_bank_account_key(key: str) -> tuple[str, str]:
    """The bank code and the account number in such a key."""
    bank_code, _, account_number = key.removeprefix(BANK_PREFIX).partition(":")
    return bank_code, account_number


class SavedAccount(models.Model):
    """A bank account under a name the team chose, with its holder's name at the bank when it was saved."""

    name = models.CharField(max_length=60)
    recipient_key = models.CharField(max_length=200, unique=True)
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
        """The bank, and as much of the number as is needed to recognise it."""
        return f"{self.bank} {mask_account(self.recipient_key)}"


class FilteredList(models.TextChoices):
    """The lists that have saved views. The value is also the URL name of the list."""

    OPERATIONS = "list", "Operations"
    TRANSACTIONS = "transactions", "Transactions"


class SavedView(models.Model):
    """Filters of a list under a name: a user's own, or shared with everyone who may see that list.

    It grants no right and changes nothing, so it is not audited; an export made with it is.
    """

    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="saved_views")
    name = models.CharField(max_length=60)
    is_shared = models.BooleanField(default=False)
    list_name = models.CharField(max_length=20, choices=FilteredList, default=FilteredList.OPERATIONS)
    # Name and text of each filter, as in the query string; or `preset`, a period that moves with the calendar.
    filters = models.JSONField()

    class Meta:
        default_permissions = ()
        ordering = ("name", "pk")
        constraints = [
            models.UniqueConstraint(fields=["person", "name"], name="saved_view_name_once_per_person"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        query = QueryDict(mutable=True)
        query.update(query_of_stored(self.filters))
        return f"{reverse(f'operations:{self.list_name}')}?{query.urlencode()}"
