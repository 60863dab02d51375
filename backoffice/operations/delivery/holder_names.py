"""The name of a bank account's holder, resolved again before a payment to a recipient of the register is claimed.

The name that was approved may belong to somebody else by now. A name that differs ends the release: nothing is sent
until a person has seen both names and confirmed the account, as with look-alikes (`delivery.look_alikes`). The name is
read at most once a day for each account, before the claim, with no transaction open.
"""

from django.conf import settings
from django.db import transaction

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.canonical import storable_text
from backoffice.core import clock
from backoffice.ledger import accounts as ledger
from backoffice.operations.delivery.release import withdraw_release
from backoffice.operations.errors import HolderChangedError, RecipientAlteredError
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.form_fields import RecipientAccountPayload, is_same_holder
from backoffice.operations.models.holds import HolderChange
from backoffice.operations.models.operations import Release
from backoffice.recipients.models import RecipientState
from backoffice.recipients.register import version_in_effect

_LONGEST_NAME = 200


class FoundHolderError(HolderChangedError):
    """The bank names another holder than was approved, and the release does not confirm this name."""

    def __init__(self, approved: str, current: str) -> None:
        super().__init__(approved, current)
        self.approved, self.current = approved, current


def check_unchanged(release: Release, payload: Payload) -> dict[str, str]:
    """Why the name could not be read, so that it is sent under the approved one; empty if the bank confirms it.

    Also empty for what pays no bank account of an approved recipient. Raises FoundHolderError,
    RecipientAlteredError for a version that two people did not agree on, and GatewayError if the name cannot be read
    and `SEND_WITHOUT_NAME_CHECK` forbids to send without it.
    """
    if not isinstance(payload, RecipientAccountPayload) or not _is_registered(payload):
        return {}
    read = ledger.holder_if_readable if settings.SEND_WITHOUT_NAME_CHECK else ledger.holder_today
    holder = read(payload.account_number, payload.bank_code)
    if holder.cause:
        return dict(holder.cause)
    name = storable_text(holder.name)[:_LONGEST_NAME]
    is_approved = is_same_holder(payload.account_name, name)
    if not is_approved and name not in (release.holder_names or ()):
        raise FoundHolderError(payload.account_name, name)
    return {}


def _is_registered(payload: RecipientAccountPayload) -> bool:
    if not payload.account_number:
        return False
    version = version_in_effect(payload.recipient.key)
    if version is not None and version.is_altered:
        raise RecipientAlteredError
    return version is not None and version.state == RecipientState.APPROVED


@transaction.atomic
def stop_release(release: Release, found: FoundHolderError) -> None:
    """End this release and keep both names, so that the operation's page shows them; notify people."""
    if not withdraw_release(release, found):
        return
    HolderChange.objects.bulk_create(
        [
            HolderChange(
                operation=release.operation,
                approved_name=found.approved[:_LONGEST_NAME],
                name=found.current,
                found_at=clock.now(),
            )
        ],
        ignore_conflicts=True,
    )
    audit.record(
        Action.OPERATION_HELD,
        actor=None,
        target=release.operation,
        approved_name=found.approved,
        name_at_bank=found.current,
    )
