"""The table of all safeguards that are removed in turn."""

from tests.sabotage.accounts import ACCOUNTS
from tests.sabotage.approvals import APPROVALS
from tests.sabotage.batches import BATCHES
from tests.sabotage.database import DATABASE
from tests.sabotage.forgery import FORGERY
from tests.sabotage.hardening import HARDENING
from tests.sabotage.one_person import ONE_PERSON
from tests.sabotage.policies import POLICIES
from tests.sabotage.proof import PROOF
from tests.sabotage.recipients import RECIPIENTS
from tests.sabotage.record import RECORD
from tests.sabotage.restored import RESTORED
from tests.sabotage.sending import SENDING
from tests.sabotage.team import TEAM
from tests.sabotage.transport import TRANSPORT
from tests.sabotage.webhooks import WEBHOOKS
from tests.sabotage.workshop import Safeguard

SAFEGUARDS: tuple[Safeguard, ...] = (
    *APPROVALS,
    *POLICIES,
    *ONE_PERSON,
    *RECIPIENTS,
    *ACCOUNTS,
    *TEAM,
    *BATCHES,
    *SENDING,
    *FORGERY,
    *RESTORED,
    *PROOF,
    *RECORD,
    *DATABASE,
    *TRANSPORT,
    *WEBHOOKS,
    *HARDENING,
)
