"""How what is under way will end: decided by its destination, or by the option `fail_next`."""

from datetime import timedelta

from payments_gateway.sandbox.models import Simulation

A_DAY = timedelta(days=1)
_FAILING_SUFFIX = "99"
_SLOW_SUFFIX = "88"
_NOBODY = "nobody"


def will_fail(destination: str) -> bool:
    """Whether what goes there fails when it settles; inside the caller's transaction, as it counts `fail_next` down."""
    simulation = Simulation.objects.get()
    if simulation.fail_next:
        simulation.fail_next -= 1
        simulation.save(update_fields=["fail_next"])
        return True
    return destination.endswith(_FAILING_SUFFIX)


def takes_a_day(destination: str) -> bool:
    """Whether what goes there stays under way for a day, whatever `settle_after` says."""
    return destination.endswith(_SLOW_SUFFIX)


def is_user(username: str) -> bool:
    """Whether the service has a user of this name."""
    return not username.startswith(_NOBODY)
