"""The versions of the policy document. The newest is in effect; none is ever changed or deleted."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Subquery
from pydantic import ValidationError

from backoffice.audit.actions import Action
from backoffice.audit.canonical import canonical_time
from backoffice.audit.models import ChainHead, Entry
from backoffice.core.database.queries import CompiledQuery, composed_once
from backoffice.core.database.writes import appended
from backoffice.core.encryption import SealedRow, SealState
from backoffice.policies import delegations as delegations
from backoffice.policies.document import AmountBand, Conditions, Currencies, Level, PolicyDocument, Rule


class AlteredPolicyError(Exception):
    """The newest version was not stored by Countersign, is not the newest of the audit log, or cannot be read by this
    release.
    """


class PolicyVersion(SealedRow):
    """One version of the document, and the operation by which two people agreed on it."""

    WRITES = appended("seal")

    number = models.PositiveIntegerField(primary_key=True)
    document = models.JSONField()
    digest = models.CharField(max_length=64)
    operation = models.UUIDField(unique=True)
    in_effect_since = models.DateTimeField()

    class Meta:
        default_permissions = ()
        ordering = ("-number",)
        constraints = [
            models.CheckConstraint(condition=models.Q(number__gte=1), name="policy_version_from_one"),
        ]

    def __str__(self) -> str:
        return f"Approval policy {self.number}"

    def sealed_content(self) -> Mapping[str, object]:
        """That this document is this version since then, by this operation."""
        return {
            "policy_version": self.number,
            "digest": self.digest,
            "operation": str(self.operation),
            "in_effect_since": canonical_time(self.in_effect_since),
        }

    @property
    def owner(self) -> str:
        return str(self)

    def is_in(self, detail: Mapping[str, object] | None) -> bool:
        """Whether this entry of the audit log records that exactly this version was put into effect."""
        recorded = detail if isinstance(detail, dict) else {}
        return (recorded.get("number"), recorded.get("digest")) == (self.number, self.digest)

    @property
    def is_altered(self) -> bool:
        """Whether the document or its row is not as it was stored."""
        try:
            self.read()
        except AlteredPolicyError:
            return True
        return False

    def read(self) -> PolicyDocument:
        """The document. Raises AlteredPolicyError unless it and its row are as they were stored."""
        try:
            document = PolicyDocument.model_validate(self.document)
        except ValidationError as exc:
            raise AlteredPolicyError from exc
        if self.seal_state() != SealState.VALID or document.digest != self.digest:
            raise AlteredPolicyError
        return document


@dataclass(frozen=True)
class PolicyInEffect:
    """The document that decides now, and the number of its version; None while no version was ever approved."""

    number: int | None
    document: PolicyDocument


def policy_in_effect() -> PolicyInEffect:
    """The newest version; without any, the rules of `SECOND_APPROVAL_ABOVE`.

    Raises AlteredPolicyError, also unless it is the newest version that the audit log has. One query, also if there is
    no version, so that a version put into effect meanwhile is in both or in neither.
    """
    found: Any = _newest_version().first() or {}
    values = {name: found.get(f"newest_{name}") for name in _version_columns()}
    detail = found.get("newest_logged")
    if values["number"] is None and detail is None and (found or not PolicyVersion.objects.exists()):
        return PolicyInEffect(None, default_document())
    version = PolicyVersion(**values)
    if values["number"] is None or not version.is_in(detail):
        raise AlteredPolicyError
    return PolicyInEffect(version.number, version.read())


def _version_columns() -> list[str]:
    return [field.attname for field in PolicyVersion._meta.concrete_fields]


@composed_once
def _newest_version() -> CompiledQuery[Any]:
    """The newest version and what the audit log has of the newest one, in one row."""
    logged = Entry.objects.filter(action=Action.POLICY_IN_EFFECT).order_by("-position")
    newest = PolicyVersion.objects.order_by("-number")
    columns = {name: Subquery(newest.values(name)[:1]) for name in _version_columns()}
    columns["logged"] = Subquery(logged.values("detail")[:1])
    # The head of the log is the one row that is there in any case, unless nothing was ever recorded.
    head = ChainHead.objects.filter(pk=1).order_by()
    return CompiledQuery(head.values(**{f"newest_{name}": column for name, column in columns.items()}))


def default_document() -> PolicyDocument:
    """The rules while no version was approved: two people above the limit and in currencies without one."""
    return _document_of(tuple(sorted(settings.SECOND_APPROVAL_ABOVE.items())))


@lru_cache(maxsize=4)
def _document_of(limits: tuple[tuple[str, Decimal], ...]) -> PolicyDocument:
    two = (Level(needed=2),)
    above = [
        Rule(
            when=Conditions(currencies=Currencies(codes=(code,)), amount=AmountBand(above=limit)), levels=two
        )
        for code, limit in limits
    ]
    codes = tuple(code for code, _ in limits)
    others = Rule(when=Conditions(currencies=Currencies(codes=codes, other_than=True)), levels=two)
    return PolicyDocument(rules=(*above, others))
