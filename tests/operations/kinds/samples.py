"""One valid payload of each kind, for the rules that hold for all of them. A new kind adds a line here."""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

from backoffice.operations.kinds.access_review import AccessReviewPayload
from backoffice.operations.kinds.api_keys.base import KeyEndPayload
from backoffice.operations.kinds.api_keys.create import ApiKeyCreatePayload
from backoffice.operations.kinds.api_keys.switch import ApiKeySwitchPayload
from backoffice.operations.kinds.approval_policy import ApprovalPolicyPayload
from backoffice.operations.kinds.bank_account import BankAccountPayload
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.batch import BatchPayload, CurrencyTotal
from backoffice.operations.kinds.callback_url import CallbackUrlPayload
from backoffice.operations.kinds.conversion import ConversionPayload
from backoffice.operations.kinds.delegation import DelegationPayload
from backoffice.operations.kinds.otp_secret import OtpSecretPayload
from backoffice.operations.kinds.payment import PaymentPayload
from backoffice.operations.kinds.recipient import RecipientChange, RecipientDetails, RecipientPayload
from backoffice.operations.kinds.recipient_import import RecipientImportPayload
from backoffice.operations.kinds.resolution.case import (
    ResolutionChoice,
    ResolutionPayload,
    TransactionEvidence,
)
from backoffice.operations.kinds.resume import ResumePayload
from backoffice.operations.kinds.staff_change import StaffChange, StaffChangePayload
from backoffice.operations.kinds.transfer import TransferPayload
from backoffice.operations.kinds.wallet_transfer import WalletTransferPayload
from backoffice.policies.document import Conditions, Level, PolicyDocument, Rule
from backoffice.recipients.models import RecipientType
from tests import factories

_ENDS = KeyEndPayload(
    short_hash="0a1b2c3d",
    name="till",
    scope="Not reported by the provider",
    expires="",
    is_known_here=False,
    knows_own_key=True,
)

SAMPLES: dict[str, Payload] = {
    "withdrawal": factories.payload(),
    "conversion": ConversionPayload(
        from_currency="NGN", to_currency="USD", amount=Decimal("1540000.00"), known_rate=Decimal("0.00065")
    ),
    "transfer": TransferPayload(
        receiver_username="ngozi.eze", currency="NGN", amount=Decimal("60000.00"), memo="week 46"
    ),
    "wallet_transfer": WalletTransferPayload(
        network="TRC20",
        currency="USDT",
        amount=Decimal("150.250000"),
        address="TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
        wallet_type="",
        memo="invoice 88",
    ),
    "payment": PaymentPayload(
        business_id="b5f1c2d94a7e4f0ba1c83d56",
        reference="CS-7D0C1E2F3A4B5C6D7E8F",
        incoming_currency="USDT",
        incoming_amount=Decimal("100.000000"),
        outgoing_currency="NGN",
        outgoing_amount=None,
        customer_email="customer@example.com",
        rate_key="",
        payment_type="bank",
        service_username="",
        country="NG",
        bank_code="044",
        bank="Access Bank",
        account_number="0123456789",
        account_name="ADA CHIDINMA OBI",
        typed_name="Ada Chidinma Obi",
        name_reason="",
    ),
    "batch": BatchPayload(
        file_name="payroll.csv",
        row_kind="withdrawal",
        count=2,
        totals=(
            CurrencyTotal(currency="NGN", count=2, amount=Decimal("350000.00"), largest=Decimal("250000.00")),
        ),
        rows_digest="5f2a" * 16,
        new_recipients=1,
        names_differ=0,
        repeated=0,
        retry_of="",
    ),
    "api_key_create": ApiKeyCreatePayload(
        method="named",
        key_name="till",
        scope="G",
        scope_text="Read only (GetOnly)",
        expires_in=90,
        expires_unit="days",
        keys_before=("3f2a91bc",),
    ),
    "api_key_switch": ApiKeySwitchPayload(
        target="made:2b0c2f1e-6f0e-4f7e-9c55-0d5a5f4b8f10",
        key_name="till",
        short_hash="0a1b2c3d",
        scope="Everything (Master)",
        replaced_name="first key",
        replaced_hash="3f2a91bc",
    ),
    "api_key_invalidate": _ENDS,
    "api_key_delete": _ENDS,
    "bank_account": BankAccountPayload(
        account_name="Lagos shop", currency="NGN", preferred_name="Obi Traders Lagos", known_numbers=()
    ),
    "callback_url": CallbackUrlPayload(
        url="https://pay.example.com/webhooks", previous="https://hooks.example.com/before"
    ),
    "otp_secret": OtpSecretPayload(
        fingerprint="0A1B2C3D4E5F6071", algorithm="SHA1", digits=6, period=30, replaces="7F6E5D4C3B2A1908"
    ),
    "resolution": ResolutionPayload(
        operation=UUID("6a1d3b52-4c1e-4f0b-9a53-7d0f8c2e9b11"),
        reference="W-7Q2K9F",
        sentence="Withdraw NGN 250,000.00 to ADA CHIDINMA OBI, Access Bank ••6789",
        attempt=1,
        sent_at=datetime(2026, 11, 20, 9, 42, tzinfo=UTC),
        choice=ResolutionChoice.EXECUTED,
        transaction=TransactionEvidence(
            transaction_id="TX-1",
            type="withdrawal",
            status="fulfilled",
            currency="NGN",
            amount=Decimal("250000.00"),
            fee=None,
            counterparty="",
            previous_balance=Decimal("5000000.00"),
            created_at=datetime(2026, 11, 20, 9, 43, tzinfo=UTC),
            mismatched=("Amount",),
        ),
        reason="The service's support confirmed it by telephone",
    ),
    "staff_change": StaffChangePayload(
        change=StaffChange.INVITE,
        full_name="Ada Obi",
        email="ada.obi@countersign.example",
        roles=("Auditor",),
        reason="Joins on Monday",
    ),
    "approval_policy": ApprovalPolicyPayload(
        replaces=0,
        document=PolicyDocument(
            rules=(Rule(when=Conditions(kinds=("withdrawal",)), levels=(Level(needed=1),)),)
        ),
        added=1,
        changed=0,
        removed=0,
    ),
    "recipient": RecipientPayload(
        change=RecipientChange.ADD,
        type=RecipientType.USER,
        key="user:ngozi.eze",
        account="ngozi.eze",
        details=RecipientDetails(name="Ngozi Eze", alias="Market", notes="Since May", currency="NGN"),
        reason="The contract names it",
    ),
    "delegation": DelegationPayload(
        person=1,
        person_name="Chidi Eze",
        stand_in=2,
        stand_in_name="Ada Obi",
        group=1,
        group_name="Treasury",
        first_day=date(2026, 12, 1),
        last_day=date(2026, 12, 7),
        time_zone="Africa/Lagos",
        reason="Annual leave",
    ),
    "recipient_import": RecipientImportPayload(
        file_name="suppliers.csv",
        count=2,
        recipients_digest="5f2a" * 16,
        bank_accounts=1,
        addresses=0,
        users=1,
        similar_accounts=1,
        same_names=0,
        names_differ=0,
        reason="The list of suppliers, signed by Finance",
    ),
    "access_review": AccessReviewPayload(
        digest="5f2a" * 16, people=6, rights=9, findings="Two rights were taken away"
    ),
    "resume": ResumePayload(
        pause=1,
        paused_by="Tunde Bello",
        paused_at=datetime(2026, 11, 20, 9, 42, tzinfo=UTC),
        pause_reason="A key has leaked",
        reason="The key is ended",
    ),
}
