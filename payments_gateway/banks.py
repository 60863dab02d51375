"""Banks: whose account it is."""

from functools import partial

from payments_gateway._answers import Reply, first_text
from payments_gateway._transport import Transport
from payments_gateway.dialect import Dialect
from payments_gateway.door import Door
from payments_gateway.schemas.banks import AccountHolder


class Banks:
    """The operations under /bank."""

    def __init__(self, transport: Transport, dialect: Dialect) -> None:
        self._transport = transport
        self._dialect = dialect

    def resolve(self, *, account_number: str, bank_code: str) -> AccountHolder:
        """Return who holds a bank account (POST /bank/resolve, without credentials).

        Changes nothing although it is a POST, so it is tried again where that may help. Raises RejectedError when the
        service knows no such account, ReadFailedError otherwise, also when no holder is named.
        Specification: Endpoints, POST /bank/resolve; Bank account resolution result.
        """
        body = {"accountNumber": account_number, "bankCode": bank_code}
        into = partial(_holder, self._dialect)
        return self._transport.read("POST", "/bank/resolve", body=body, door=Door.V2_OPEN, into=into)


def _holder(dialect: Dialect, reply: Reply) -> AccountHolder:
    bank = {
        "bank_code": first_text(reply.data, dialect.bank_code_paths),
        "bank_name": first_text(reply.data, dialect.bank_name_paths),
    }
    return AccountHolder.model_validate(reply.data | bank)
