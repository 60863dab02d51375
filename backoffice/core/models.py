"""Models of core: the API keys used to call the provider, leases, cached reads, answers to submitted forms, and what
processes report of themselves.
"""

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from backoffice.core.encryption import EncryptedRow


class GatewayKey(EncryptedRow):
    """One API key stored here, encrypted: the one in use, or a former one that has not been deleted yet.

    Without a row in use, the key of the environment is used. Calls are counted from the switch to this key
    for as long as `is_counted` is true.
    """

    ENCRYPTED_FIELD = "encrypted_key"

    class State(models.TextChoices):
        """Whether the key is used for calls."""

        IN_USE = "in_use", "In use"
        FORMER = "former", "Former"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    # As the provider lists it; empty if never reported.
    short_hash = models.CharField(max_length=64, blank=True)
    made_by = models.UUIDField(null=True)  # the operation that created it
    state = models.CharField(max_length=8, choices=State)
    since = models.DateTimeField()
    encrypted_key = models.BinaryField()

    is_counted = models.BooleanField(default=False)
    calls = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)
    last_refused_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        ordering = ("-since",)
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="in_use"), name="gateway_key_one_in_use"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["in_use", "former"]), name="gateway_key_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.short_hash}".strip()

    @property
    def bound_to(self) -> str:
        """The associated data of the encryption, different for every row."""
        return f"gateway-key:{self.pk}"

    @property
    def owner(self) -> str:
        """Whose secret it is, for the message that it can no longer be decrypted."""
        return f"the API key {self}, {self.get_state_display().lower()}"


class LeaseRow(models.Model):
    """The last acquisition of one lease (see `leases`). The lease is free from `held_until` on."""

    name = models.CharField(max_length=40, primary_key=True)
    number = models.PositiveBigIntegerField(default=0)  # grows with each acquisition and release
    acquired_at = models.DateTimeField()
    held_until = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} #{self.number}"


class CachedReadRow(models.Model):
    """The last result of one read of the provider (see `cached_reads`)."""

    key = models.CharField(max_length=200, primary_key=True)
    encrypted_value = models.BinaryField(default=b"")  # JSON of the typed value, encrypted
    read_at = models.DateTimeField(null=True)  # empty while no read has brought a value
    tried_at = models.DateTimeField(null=True)  # the last request, until one brings a value
    expires_at = models.DateTimeField(db_index=True)  # may be deleted from then on

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.key


class AnsweredForm(models.Model):
    """The page that answers a submitted form (see `web.submissions`), encrypted for the session that sent it."""

    id = models.UUIDField(primary_key=True, editable=False)
    encrypted_page = models.BinaryField()
    status = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.pk)


class ProcessRow(models.Model):
    """The last sign of life of one process (see `telemetry.processes`)."""

    class Kind(models.TextChoices):
        WEB = "web", _("Web")
        WORKER = "worker", _("Worker")
        SWEEPER = "sweeper", _("Sweeper")

    machine = models.CharField(max_length=255)
    kind = models.CharField(max_length=8, choices=Kind)
    pid = models.PositiveBigIntegerField()
    started_at = models.DateTimeField()
    at = models.DateTimeField(db_index=True)
    report = models.JSONField(default=dict)  # see `telemetry.processes.Report`

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["machine", "kind", "pid"], name="process_one_row"),
            models.CheckConstraint(
                condition=Q(kind__in=["web", "worker", "sweeper"]), name="process_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pid} on {self.machine}"


class ConfiguredKey(models.Model):
    """Since when this installation has used a configured key: its id, never the key."""

    purpose = models.CharField(max_length=16)  # `encryption` or `checkpoints`
    key_id = models.CharField(max_length=120)
    since = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["purpose", "key_id"], name="configured_key_once")]

    def __str__(self) -> str:
        return f"{self.purpose} {self.key_id}"


class ProviderCallCount(models.Model):
    """Calls to the provider that began within one minute, of one kind and outcome (see `telemetry.provider_calls`).

    What is older than a day is added up in one row of each kind and outcome, so that totals never fall.
    """

    minute = models.DateTimeField()
    call = models.CharField(max_length=8)
    outcome = models.CharField(max_length=8)
    calls = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0)  # of all calls together
    slowest = models.FloatField(default=0)  # seconds

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["minute", "call", "outcome"], name="provider_call_count_one_row"),
        ]

    def __str__(self) -> str:
        return f"{self.call} {self.outcome} {self.minute:%H:%M}"
