"""A deployment's TOML file: what it may say, and that a wrong word in it is named before anything is sent."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from backoffice.core.gateway import check_configuration
from payments_gateway import ProviderProfile

POINTS = dict(ProviderProfile())
TEXTS = [name for name, value in POINTS.items() if isinstance(value, str)]
LISTS = [name for name, value in POINTS.items() if isinstance(value, tuple)]
TABLES = [name for name, value in POINTS.items() if not isinstance(value, (str, tuple, bool, int))]

WRONG: list[str] = [
    *(f"{name} = {value}" for name in TEXTS for value in ("1", "true", "[]", '["a"]', "{}", '""', '" a"')),
    *(f"{name} = {value}" for name in LISTS for value in ('"a"', "1", "{}", "[1.5]", "[{}]", "[1979-05-27]")),
    *(f"{name} = {value}" for name in TABLES for value in ('"a"', "1", "[]", "{ a = 1 }", "{ a = [] }")),
    *(f"{name} = 1979-05-27T07:32:00Z" for name in POINTS),
    *(f"{name} = nan" for name in POINTS),
    *(f'{name} = "no path"' for name in TEXTS if name.endswith("_path")),
    *(f'{name} = "/user/keys?all=1"' for name in TEXTS if name.endswith("_path")),
    *(
        f"{name} = []"
        for name in ("success_statuses", "balances_members", "withdrawal_id_paths", "bank_code_paths")
    ),
    *(f"{name} = []" for name in ("message_members", "created_key_paths", "wallet_address_members")),
    *(f"{name} = [[]]" for name in ("withdrawal_id_paths", "bank_code_paths", "created_key_paths")),
    'key_list_paths = [[""]]',
    "key_list_paths = []",
    'withdrawal_id_paths = ["transactionId"]',
    'withdrawal_id_paths = [["a", 1]]',
    "first_page = -1",
    'first_page = "1"',
    "first_page = 1.5",
    "first_page = true",
    "otp_required = 1",
    'otp_required = "yes"',
    'otp_type = "sms"',
    'key_base = "v3"',
    'capabilities = ["horoscope"]',
    "success_statuses = [404]",
    "success_statuses = [true]",
    'success_statuses = ["200"]',
    "retry_statuses = [200]",
    "uncertain_statuses = { x = 'why' }",
    "uncertain_statuses = { 200 = 'why' }",
    "uncertain_statuses = { 409 = 5 }",
    "rejection_statuses = { 400 = 'no_such_kind' }",
    "rejection_statuses = { 500 = 'not_found' }",
    "rejection_patterns = { no_such_kind = 'x' }",
    "rejection_patterns = { credentials = '(' }",
    "durations = { 'two days' = '2d' }",
    "durations = { 'one day' = '' }",
    "statuses = { done = 'finished' }",
    "statuses = { Done = 'fulfilled' }",
    'transaction_page_query = "limit"',
    'wallet_network_query = "currency"',
    'account_page_query = "perPage"',
    'otp_type_member = "amount"',
    'transfer_currency_member = "amount"',
    'transfer_currency_member = "otpType"',
    'service_username_member = "bank"',
    'key_otp_member = "scope"',
    'delivery_data_member = "event"',
    'delivery_signature_member = "data"',
    "event_kinds = { Deposit = 'deposit' }",
    "event_kinds = { chargeback = 'chargeback' }",
    'extra_payment_path = "/payment"',
    'extra_transaction_path = "/transaction/{a}/{b}"',
    'extra_banks_path = "/bank/{country}"',
    'key_list_path = "/user/../keys"',
]


@pytest.mark.parametrize("line", WRONG)
def test_an_invalid_override_is_refused_by_name(line: str) -> None:
    name = line.partition(" ")[0]
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        ProviderProfile().overridden(tomllib.loads(line))


@pytest.mark.parametrize(
    "line", ["no_such_point = 1", "open_points = 1", "__doc__ = 'x'", "Balance_members = 1"]
)
def test_an_unknown_field_is_refused_by_name(line: str) -> None:
    with pytest.raises(ValueError, match=f"No such point in the profile: {line.partition(' ')[0]}"):
        ProviderProfile().overridden(tomllib.loads(line))


@pytest.mark.parametrize("line", [*WRONG[:20], "no_such_point = 1", "half a line", 'otp_type = "sms"'])
def test_an_invalid_file_prevents_startup(settings: Settings, tmp_path: Path, line: str) -> None:
    file = tmp_path / "profile.toml"
    file.write_text(line)
    settings.GATEWAY_PROFILE = str(file)
    with pytest.raises(ValueError, match=line.partition(" ")[0] if "=" in line else "line 1"):
        check_configuration()


def test_the_fields_are_in_wire_order() -> None:
    names = [point.name for point in ProviderProfile().open_points()]
    first_of_each = ["balance_currency_query", "capabilities", "key_base", "success_statuses"]
    first_of_each += ["message_members", "delivery_event_member"]
    assert sorted(first_of_each, key=names.index) == first_of_each
    assert (names[0], names[-1]) == ("balance_currency_query", "delivery_resolution_members")


def as_written(value: Any) -> Any:
    """A value as a file would hold it."""
    if isinstance(value, tuple):
        return [as_written(item) for item in value]
    return value if isinstance(value, (str, bool, int)) else {str(key): item for key, item in value.items()}


def test_every_default_can_be_written_as_an_override() -> None:
    assert (
        ProviderProfile().overridden({name: as_written(value) for name, value in POINTS.items()})
        == ProviderProfile()
    )


def test_profile_tables_are_immutable() -> None:
    profile = ProviderProfile().overridden({"statuses": {"done": "fulfilled"}})
    for table in (profile.statuses, ProviderProfile().statuses):
        with pytest.raises(TypeError):
            table["failed"] = "fulfilled"  # type: ignore[index]
    assert (profile.status("DONE"), profile.status("fullfiled")) == ("fulfilled", "fullfiled")
