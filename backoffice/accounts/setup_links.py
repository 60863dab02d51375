"""Hand over a one-time link that two people agreed on: one of them sees the link, the other its start code, each once.

Neither can open the account with one half, so only the person who is given both can.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import SetupLink, User
from backoffice.accounts.second_factor import is_second_factor_fresh
from backoffice.accounts.staff import SETUP_LINK_LIFETIME
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.audit.models import Entry
from backoffice.core import clock

MOST_TO_PASS_ON = 10
"""How many links and start codes the overview lists."""
MOST_TOGETHER = 20
"""How many of them one page shows or mails."""


class HandoverError(Exception):
    """Nothing was shown. The message says why and what to do."""

    message = _("The link or code cannot be shown now. Nothing was shown.")

    def __init__(self) -> None:
        super().__init__(str(self.message))


class NothingToHandOverError(HandoverError):
    message = _(
        "There is nothing to show: the link was used, has expired, or you have viewed your part already. If the "
        "person could not use it, create a new link on the Team page."
    )


class HandoverFactorStaleError(HandoverError):
    message = _(
        "Your last authenticator code is more than five minutes old. Nothing was shown. Enter a new one."
    )


@dataclass(frozen=True)
class Handover:
    """The half of this person: the link or the start code. It can be viewed once, while `shown_at` is None."""

    link: SetupLink
    is_link: bool
    shown_at: datetime | None


@dataclass(frozen=True)
class HandoverProgress:
    """What became of a link and its start code. `passed_on_at` is of the reader's own half."""

    person: User
    part: str
    """The reader's half: "link", "code", or empty for everybody else."""
    passed_on_at: datetime | None = None
    is_mailed: bool = False
    has_signed_in: bool = False
    is_open: bool = False
    """Whether the reader can still view the half, or have the link sent."""


def prepare_handover(user: User, *, operation: UUID, link_for: User, code_for: User) -> SetupLink:
    """A new link for this person, to be shown later; it ends the person's earlier one.

    Within a change that has its own audit entry. Valid for `SETUP_LINK_LIFETIME` from now, whenever it is shown.
    """
    now = clock.now()
    values: dict[str, Any] = {
        "digest": SetupLink.digests(SetupLink.generate())[0],
        "code_digest": SetupLink.code_digests(SetupLink.generate_code())[0],
        "created_at": now,
        "expires_at": now + SETUP_LINK_LIFETIME,
        "operation": operation,
        "link_for": link_for,
        "link_shown_at": None,
        "code_for": code_for,
        "code_shown_at": None,
    }
    new = SetupLink(user=user, **values)
    new.make_seal()
    link, _created = SetupLink.objects.update_or_create(user=user, defaults={**values, "seal": new.seal})
    return link


def handover_of(operation: UUID, person: User) -> Handover | None:
    """The half that this person may see or has seen; None for everybody else, and once the link has ended."""
    links = SetupLink.objects.select_related("user").filter(expires_at__gt=clock.now(), user__is_active=True)
    link = links.filter(operation=operation).first()
    if link is None or person.pk not in {link.link_for_id, link.code_for_id}:
        return None
    if not link.is_genuine:
        return None
    is_link = person.pk == link.link_for_id
    return Handover(link, is_link, link.link_shown_at if is_link else link.code_shown_at)


def links_to_pass_on() -> QuerySet[SetupLink]:
    """The valid links of which the link itself or the start code was not passed on yet."""
    unseen = Q(link_shown_at=None) | Q(code_shown_at=None)
    valid = SetupLink.objects.filter(expires_at__gt=Now(), user__is_active=True)
    return valid.filter(unseen, operation__isnull=False)


def halves_to_pass_on(person: User) -> list[Handover]:
    """The oldest `MOST_TOGETHER` links and start codes that this person has not passed on yet. One query."""
    own = Q(link_for=person, link_shown_at=None) | Q(code_for=person, code_shown_at=None)
    found = links_to_pass_on().filter(own).select_related("user").order_by("created_at", "pk")
    return [Handover(link, link.link_for_id == person.pk, None) for link in found[:MOST_TOGETHER]]


def open_halves(person: User, part: str) -> QuerySet[SetupLink]:
    """The valid links of which this person has not passed on this part yet: the "link", or the "code"."""
    unseen = {"link_for": person, "link_shown_at": None}
    return links_to_pass_on().filter(
        **unseen if part == "link" else {"code_for": person, "code_shown_at": None}
    )


