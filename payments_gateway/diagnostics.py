"""Call every read of the provider, compare each response with its schema, and report the results.

Changes nothing. Of a schema in openapi.yaml, members, types and closed enumerations are compared; limits and
patterns are not. Where the named profiles differ, a result says which of them the response fits. A difference
names the path and kind of a value, never its content, so it can be shown for any response.
"""

import enum
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple, TypeVar

from payments_gateway.client import PaymentsGateway
from payments_gateway.config import GatewayConfig
from payments_gateway.errors import CredentialsError, GatewayError, NotSentError, RejectedError
from payments_gateway.operations import OPERATIONS, ApiOperation, CallEffect, Endpoint, api_description
from payments_gateway.profile.model import PROFILES, ProfileName, ProviderProfile
from payments_gateway.resources.extras import EXTRA_OPERATIONS
from payments_gateway.responses import TYPE_NAMES, ParsedResponse, is_of_type, type_name
from payments_gateway.transport import Transport

T = TypeVar("T")

_SAMPLE_SIZE = 20  # transaction records, enough to check their shape


class DiagnosticOutcome(enum.Enum):
    """Result of one read. UNUSABLE is a JSON response from which the client cannot read the requested value."""

    ANSWERED = "answered"
    UNUSABLE = "not usable"
    REJECTED = "rejected"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    NOT_CALLED = "not called"


@dataclass(frozen=True, slots=True)
class DiagnosticResult:
    """The result of one operation. `remarks` hold no credential and no data of the response.

    `skew` is how far the provider's clock is ahead of ours, in whole seconds, the resolution of its Date
    header. `fits` names the profiles that have such a request and response; None where they do not differ, or
    nothing can be said.
    """

    operation: ApiOperation
    outcome: DiagnosticOutcome
    status: int | None = None
    elapsed: timedelta = timedelta()
    remarks: tuple[str, ...] = ()
    skew: timedelta | None = None
    is_misconfigured: bool = False
    fits: tuple[ProfileName, ...] | None = None


@dataclass(frozen=True, slots=True)
class SampleAccount:
    """The bank account with which POST /bank/resolve is called."""

    account_number: str
    bank_code: str


def diagnostic_reads(profile: ProviderProfile) -> list[ApiOperation]:
    """The operations that change nothing and need no id: the specification's, then the enabled capabilities."""
    optional = [EXTRA_OPERATIONS[name] for name in EXTRA_OPERATIONS if name in profile.capabilities]
    harmless = [operation for operation in OPERATIONS if operation.effect is CallEffect.READS]
    return harmless + [operation for operation in optional if "{" not in operation.path]


def run_diagnostics(
    config: GatewayConfig, account: SampleAccount | None = None
) -> Iterator[DiagnosticResult]:
    """Yield the result of each read as it arrives. None is retried, and none is sent to an unreachable address.

    A read whose path or credentials differ in another named profile may be sent once more in that form. Without an
    account, POST /bank/resolve is not called. Never raises GatewayError.
    """
    transport = _RecordingTransport(replace(config, tries=1))
    out_of_reach: set[str] = set()
    with PaymentsGateway(config, transport=transport) as client:
        for operation in diagnostic_reads(config.profile):
            base = base_url_of(operation, config)
            if base in out_of_reach:
                yield DiagnosticResult(
                    operation, DiagnosticOutcome.NOT_CALLED, remarks=("the address cannot be reached",)
                )
                continue
            result = _call(client, transport, config.profile, operation, account)
            result = _with_request_fit(result, config)
            if result.outcome is DiagnosticOutcome.UNREACHABLE:
                out_of_reach.add(base)
            yield result


def _with_request_fit(result: DiagnosticResult, config: GatewayConfig) -> DiagnosticResult:
    """Set `fits` for a read that the named profiles send differently, by sending it as the other ones do too."""
    operation = result.operation
    sent = _request_of(operation, config.profile)
    others = [name for name, profile in PROFILES.items() if _request_of(operation, profile) != sent]
    if result.fits is not None or not others:
        return result
    if result.outcome is not DiagnosticOutcome.ANSWERED and result.status not in _MAY_FIT_ANOTHER_PROFILE:
        return result
    answered = [name for name in others if _answers(operation, config, PROFILES[name])]
    if result.is_misconfigured and not answered:
        return result  # refused in every form, so nothing is known of the form that it expects
    is_answered = result.outcome is DiagnosticOutcome.ANSWERED
    remarks = [
        _other_form_text(operation, config.profile, PROFILES[name]) for name in answered if not is_answered
    ]
    fits = tuple(name for name in PROFILES if name in answered or (is_answered and name not in others))
    return replace(
        result,
        fits=fits,
        remarks=(*result.remarks, *remarks),
        is_misconfigured=result.is_misconfigured and not answered,
    )


_MAY_FIT_ANOTHER_PROFILE = {401, 403, 404}  # another profile may have another path, or send the credentials


