"""What the history does besides withdrawals: the same operations each time, each really sent."""

from collections.abc import Iterator
from decimal import Decimal

from django.conf import settings
from django.urls import reverse

from backoffice.demo.history import History
from backoffice.ledger import selectors as ledger
from backoffice.ledger.business import business_id
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.callback_url import CallbackUrlPayload
from backoffice.operations.kinds.conversion import ConversionPayload
from backoffice.operations.kinds.payment_form import PaymentPayload
from backoffice.operations.kinds.transfer import TransferPayload
from backoffice.operations.kinds.wallet_transfer import WalletTransferPayload

_TRON = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
_ELSEWHERE = "https://hooks.example.com/countersign/"  # somebody has to reject it
_EVM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def make_other_kinds(history: History) -> None:
    """Send some of each kind that moves money, two payments too, leave a few waiting, and lose the answer of three."""
    for kind, payload in _sent(history):
        history.send(history.propose(kind, payload))
    for kind, payload in _waiting(history):
        history.propose(kind, payload)
    elsewhere = CallbackUrlPayload(url=_ELSEWHERE, previous=ledger.callback_url())
    history.propose("callback_url", elsewhere, maker="Zainab")
    # What leaves the dollars next waits for the first of these; a payment debits no balance.
    history.be_unknown(history.prepare(currency="USD", amount="1250.00"))
    history.need_review(history.propose("payment", _payment(history, "640.00", "uche.obi@customers.example")))
    history.be_lost_while_sending(
        history.propose("payment", _payment(history, "90.00", "sade.cole@customers.example"))
    )
    # At last, since nobody listens there before the web process runs.
    ours = f"{settings.PUBLIC_URL}{reverse('webhooks:receive', args=[settings.WEBHOOK_SECRET])}"
    payload = CallbackUrlPayload(url=ours, previous=ledger.callback_url())
    history.send(history.propose("callback_url", payload, maker="Zainab"))


def _sent(history: History) -> Iterator[tuple[str, Payload]]:
    yield "conversion", _conversion("USD", "NGN", "2500.00")
    yield "conversion", _conversion("NGN", "USD", "1200000.00")
    yield "transfer", _transfer("kola.traders", "NGN", "385000.00", "Crates, November")
    yield "transfer", _transfer("lekki.freight", "USD", "740.50", "Container 118")
    yield "transfer", _transfer("nobody.knows", "NGN", "15000.00", "Deposit back")
    yield "wallet_transfer", _crypto("TRC20", _TRON, "420.00")
    yield "payment", _payment(history, "250.00", "ada.obi@customers.example")
    yield "payment", _payment(history, "75.00", "musa.bello@customers.example")


def _waiting(history: History) -> Iterator[tuple[str, Payload]]:
    yield "transfer", _transfer("kola.traders", "NGN", "96500.00", "Crates, December")
    yield "wallet_transfer", _crypto("ERC20", _EVM, "310.00")
    yield "payment", _payment(history, "120.00", "ife.ade@customers.example")


def _conversion(given: str, received: str, amount: str) -> ConversionPayload:
    rate = ledger.last_rate(given, received)
    return ConversionPayload(
        from_currency=given,
        to_currency=received,
        amount=Decimal(amount),
        known_rate=rate.number if rate else None,
    )


def _transfer(username: str, currency: str, amount: str, memo: str) -> TransferPayload:
    return TransferPayload(receiver_username=username, currency=currency, amount=Decimal(amount), memo=memo)


def _crypto(network: str, address: str, amount: str) -> WalletTransferPayload:
    return WalletTransferPayload(
        network=network, currency="USDT", amount=Decimal(amount), address=address, wallet_type="", memo=""
    )


def _payment(history: History, amount: str, customer: str) -> PaymentPayload:
    return PaymentPayload(
        business_id=business_id(),
        reference=f"CS-{history.random.getrandbits(80):020X}",
        incoming_currency="USDT",
        incoming_amount=Decimal(amount),
        outgoing_currency="NGN",
        outgoing_amount=None,
        customer_email=customer,
        rate_key="",
        payment_type="bank",
        service_username="",
        country="NG",
        **history.account(),
    )
