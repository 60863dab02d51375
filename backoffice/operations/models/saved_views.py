"""Saved views: the filters of a list under a name."""

from django.db import models
from django.http import QueryDict
from django.urls import reverse

from backoffice.accounts.models import User
from backoffice.core.web.forms import query_of_stored


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