def _other_form_text(operation: ApiOperation, profile: ProviderProfile, other: ProviderProfile) -> str:
    if operation.path_in(other) != operation.path_in(profile):
        return f"answers at {operation.path_in(other)}"
    sends = operation.endpoint_in(other) is not Endpoint.V2_OPEN
    return f"answers {'with' if sends else 'without'} credentials"


def _request_of(operation: ApiOperation, profile: ProviderProfile) -> tuple[str, bool]:
    return operation.path_in(profile), operation.endpoint_in(profile) is Endpoint.V2_OPEN


def _answers(operation: ApiOperation, config: GatewayConfig, profile: ProviderProfile) -> bool:
    """Whether the provider answers this read as another profile sends it. Sends one request."""
    points: dict[str, object] = {"extra_credentials": profile.extra_credentials}
    if operation.path_point:
        points[operation.path_point] = operation.path_in(profile)
    other_config = replace(config, profile=config.profile.overridden(points), tries=1)
    transport = _RecordingTransport(other_config)
    with PaymentsGateway(other_config, transport=transport) as client:
        result = _call(client, transport, other_config.profile, operation, None)
    return result.outcome is DiagnosticOutcome.ANSWERED


def base_url_of(operation: ApiOperation, config: GatewayConfig) -> str:
    return config.base_url_v4 if operation.endpoint_in(config.profile) is Endpoint.V4 else config.base_url


class _RecordingTransport(Transport):
    """Keeps every response that the client receives, even if the client cannot read it."""

    def __init__(self, config: GatewayConfig) -> None:
        super().__init__(config)
        self.responses: list[ParsedResponse] = []

    def read(self, method: str, path: str, *, into: Callable[[ParsedResponse], T], **arguments: Any) -> T:
        """Read as usual, and keep the response."""

        def keep(response: ParsedResponse) -> T:
            self.responses.append(response)
            return into(response)

        return super().read(method, path, into=keep, **arguments)


def _call(
    client: PaymentsGateway,
    transport: _RecordingTransport,
    profile: ProviderProfile,
    operation: ApiOperation,
    account: SampleAccount | None,
) -> DiagnosticResult:
    """Call the client's own method, so that a response passes only if the back office could use it."""
    if operation.endpoint is Endpoint.V2_OPEN and account is None:
        return DiagnosticResult(
            operation, DiagnosticOutcome.NOT_CALLED, remarks=("needs an account number and a bank code",)
        )
    resource, method = operation.name.split(".")
    started, problem = time.monotonic(), ""
    try:
        getattr(getattr(client, resource), method)(**_arguments(operation, account))
    except GatewayError as exc:
        problem = exc.message
        if not transport.responses:
            return _failed_result(operation, exc, timedelta(seconds=time.monotonic() - started))
    elapsed = timedelta(seconds=time.monotonic() - started)
    return _result_of_response(operation, profile, transport.responses.pop(), problem, elapsed)


def _result_of_response(
    operation: ApiOperation,
    profile: ProviderProfile,
    response: ParsedResponse,
    problem: str,
    elapsed: timedelta,
) -> DiagnosticResult:
    outcome = DiagnosticOutcome.UNUSABLE if problem else DiagnosticOutcome.ANSWERED
    fits = fitting_profiles(operation.name, response.members)
    remarks = (
        *schema_differences(operation.name, response.members, next(iter(fits or ()), "specification")),
        *_unknown_statuses(operation, profile, response),
    )
    remarks = (problem, *remarks) if problem else remarks
    return DiagnosticResult(
        operation, outcome, response.status, elapsed, remarks, _clock_skew(response), fits=fits
    )


def _arguments(operation: ApiOperation, account: SampleAccount | None) -> Mapping[str, object]:
    if operation.name.startswith("transactions."):
        return {"per_page": _SAMPLE_SIZE}
    if operation.endpoint is Endpoint.V2_OPEN and account is not None:
        return {"account_number": account.account_number, "bank_code": account.bank_code}
    return {}


def _failed_result(operation: ApiOperation, exc: GatewayError, elapsed: timedelta) -> DiagnosticResult:
    """Classify an error: an unreachable address or rejected credentials mean a wrong configuration."""
    outcome = DiagnosticOutcome.REJECTED if isinstance(exc, RejectedError) else DiagnosticOutcome.FAILED
    if isinstance(exc, NotSentError) or isinstance(exc.__cause__, NotSentError):
        outcome = DiagnosticOutcome.UNREACHABLE
    is_misconfigured = (
        outcome is DiagnosticOutcome.UNREACHABLE
        or isinstance(exc, CredentialsError)
        or exc.status in {401, 403}
    )
    return DiagnosticResult(
        operation, outcome, exc.status, elapsed, (exc.message,), is_misconfigured=is_misconfigured
    )


