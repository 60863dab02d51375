"""What the service made and tells only once."""

from django.db import models

from backoffice.accounts.models import User
from backoffice.core.sealed import SealedRow


class Secret(SealedRow):
    """What the service made and shows nobody twice, such as a new API key: sealed, for the person who had it sent.

    Written in the commit that records the answer; deleted when it has been shown or taken into use.
    """

    SEALED = "sealed"

    operation = models.OneToOneField(
        "operations.Operation", on_delete=models.PROTECT, primary_key=True, related_name="secret"
    )
    belongs_to = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    kept_at = models.DateTimeField()
    sealed = models.BinaryField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"Secret of {self.operation_id}"

    @property
    def bound_to(self) -> str:
        """What it is sealed to: it opens as the secret of this operation only."""
        return f"secret:{self.operation_id}"

    @property
    def owner(self) -> str:
        """Who had it sent, and by which operation."""
        return f"{self.belongs_to.email} ({self.operation.reference})"
