"""The secret of an operation: what the provider shows only once."""

from django.db import models

from backoffice.accounts.models import User
from backoffice.core.encryption import EncryptedRow
from backoffice.operations.models.operations import Operation


class Secret(EncryptedRow):
    """A value that the provider shows only once, such as a new API key, encrypted for the releasing user.

    Written in the commit that records the response; deleted once it has been shown or taken into use.
    """

    ENCRYPTED_FIELD = "encrypted_value"

    operation = models.OneToOneField(
        Operation, on_delete=models.PROTECT, primary_key=True, related_name="secret"
    )
    viewer = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    encrypted_at = models.DateTimeField()
    encrypted_value = models.BinaryField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"Secret of {self.operation_id}"

    @property
    def bound_to(self) -> str:
        """The context of the encryption: it can only be decrypted as the secret of this operation."""
        return f"secret:{self.operation_id}"

    @property
    def owner(self) -> str:
        """The user who released the operation, and its reference."""
        return f"{self.viewer.email} ({self.operation.reference})"
