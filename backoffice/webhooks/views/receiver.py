"""The address at which the service delivers. Open to everybody who knows it, so it trusts nobody."""

import socket
from contextlib import suppress
from functools import partial
from http import HTTPStatus

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from gunicorn.http.errors import ParseException

from backoffice.webhooks import configuration, services
from backoffice.webhooks.slow_senders import hurried
from backoffice.webhooks.states import DeliveryVerification

MOST_BYTES = 64 * 1024


@csrf_exempt
@login_not_required
def receive(request: HttpRequest, secret: str) -> HttpResponse:
    """Take one delivery: 200 with nothing else once it is kept, also for a repeat.

    What the service did not sign is kept for people and answered with 400: a sender whose new key we do not have yet
    tries again, and counts when we have it. Whatever is wrong with the address or the method looks like no address.
    """
    if request.method != "POST" or not configuration.is_secret(secret):
        raise Http404
    declared = _declared(request)
    if declared > MOST_BYTES:
        return HttpResponse(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    body = _body(request)
    if body is None or len(body) < declared:
        return HttpResponse(status=HTTPStatus.BAD_REQUEST)  # cut off on its way, so it is no delivery
    if len(body) > MOST_BYTES:
        return HttpResponse(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    verdict = services.receive_delivery(body)
    return HttpResponse(
        status=HTTPStatus.OK if verdict == DeliveryVerification.VALID else HTTPStatus.BAD_REQUEST
    )


def _declared(request: HttpRequest) -> int:
    """How long the body is by its header; 0 for a header that says nothing, as Django takes it."""
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def _body(request: HttpRequest) -> bytes | None:
    """What comes, up to one byte more than is taken; None or less than was declared if the sender is gone or too slow.

    What comes in chunks is read from the server itself, because Django takes it for empty.
    """
    stream = request.META["wsgi.input"] if "HTTP_TRANSFER_ENCODING" in request.META else request
    with hurried(partial(_hang_up, request)):
        try:
            body: bytes = stream.read(MOST_BYTES + 1)
        except (OSError, ParseException):  # the second: chunks that are badly cut
            return None
    return body


def _hang_up(request: HttpRequest) -> None:
    """End the connection. Servers of tests have none to give."""
    connection: socket.socket | None = request.META.get("gunicorn.socket")
    if connection is not None:
        with suppress(OSError):  # it has ended by itself
            connection.shutdown(socket.SHUT_RDWR)
