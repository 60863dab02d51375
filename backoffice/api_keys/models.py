"""The provider's list of API keys as last read, and the key rotation, of which at most one is open."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from backoffice.core.database.writes import NEVER_DELETED
from backoffice.core.web.formatting import with_error_sentence


class KnownKey(models.Model):
    """One key of the provider's list, as last read. The provider is the authority."""

    short_hash = models.CharField(max_length=200, primary_key=True)
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=200, blank=True)
    expires_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    as_of = models.DateTimeField()
    # From our own operations, set when the list was read.
    scope = models.CharField(max_length=200, blank=True)
    # Created by an operation without a response: its secret is lost.
    is_lost = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        ordering = ("position",)

    def __str__(self) -> str:
        return f"{self.name} {self.short_hash}"


class KeyTestResult(models.TextChoices):
    """The result of the test of a new key; `Rotation.test_text` puts it into words."""

    PASSED = "passed", "GET /balance with the new key succeeded: {count} balances read ({currencies})."
    FAILED = "failed", _("GET /balance with the new key failed: {error}")


class Rotation(models.Model):
    """A guided rotation. It stores people's decisions; the present step also depends on its operations."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    started_at = models.DateTimeField()
    is_open = models.BooleanField(default=True)
    ended_at = models.DateTimeField(null=True)
    is_finished = models.BooleanField(default=False)  # a closed rotation is either finished or abandoned

    tested_operation = models.UUIDField(null=True)  # the operation that created the tested key
    tested_at = models.DateTimeField(null=True)
    test_result = models.CharField(max_length=6, choices=KeyTestResult, blank=True)
    test_parameters = models.JSONField(default=dict)
    watched_until = models.DateTimeField(null=True)

    WRITES = NEVER_DELETED

    class Meta:
        default_permissions = ()
        ordering = ("-started_at",)
        constraints = [
            models.UniqueConstraint(
                fields=["is_open"], condition=Q(is_open=True), name="rotation_one_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(is_open=True, ended_at__isnull=True) | Q(is_open=False, ended_at__isnull=False),
                name="rotation_ended_has_time",
            ),
        ]

    def __str__(self) -> str:
        return f"the rotation {str(self.pk)[:8]}"

    def get_absolute_url(self) -> str:
        return reverse("api_keys:rotation")

    @property
    def is_passed(self) -> bool:
        """Whether the last test of the new key succeeded."""
        return self.test_result == KeyTestResult.PASSED

    @property
    def test_text(self) -> str:
        """The result of the last test in words."""
        parameters = with_error_sentence(self.test_parameters)
        if not self.is_passed:
            return str(KeyTestResult(self.test_result).label).format(**parameters)
        return ngettext(
            "GET /balance with the new key succeeded: {count} balance read ({currencies}).",
            "GET /balance with the new key succeeded: {count} balances read ({currencies}).",
            parameters["count"],
        ).format(**parameters)
