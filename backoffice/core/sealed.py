"""What a row with a stored secret has in common with every other: it can be sealed anew under the newest key."""

from typing import ClassVar

from django.db import models

from backoffice.core import vault


class SealedRow(models.Model):
    """A row with one sealed secret that outlives encryption keys. `manage.py resealsecrets` finds every such model."""

    SEALED: ClassVar[str]  # the column

    class Meta:
        abstract = True

    @property
    def bound_to(self) -> str:
        """What the secret is sealed to: it opens in this row only."""
        raise NotImplementedError

    @property
    def owner(self) -> str:
        """Whose secret it is, for people who must be told that it is lost."""
        raise NotImplementedError

    @property
    def sealed_under(self) -> str:
        """The id of the key that the secret is sealed under."""
        return vault.key_id_of(bytes(getattr(self, self.SEALED)))

    def seal(self, plaintext: str) -> None:
        """Put a secret into the row. Nothing is saved."""
        setattr(self, self.SEALED, vault.seal(plaintext, bound_to=self.bound_to))

    def unsealed(self) -> str:
        """The secret in the clear. Raises VaultError."""
        return vault.open_sealed(bytes(getattr(self, self.SEALED)), bound_to=self.bound_to)

    def reseal(self) -> None:
        """Seal the same secret under the newest key, unless the row has changed meanwhile. Raises VaultError."""
        before = bytes(getattr(self, self.SEALED))
        self.seal(self.unsealed())
        type(self)._default_manager.filter(pk=self.pk, **{self.SEALED: before}).update(
            **{self.SEALED: getattr(self, self.SEALED)}
        )
