"""Everything that changes staff, their sessions, and what proves that it is them."""

from backoffice.accounts.policy import SECOND_FACTOR_FRESH
from backoffice.accounts.services.enrolment import begin_enrolment, finish_enrolment
from backoffice.accounts.services.passwords import change_password, confirm_password
from backoffice.accounts.services.recovery import confirm_codes_kept, issue_recovery_codes
from backoffice.accounts.services.second_factor import (
    confirm_second_factor,
    has_fresh_second_factor,
    second_factor_at,
)
from backoffice.accounts.services.sessions import end_other_sessions, end_session, end_sessions_of
from backoffice.accounts.services.sign_in import sign_in, sign_out
from backoffice.accounts.services.staff import (
    create_staff,
    deactivate,
    reset_second_factor,
    save_preferences,
    set_roles,
)

__all__ = [
    "SECOND_FACTOR_FRESH",
    "begin_enrolment",
    "change_password",
    "confirm_codes_kept",
    "confirm_password",
    "confirm_second_factor",
    "create_staff",
    "deactivate",
    "end_other_sessions",
    "end_session",
    "end_sessions_of",
    "finish_enrolment",
    "has_fresh_second_factor",
    "issue_recovery_codes",
    "reset_second_factor",
    "save_preferences",
    "second_factor_at",
    "set_roles",
    "sign_in",
    "sign_out",
]
