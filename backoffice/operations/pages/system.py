"""The System page: version, audit log and its checkpoints, integrity checks, background jobs, ids of keys."""

import platform
from dataclasses import dataclass
from datetime import datetime, timedelta

import django
from django.conf import settings
from django.contrib.auth.decorators import permission_required
from django.db import connection
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from backoffice.accounts.sessions import StaffRequest
from backoffice.audit.checkpoints import DeliveryStatus, destination_states, public_keys
from backoffice.audit.models import Entry, LastVerification
from backoffice.audit.verification import fault_sentence
from backoffice.core import encryption
from backoffice.core.gateway import OtpMode, otp_mode
from backoffice.operations.delivery import journal
from backoffice.operations.kinds.base import GroupedCode
from backoffice.operations.models.monitoring import Heartbeat
from backoffice.operations.models.otp import otp_secret_in_use
from backoffice.operations.monitoring.inspection import system_health

JOB_LATE_AFTER = timedelta(minutes=5)
_OTP_MODES = {
    OtpMode.NOT_ASKED: _("Not asked: calls carry none"),
    OtpMode.ENTERED: _("Entered by the person who sends"),
    OtpMode.MANAGED: _("Made by Countersign from the stored authenticator secret"),
}
_TONES = {
    DeliveryStatus.CONTRADICTED: "bad",
    DeliveryStatus.OVERDUE: "bad",
    DeliveryStatus.FAILING: "warn",
    DeliveryStatus.WAITING: "",
    DeliveryStatus.DELIVERED: "good",
}


@dataclass(frozen=True)
class Job:
    """A job of the sweeper, and when it last ended a round."""

    name: str
    at: datetime
    is_late: bool


@require_safe
@permission_required("audit.view_entry", raise_exception=True)
def system(request: StaffRequest) -> HttpResponse:
    """The state of the installation, from the database and the configuration only. It shows no secret."""
    now = timezone.now()
    otp_secret = otp_secret_in_use()
    last_verification = LastVerification.objects.filter(pk=1).first()
    context = {
        "versions": _versions(),
        "head": Entry.objects.only("position", "hash", "at").order_by("-position").first(),
        "last_verification": last_verification,
        "chain_fault": fault_sentence(last_verification.fault)
        if last_verification and last_verification.fault
        else "",
        "destinations": [(state, _TONES[state.status]) for state in destination_states(now)],
        "health": system_health(),
        "jobs": [
            Job(beat.job, beat.at, now - beat.at > JOB_LATE_AFTER)
            for beat in Heartbeat.objects.order_by("job")
        ],
        "journal": journal.own_path(),
        "journal_problem": journal.folder_problem(),
        "otp_mode": _OTP_MODES[otp_mode()],
        "otp_managed": otp_mode() == OtpMode.MANAGED,
        "otp_secret": otp_secret,
        "otp_fingerprint": GroupedCode(otp_secret.fingerprint) if otp_secret else "",
        "encryption_key_ids": encryption.key_ids(),
        "checkpoint_keys": public_keys(),
    }
    return render(request, "operations/system.html", context)


def _versions() -> list[tuple[str, str]]:
    database = ".".join(map(str, connection.get_database_version()))
    return [
        ("Countersign", settings.VERSION),
        ("Django", django.get_version()),
        ("Python", platform.python_version()),
        (connection.display_name, database),
    ]
