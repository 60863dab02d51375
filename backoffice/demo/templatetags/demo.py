"""The demo's people with their current codes, for the sign-in pages, and each code for below its field."""

from typing import Any

from django import template

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.demo.people import (
    DEMO_PASSWORD,
    DEMO_PEOPLE,
    CurrentCode,
    DemoPerson,
    current_one_time_code,
    current_sign_in_code,
)

register = template.Library()


@register.simple_tag
def demo_people(person: User | None = None) -> list[dict[str, Any]]:
    """Each person with the sign-in data; with `person`, that one only."""
    members = [member for member in DEMO_PEOPLE if person is None or member.email == person.email]
    devices = AuthenticatorDevice.objects.filter(
        confirmed=True, user__email__in=[member.email for member in members]
    ).select_related("user")
    by_email = {device.user.email: device for device in devices}
    return [_shown(member, by_email[member.email]) for member in members if member.email in by_email]


@register.simple_tag
def demo_code(field_name: str, person: User) -> CurrentCode | None:
    """The code for a field: the provider's one-time code for `otp`, otherwise that of the person's authenticator."""
    if field_name == "otp":
        return current_one_time_code()
    device = AuthenticatorDevice.objects.filter(confirmed=True, user=person).first()
    return current_sign_in_code(device) if device else None


def _shown(member: DemoPerson, device: AuthenticatorDevice) -> dict[str, Any]:
    return {"member": member, "password": DEMO_PASSWORD, "code": current_sign_in_code(device)}
