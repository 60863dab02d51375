"""Filters of the list of operations that people keep under a name."""

from django.db import models
from django.http import QueryDict
from django.urls import reverse

from backoffice.accounts.models import User


class SavedFilter(models.Model):
    """Filters of the list under a name: a person's own, or shared with everybody who may see operations.

    It gives no right and changes nothing, so it is not audited; an export that it leads to is.
    """

    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="saved_filters")
    name = models.CharField(max_length=60)
    is_shared = models.BooleanField(default=False)
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
        return f"{reverse('operations:list')}?{query.urlencode()}"
