"""Filters of a list that people keep under a name."""

from django.db import models
from django.http import QueryDict
from django.urls import reverse

from backoffice.accounts.models import User


class List(models.TextChoices):
    """The lists that have filters to be kept. The value is the name of the list's address as well."""

    OPERATIONS = "list", "Operations"
    TRANSACTIONS = "transactions", "Transactions"


class SavedFilter(models.Model):
    """Filters of a list under a name: a person's own, or shared with everybody who may see that list.

    It gives no right and changes nothing, so it is not audited; an export that it leads to is.
    """

    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="saved_filters")
    name = models.CharField(max_length=60)
    is_shared = models.BooleanField(default=False)
    of = models.CharField(max_length=20, choices=List, default=List.OPERATIONS)
    # Name and text of each filter, as in the address.
    filters = models.JSONField()

    class Meta:
        default_permissions = ()
        ordering = ("name", "pk")
        constraints = [
            models.UniqueConstraint(fields=["person", "name"], name="saved_filter_name_once_per_person"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        query = QueryDict(mutable=True)
        query.update(self.filters)
        return f"{reverse(f'operations:{self.of}')}?{query.urlencode()}"
