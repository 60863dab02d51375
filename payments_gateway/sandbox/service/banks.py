"""POST /bank/resolve."""

import hashlib

from django.http import HttpRequest, HttpResponse

from payments_gateway.reference import BANKS
from payments_gateway.sandbox.books.names import holder_of
from payments_gateway.sandbox.merchant.accounts import own_name_of
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.wire.answers import answer
from payments_gateway.sandbox.wire.bodies import Body, read_body
from payments_gateway.sandbox.wire.errors import RefusedError
from payments_gateway.sandbox.wire.fields import AccountNumber, BankCode

_LISTED_SINCE = "2021-03-01T09:00:00.000Z"


class ResolveBody(Body):
    """Body of POST /bank/resolve."""

    account_number: AccountNumber
    bank_code: BankCode


@operation("POST", credentials=False)
def resolve(request: HttpRequest) -> HttpResponse:
    """Who holds the account; 404 when it does not exist."""
    body = read_body(request, ResolveBody)
    number, bank_code = body.account_number, body.bank_code
    name = own_name_of(number, bank_code) or holder_of(number, bank_code)
    if name is None:
        raise RefusedError(404, f"there is no account {number} at {BANKS[bank_code]}")
    return answer({"data": _resolution(number, bank_code, name)})


def _resolution(account_number: str, bank_code: str, name: str) -> dict[str, str]:
    digest = hashlib.sha256(f"resolution {bank_code}/{account_number}".encode()).hexdigest()
    return {
        "responsemessage": "SUCCESS",
        "responsecode": "00",
        "uniquereference": digest[:24],
        "internalreference": digest[24:48],
        "accountname": name,
        "accountnumber": account_number,
        "phonenumber": "",
        "currency": "NGN",
        "country": "NG",
        "code": bank_code,
        "name": BANKS[bank_code],
        "is_visible": "1",
        "is_trashed": "0",
        "deleted_at": "",
        "created_at": _LISTED_SINCE,
        "updated_at": _LISTED_SINCE,
    }
