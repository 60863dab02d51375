"""Safeguards of accounts: what one person at the shell cannot do unseen, and one-time links."""

from tests.sabotage.workshop import Safeguard

_COMMANDS = "tests/accounts/test_commands.py"
_LINKS = "tests/accounts/test_setup_links.py"
_REFUSED = "tests/accounts/test_refused_sign_ins.py"
_RESTRICTED = "tests/operations/test_break_glass.py"
_OF_THE_SHELL = "backoffice.accounts.break_glass"
_OF_LINKS = "backoffice.accounts.sign_in"

ACCOUNTS = (
    Safeguard(
        "giving rights at the shell needs break-glass",
        f"{_OF_THE_SHELL}:_check_may_give_rights",
        {"    elif not command.is_break_glass:\n": "    elif not roles and not command:\n"},
        f"{_COMMANDS}::test_giving_or_restoring_rights_needs_break_glass",
    ),
    Safeguard(
        "adding a role at the shell is giving rights",
        f"{_OF_THE_SHELL}:set_roles",
        {"    if set(roles) - set(staff.role_names(user)):\n": "    if not roles:\n"},
        f"{_COMMANDS}::test_giving_or_restoring_rights_needs_break_glass",
    ),
    Safeguard(
        "only administrators are created until two are active",
        f"{_OF_THE_SHELL}:create_staff",
        {"    if is_bootstrapping() and set(roles) != {Role.ADMINISTRATOR}:\n": "    if email is None:\n"},
        f"{_COMMANDS}::test_only_administrators_are_created_until_two_are_active",
    ),
    Safeguard(
        "administrators get no other role until two are active",
        f"{_OF_THE_SHELL}:_check_may_give_rights",
        {"        if not set(roles) <= {Role.ADMINISTRATOR}:\n": "        if roles is None:\n"},
        f"{_COMMANDS}::test_administrators_get_no_other_role_until_two_are_active",
    ),
    Safeguard(
        "the shell does not return to the beginning by removing administrators unseen",
        f"{_OF_THE_SHELL}:_check_may_take_rights",
        {"    elif not command.is_break_glass and": "    elif command is None and"},
        f"{_COMMANDS}::test_fewer_than_two_administrators_are_left_with_break_glass_only",
    ),
    Safeguard(
        "after break-glass the beginning does not return",
        f"{_OF_THE_SHELL}:is_bootstrapping",
        {" and not _was_break_glass_used()": ""},
        f"{_COMMANDS}::test_fewer_than_two_administrators_are_left_with_break_glass_only",
    ),
    Safeguard(
        "an installation with other people than administrators is not new",
        f"{_OF_THE_SHELL}:is_bootstrapping",
        {" and not has_others": ""},
        f"{_COMMANDS}::test_one_administrator_beside_other_people_is_no_new_installation",
    ),
    Safeguard(
        "a link is renewed without break-glass only while nobody ever signed in",
        f"{_OF_THE_SHELL}:are_links_unopened",
        {" and not has_signed_in": ""},
        f"{_COMMANDS}::test_first_links_need_break_glass_once_the_installation_is_used",
    ),
    Safeguard(
        "a link that is renewed without break-glass is an incident",
        f"{_OF_THE_SHELL}:_first_administrator_beside",
        {" and not (change in _RENEWING and user.is_active)": ""},
        f"{_COMMANDS}::test_a_renewed_first_link_is_an_incident_as_a_second_account_is",
    ),
    Safeguard(
        "no value of a JSON line has a secret",
        "backoffice.core.logs:_redacted",
        {"redact_secrets(str(value))": "str(value)"},
        "tests/core/test_log_format.py::test_a_secret_is_redacted_in_each_value_and_the_line_remains_json",
    ),
    Safeguard(
        "an error report has no text of an exception",
        "backoffice.core.telemetry.error_reports:_exception",
        {'"value": ""': '"value": str(exc)'},
        "tests/core/telemetry/test_reports.py::test_an_error_report_has_types_and_places_and_nothing_else",
    ),
    Safeguard(
        "the request id of a client is not taken over",
        "backoffice.core.web.middleware:_proxy_request_id",
        {" if settings.TRUST_FORWARDED_FOR else": " if settings.ALLOWED_HOSTS else"},
        "tests/core/test_log_format.py::test_the_id_of_the_trusted_proxy_is_taken_if_it_is_well_formed",
    ),
    Safeguard(
        "a password of the words of this product is easily guessed",
        "backoffice.accounts.protection.passwords:GuessablePasswordValidator.validate",
        {"*CONTEXT_WORDS, ": ""},
        "tests/accounts/test_passwords.py::test_a_password_of_words_of_this_product_is_refused",
    ),
    Safeguard(
        "a password of the host name is easily guessed",
        "backoffice.accounts.protection.passwords:GuessablePasswordValidator.validate",
        {", *here]": "]"},
        "tests/accounts/test_passwords.py::test_a_password_of_the_host_name_is_refused",
    ),
    Safeguard(
        "ending sessions needs a fresh second factor",
        "backoffice.accounts.pages.my_account:end_session",
        {"@fresh_second_factor_required\n": ""},
        "tests/accounts/test_sessions.py::test_ending_sessions_needs_a_fresh_second_factor",
    ),
    Safeguard(
        "a session that was ended meanwhile sets up no authenticator",
        "backoffice.accounts.second_factor:_check_may_enrol",
        {"    check_not_ended(request)\n": ""},
        "tests/accounts/test_ended_sessions.py::test_no_authenticator_is_set_up_in_a_session_that_was_ended",
    ),
    Safeguard(
        "a session that was ended meanwhile sets no password",
        "backoffice.accounts.sign_in:change_password",
        {"    check_not_ended(request)\n": ""},
        "tests/accounts/test_ended_sessions.py::"
        "test_a_password_that_was_reset_is_not_replaced_by_the_session_that_was_ended",
    ),
    Safeguard(
        "a one-time link is in no log line",
        "backoffice.core.logs:redact_secrets",
        {"(_SETUP_LINK, ": "("},
        "tests/core/test_logs.py::test_a_one_time_link_is_redacted",
    ),
    Safeguard(
        "a one-time link is in no audit entry",
        "backoffice.accounts.access:csrf_failure",
        {"redact_secrets(request.path)": "request.path"},
        f"{_LINKS}::test_a_form_out_of_date_leaves_no_link_in_the_audit_log",
    ),
    Safeguard(
        "break-glass raises an incident",
        f"{_OF_THE_SHELL}:_raise_incident",
        {"    if not command.is_break_glass and first is None:\n": "    if first is None:\n"},
        f"{_COMMANDS}::test_break_glass_is_recorded_with_user_and_host_and_raises_an_incident",
    ),
    Safeguard(
        "the operating system says who runs the command",
        f"{_OF_THE_SHELL}:_os_user",
        {"        return pwd.getpwuid(os.getuid()).pw_name\n": '        return os.environ["LOGNAME"]\n'},
        f"{_COMMANDS}::test_break_glass_is_recorded_with_user_and_host_and_raises_an_incident",
    ),
    Safeguard(
        "people whose password is known are made in the demo's database only",
        "backoffice.demo.people:ensure_people",
        {"    if None in present and ": "    if not present and "},
        "tests/demo/test_people.py::test_the_demos_people_are_not_created_beside_others",
    ),
    Safeguard(
        "no password is left after the second factor was reset",
        "backoffice.accounts.staff:reset_second_factor",
        {"    user.set_unusable_password()\n": ""},
        f"{_COMMANDS}::test_reset_second_factor_deletes_authenticator_and_password",
    ),
    Safeguard(
        "who was changed with break-glass decides nothing for a day",
        "backoffice.accounts.roles:_users_with_permission",
        {"        if permission in WITHHELD[manager.cause]:\n": "        if permission is None:\n"},
        f"{_RESTRICTED}::test_a_restricted_approver_cannot_approve",
    ),
    Safeguard(
        "who was changed with break-glass meanwhile has not released",
        "backoffice.operations.policy:_check_people",
        {"    if releaser.pk not in entitled[RELEASE]:": "    if releaser is None:"},
        f"{_RESTRICTED}::test_a_release_is_not_sent_if_the_releaser_is_restricted_meanwhile",
    ),
    Safeguard(
        "who was changed with break-glass meanwhile has not approved",
        "backoffice.operations.policy:_check_people",
        {"counting(of_this_content, entitled[approve] -": "counting(of_this_content, approvers -"},
        f"{_RESTRICTED}::test_a_release_is_not_sent_if_an_approver_is_restricted_meanwhile",
    ),
    Safeguard(
        "nobody acknowledges the change of their own account",
        "backoffice.operations.lifecycle.incidents:acknowledge_break_glass",
        {"    if change.is_about(actor):\n": "    if actor is None:\n"},
        f"{_RESTRICTED}::test_the_person_changed_cannot_acknowledge",
    ),
    Safeguard(
        "two people changed with break-glass do not acknowledge each other",
        "backoffice.operations.lifecycle.incidents:acknowledge_break_glass",
        {"    policy.check_permission(actor, permission_to_acknowledge(actor, change))\n": ""},
        f"{_RESTRICTED}::test_two_restricted_people_cannot_acknowledge_each_other",
    ),
    Safeguard(
        "a one-time link expires",
        f"{_OF_LINKS}:_valid_links",
        {"    return valid.filter(expires_at__gt=clock.now())\n": "    return valid\n"},
        f"{_LINKS}::test_a_link_is_valid_for_48_hours",
    ),
    Safeguard(
        "a one-time link works once",
        f"{_OF_LINKS}:use_setup_link",
        {"_valid_links(token).filter(user=user, seal=link.seal).delete()": "1, _valid_links(token)"},
        f"{_LINKS}::test_a_link_works_once",
    ),
    Safeguard(
        "of two people with one link the first wins",
        f"{_OF_LINKS}:use_setup_link",
        {
            "        if used == 1:\n": "        if used is not None:\n",
            "    if used != 1:\n": "    if used is None:\n",
        },
        f"{_LINKS}::test_of_two_submissions_with_one_link_the_second_is_refused",
    ),
    Safeguard(
        "a deactivated person has no link",
        f"{_OF_LINKS}:_valid_links",
        {", user__is_active=True": ""},
        f"{_LINKS}::test_the_link_of_a_deactivated_person_is_not_valid",
    ),
    Safeguard(
        "guessing links locks out",
        f"{_OF_LINKS}:open_setup_link",
        {"    if lockout.are_links_locked_out(address):\n": "    if not token:\n"},
        f"{_LINKS}::test_five_wrong_links_lock_out_the_network_address",
    ),
    Safeguard(
        "an account is locked out whatever addresses the attempts are from",
        "backoffice.accounts.protection.lockout:_is_locked",
        {'or (is_person and found["account"] >= WRONG_FOR_ACCOUNT)': "or not is_person"},
        f"{_REFUSED}::test_an_account_is_locked_out_for_every_address",
    ),
    Safeguard(
        "an address is locked out whatever accounts it tries",
        "backoffice.accounts.protection.lockout:_is_locked",
        {'        or found["address"] >= WRONG_FOR_ADDRESS\n': ""},
        f"{_REFUSED}::test_an_address_is_locked_out_for_every_account",
    ),
    Safeguard(
        "one password is checked at a time",
        "backoffice.accounts.protection.lockout",
        {"_check = threading.Lock()": "_check = threading.Semaphore(100)"},
        f"{_REFUSED}::test_a_sign_in_that_cannot_be_checked_now_says_so_and_counts_nothing",
    ),
    Safeguard(
        "a password that is easily guessed is refused",
        "backoffice.accounts.protection.passwords:GuessablePasswordValidator.validate",
        {'estimate["score"] < _MIN_SCORE': 'estimate["score"] < 0'},
        "tests/accounts/test_my_account.py::test_an_unacceptable_password_is_reported_at_its_field",
    ),
    Safeguard(
        "the database stores no key of a session",
        "backoffice.accounts.sessions:_hash_of",
        {"hashlib.sha256(session_key.encode()).hexdigest()[:40]": "session_key"},
        "tests/accounts/test_sessions.py::test_what_the_database_stores_opens_no_session",
    ),
    Safeguard(
        "a refused read is recorded",
        "backoffice.accounts.access:StaffOnlyMiddleware.process_exception",
        {"isinstance(request.user, User):": 'request.method == "POST":'},
        "tests/accounts/test_access.py::test_a_refused_read_is_recorded",
    ),
)