@dataclass(frozen=True)
class PassedOn:
    """When a person viewed a half, or had the link mailed."""

    at: datetime
    is_mailed: bool


def halves_passed_on(person: User, operations: Collection[UUID], *, since: datetime) -> dict[UUID, PassedOn]:
    """By operation: when this person passed on the own half of its link, by the audit log since then. One query."""
    actions = [Action.SETUP_LINK_MAILED, Action.SETUP_LINK_SHOWN, Action.START_CODE_SHOWN]
    ids = {str(one): one for one in operations}
    entries = Entry.objects.filter(action__in=actions, actor=person, at__gte=since)
    found = entries.filter(detail__operation__in=list(ids))
    return {
        ids[entry.detail["operation"]]: PassedOn(entry.at, entry.action == Action.SETUP_LINK_MAILED)
        for entry in reversed(found)
    }


def handover_progress(
    operation: UUID, *, since: datetime, person: User, reader: User, part: str
) -> HandoverProgress:
    """What became of the link of an operation that was applied at `since`. At most two queries.

    `person` is whom the link is for, `part` the half of the `reader`. A link is deleted once it was used, so what was
    done with it before is read from the audit log.
    """
    has_signed_in = person.last_login is not None and person.last_login > since
    if has_signed_in or not part:
        return HandoverProgress(person, part, has_signed_in=has_signed_in)
    handed_over = [Action.SETUP_LINK_MAILED, Action.SETUP_LINK_SHOWN]
    actions = handed_over if part == "link" else [Action.START_CODE_SHOWN]
    target = {"target_type": person._meta.label_lower, "target_id": str(person.pk)}
    entries = Entry.objects.filter(action__in=actions, actor=reader, at__gte=since, **target)
    own = [one for one in entries if one.detail_of("operation") in (None, str(operation))]
    found = None if own else handover_of(operation, reader)
    return HandoverProgress(
        person,
        part,
        passed_on_at=own[0].at if own else None,
        is_mailed=bool(own) and own[0].action == Action.SETUP_LINK_MAILED,
        is_open=found is not None and found.shown_at is None,
    )


@transaction.atomic(durable=True)
def show_handover(
    operation: UUID, *, actor: User, second_factor_at: datetime | None, by_mail: bool = False
) -> str:
    """The token of the link, or the start code, made now and shown only now; the database keeps its hash.

    With `by_mail` it is the link, which the caller mails to the person; a start code never is. Recorded as mailed.
    Raises NothingToHandOverError, HandoverFactorStaleError.
    """
    SetupLink.objects.select_for_update().filter(operation=operation).first()  # the seal covers both halves
    found = handover_of(operation, actor)
    if found is None or found.shown_at is not None or (by_mail and not found.is_link):
        raise NothingToHandOverError
    if not is_second_factor_fresh(second_factor_at):
        raise HandoverFactorStaleError
    shown, changes = _new_half(is_link=found.is_link)
    if not _is_stored(found.link, changes):
        raise NothingToHandOverError
    link_action = Action.SETUP_LINK_MAILED if by_mail else Action.SETUP_LINK_SHOWN
    action = link_action if found.is_link else Action.START_CODE_SHOWN
    record(action, actor=actor, target=found.link.user, operation=str(operation))
    return shown


@transaction.atomic(durable=True)
def record_shown_instead(person: User, *, actor: User, operation: UUID | None = None) -> None:
    """The mail with the link could not be sent, so the page shows the link to this person."""
    detail = {} if operation is None else {"operation": str(operation)}
    record(Action.SETUP_LINK_SHOWN, actor=actor, target=person, **detail)


def _is_stored(link: SetupLink, changes: dict[str, object]) -> bool:
    """Whether the link was as it had been read, and now has these changes and a seal over them."""
    before = SetupLink.objects.filter(pk=link.pk, seal=link.seal)
    for name, value in changes.items():
        setattr(link, name, value)
    link.make_seal()
    return before.update(**changes, seal=link.seal) == 1


def _new_half(*, is_link: bool) -> tuple[str, dict[str, object]]:
    now = clock.now()
    if is_link:
        token = SetupLink.generate()
        return token, {"digest": SetupLink.digests(token)[0], "link_shown_at": now}
    code = SetupLink.generate_code()
    return code, {"code_digest": SetupLink.code_digests(code)[0], "code_shown_at": now}
