"""Every safeguard that is taken out in turn."""

from tests.sabotage.of_the_database import IN_THE_DATABASE
from tests.sabotage.of_the_proof import IN_THE_PROOF
from tests.sabotage.of_the_record import ON_RECORD
from tests.sabotage.of_the_services import IN_THE_SERVICES
from tests.sabotage.of_the_wire import ON_THE_WIRE
from tests.sabotage.of_two_people import OF_TWO_PEOPLE
from tests.sabotage.of_webhooks import OF_WEBHOOKS
from tests.sabotage.workshop import Safeguard

SAFEGUARDS: tuple[Safeguard, ...] = (
    *OF_TWO_PEOPLE,
    *IN_THE_SERVICES,
    *IN_THE_PROOF,
    *ON_RECORD,
    *IN_THE_DATABASE,
    *ON_THE_WIRE,
    *OF_WEBHOOKS,
)