def _unknown_statuses(
    operation: ApiOperation, profile: ProviderProfile, response: ParsedResponse
) -> list[str]:
    """Statuses of transaction records that the profile does not translate. They are stored as they are."""
    if not operation.name.startswith("transactions."):
        return []
    data = response.members.get("data")
    page = data.get("txn", data) if isinstance(data, dict) else None
    records = page.get("data") if isinstance(page, dict) else None
    found = {
        str(record.get("status", "")).strip()
        for record in (records if isinstance(records, list) else [])
        if isinstance(record, dict)
    }
    unknown = sorted(status for status in found if status and status.lower() not in profile.statuses)
    return [f"status {status[:40]!r} is not in the profile" for status in unknown]


def _clock_skew(response: ParsedResponse) -> timedelta | None:
    if response.date is None:
        return None
    return timedelta(seconds=round((response.date - datetime.now(UTC)).total_seconds()))


_LONGEST_NAME = 40
_MAX_NAMES = 20
_MAX_DIFFERENCES = 12


class _Difference(NamedTuple):
    text: str
    is_additional: bool = False  # only members that the schema does not have


def schema_differences(
    operation: str, members: Mapping[str, object], profile: ProfileName = "specification"
) -> list[str]:
    """Return how a response to this operation (`balances.list`) differs from its schema in a named profile.

    At most a dozen differences, without duplicates. Empty for an operation without a schema.
    """
    found = list(dict.fromkeys(each.text for each in _all_differences(operation, members, profile)))
    more = len(found) - _MAX_DIFFERENCES
    return found if more <= 0 else [*found[:_MAX_DIFFERENCES], f"and {more} more"]


def fitting_profiles(operation: str, members: Mapping[str, object]) -> tuple[ProfileName, ...] | None:
    """The named profiles whose schema a response has, apart from additional members; None if there is one schema."""
    schemas = [_response_schemas(name).get(operation) for name in PROFILES]
    if all(schema == schemas[0] for schema in schemas):
        return None
    return tuple(
        name
        for name in PROFILES
        if all(each.is_additional for each in _all_differences(operation, members, name))
    )


def _all_differences(
    operation: str, members: Mapping[str, object], profile: ProfileName
) -> list[_Difference]:
    schema = _response_schemas(profile).get(operation)
    return [] if schema is None else list(_differences(schema, members, ""))


@cache
def _response_schemas(profile: ProfileName) -> Mapping[str, Any]:
    """Return operationId -> schema of the response with status 200, without references, for every operation."""
    document = api_description(profile)
    operations = [
        each for path in document["paths"].values() for each in path.values() if "operationId" in each
    ]
    return {
        each["operationId"]: _dereferenced(each["responses"]["200"], document)["content"]["application/json"][
            "schema"
        ]
        for each in operations
        if "200" in each["responses"]
    }


def _dereferenced(part: Any, document: Any) -> Any:
    """The part with each reference into the document replaced by what it refers to."""
    if isinstance(part, list):
        return [_dereferenced(each, document) for each in part]
    if not isinstance(part, dict):
        return part
    if isinstance(reference := part.get("$ref"), str):
        target = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        return _dereferenced(target, document)
    return {name: _dereferenced(each, document) for name, each in part.items()}


def _differences(schema: Any, value: object, place: str) -> Iterator[_Difference]:
    here = place or "the response"
    if "anyOf" in schema:
        found = [list(_differences(option, value, place)) for option in schema["anyOf"]]
        yield from min(found, key=lambda differences: sum(not each.is_additional for each in differences))
        return
    expected = schema.get("type")
    kinds = [expected] if isinstance(expected, str) else expected
    if kinds and not any(is_of_type(value, kind) for kind in kinds):
        wanted = " or ".join(TYPE_NAMES[kind] for kind in kinds)
        yield _Difference(f"{here} is {type_name(value)}, not {wanted}")
        return
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if allowed and value not in allowed:
        yield _Difference(f"{here} is not one of {', '.join(map(str, allowed))}")
    if isinstance(value, dict):
        yield from _object_differences(schema, value, place)
    if isinstance(value, list) and "items" in schema:
        for item in value:
            yield from _differences(schema["items"], item, f"{place}[]")


def _object_differences(schema: Any, value: dict[str, object], place: str) -> Iterator[_Difference]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    others = schema.get("additionalProperties")
    here, dot = place or "the response", f"{place}." if place else ""
    missing = [name for name in schema.get("required", []) if name not in value]
    unknown = [_printable(name) for name in value if name not in properties] if others is False else []
    if missing:
        yield _Difference(f"{here} has no {_comma_separated(missing)}")
    if unknown:
        yield _Difference(f"{here} has unknown {_comma_separated(unknown)}", is_additional=True)
    for name, item in value.items():
        if name in properties:
            yield from _differences(properties[name], item, f"{dot}{name}")
        elif isinstance(others, dict):
            yield from _differences(others, item, f"{dot}*")


def _comma_separated(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _printable(name: str) -> str:
    """The name of a member as one short printable line."""
    plain = "".join(char if char.isprintable() else "?" for char in name)
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"
