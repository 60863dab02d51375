"""Send the queue of one balance: its released operations, one after the other, by one process at a time.

`send.send_operation` alone keeps an operation from being sent twice. The lease only keeps other processes from reading
the provider for the same operation, and one process reads only what is new in the provider's list since the operation
before.
"""

import time
from datetime import timedelta
from uuid import UUID

from backoffice.core import background, clock
from backoffice.core.leases import Lease, LeaseLostError, acquire_lease
from backoffice.core.web.request_context import call_context
from backoffice.operations.delivery import balance_queue
from backoffice.operations.delivery.release import SEND_TASK
from backoffice.operations.delivery.send import SendingRun, send_operation
from backoffice.operations.models.operations import Release

# If the process dies, another one continues after this time, so it is short. One that is slower loses nothing: while
# its request is under way, others find the balance busy.
LEASE_DURATION = timedelta(seconds=10)
RUN_SECONDS = 60.0  # then another message continues, so that a worker can be stopped in between


def send_in_turn(operation_id: UUID) -> None:
    """Send this released operation or, if it debits a balance, the queue of that balance from its head.

    Does nothing if another process sends that queue. Ends at the first operation that cannot be sent now.
    """
    release = Release.objects.filter(pk=operation_id).only("balance").first()
    if release is None:
        return
    if release.balance is None:
        send_operation(operation_id)
    else:
        _send_queue(release.balance)


def _send_queue(balance: str) -> None:
    lease = acquire_lease(balance_queue.sending_lease(balance), LEASE_DURATION)
    if lease is None:
        return
    with lease:
        blocked = _send_heads(balance, lease)
    # Also what was released while the lease was held, for which no message was sent.
    head = balance_queue.queue_head(balance, clock.recent())
    if head is not None and head != blocked:
        background.enqueue_on_commit(SEND_TASK, head)


def _send_heads(balance: str, lease: Lease) -> UUID | None:
    """Send until the queue is empty or time is up. Returns the head if it cannot be sent now."""
    run, until = SendingRun(), time.monotonic() + RUN_SECONDS
    heads = balance_queue.first_in_queue(balance, clock.recent(), 2)
    while heads:
        head, run.following = heads[0].operation, heads[1] if len(heads) > 1 else None
        with call_context(request_id=f"send-{str(head)[:8]}"):
            is_claimed = send_operation(head, run)
        if not is_claimed:
            return head
        run.is_in_turn = True  # the next one: this process has sent what was before it
        if time.monotonic() > until or background.stop_requested.is_set():
            break
        heads = balance_queue.first_in_queue(balance, clock.recent(), 2)
        try:
            lease.renew()
        except LeaseLostError:  # another process sends this queue now
            break
    return None
