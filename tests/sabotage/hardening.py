"""Safeguards of what a process refuses to start with, of archives of evidence, of pruning and of uploaded files."""

from tests.sabotage.workshop import Safeguard

_START = "tests/test_settings.py::test_an_invalid_setting_prevents_startup_and_is_named"
_CHECKS = "backoffice.startup_checks"
_ARCHIVE = "backoffice.retention.archive_file"
_CHANGED = "tests/retention/test_archives.py::test_a_changed_archive_is_refused"

HARDENING = (
    Safeguard(
        "a person's own chat channel is at a listed host",
        "backoffice.notifications.channels.network:_check_connection",
        {"if not is_listed(": "if hosts is None and not is_listed("},
        "tests/notifications/test_chat.py::test_no_connection_is_made_to_a_host_that_is_not_listed",
    ),
    Safeguard(
        "a password of the list of breaches is refused",
        "backoffice.accounts.protection.passwords:is_listed",
        {"== wanted": "== wanted + wanted"},
        "tests/accounts/test_passwords.py::test_a_password_of_the_list_of_breaches_is_refused",
    ),
    Safeguard(
        "nothing starts with a secret that repeats few characters",
        f"{_CHECKS}:secret_problems",
        {"len(set(secret)) < _MIN_DIFFERENT": "not secret"},
        _START,
    ),
    Safeguard(
        "nothing starts with a secret from an example",
        f"{_CHECKS}:secret_problems",
        {"_KNOWN_SECRET.search(secret)": "not secret"},
        _START,
    ),
    Safeguard(
        "nothing starts with an encryption key that is not random",
        f"{_CHECKS}:key_problems",
        {"len(set(raw)) < _MIN_DIFFERENT or raw.isascii()": "not raw"},
        _START,
    ),
    Safeguard(
        "nothing starts with a database elsewhere whose certificate is not verified",
        f"{_CHECKS}:_TLS_MODES",
        {"frozenset({": 'frozenset({"require", '},
        _START,
    ),
    Safeguard(
        "nothing starts with a broker elsewhere without TLS",
        f"{_CHECKS}:transport_problems",
        {"url.hostname and not is_here(url.hostname) and": "not url.scheme and"},
        _START,
    ),
    Safeguard(
        "nothing starts with a mail server elsewhere without TLS",
        f"{_CHECKS}:message_problems",
        {"if not is_encrypted and": "if is_encrypted and"},
        _START,
    ),
    Safeguard(
        "nothing starts with a syslog server elsewhere without TLS",
        f"{_CHECKS}:message_problems",
        {"if is_plain and": "if not address.scheme and"},
        _START,
    ),
    Safeguard(
        "nothing starts that answers to every host name",
        f"{_CHECKS}:host_problems",
        {'in {"*", ".", ""}': 'in {""}'},
        _START,
    ),
    Safeguard(
        "nothing starts with a provider in this machine's own network",
        f"{_CHECKS}:provider_problems",
        {"found.is_private and not may_be_private": "found.is_unspecified and not may_be_private"},
        _START,
    ),
    Safeguard(
        "nothing starts with a link-local address of the provider in another notation",
        f"{_CHECKS}:_literal",
        {"return IPv4Address(socket.inet_aton(host))": "return None"},
        _START,
    ),
    Safeguard(
        "nothing starts with a shared secret that can be guessed",
        f"{_CHECKS}:token_problems",
        {"if token and (": "if not token and ("},
        _START,
    ),
    Safeguard(
        "nothing starts with folders that every user of the machine reads",
        f"{_CHECKS}:folder_problems",
        {"0o007": "0o000"},
        "tests/test_settings.py::test_a_folder_that_everybody_can_read_prevents_startup",
    ),
    Safeguard(
        "a row that was changed in an archive is found",
        f"{_ARCHIVE}:_check_trailer",
        {'trailer["sha256"] != sha256': "not sha256"},
        _CHANGED,
    ),
    Safeguard(
        "an entry that is missing in an archive is found",
        f"{_ARCHIVE}:_checked_entry",
        {'row["position"] != position + 1': 'row["position"] is None'},
        _CHANGED,
    ),
    Safeguard(
        "an archive that was cut off is found",
        f"{_ARCHIVE}:verify_archive",
        {'raise InvalidArchiveError("The archive is cut off")': "members = {}"},
        _CHANGED,
    ),
    Safeguard(
        "an archive that another key signed is refused",
        f"{_ARCHIVE}:_check_signature",
        {
            '        key.verify(base64.b64decode(trailer["signature"], validate=True), signed)\n': (
                "        str((key, signed))\n"
            )
        },
        "tests/retention/test_archives.py::test_an_archive_of_another_key_is_refused",
    ),
    Safeguard(
        "an archive continues the one before",
        "backoffice.retention.management.commands.verify_archive:_check_continues",
        {"raise CommandError(": "CommandError("},
        "tests/retention/test_archives.py::test_the_next_archive_continues_the_one_before",
    ),
    Safeguard(
        "what is pruned is named in the audit log",
        "backoffice.retention.prune:_delete_batch",
        {"        if deleted:\n": "        if not deleted:\n"},
        "tests/retention/test_prune.py::test_rows_past_their_time_are_deleted_and_named_in_the_audit_log",
    ),
    Safeguard(
        "an export with a file, or in progress, is not pruned",
        "backoffice.retention.tables:_PRUNED",
        {"Q(state__in=_ENDED_EXPORTS, mail_due_at=None)": "Q(mail_due_at=None)"},
        "tests/retention/test_prune.py::test_an_export_with_a_file_or_in_progress_stays",
    ),
    Safeguard(
        "a file whose name ends like another kind of file is refused",
        "backoffice.operations.batches.reading:check_name",
        {"        raise UnreadableFileError(FileProblem.NAME_OF_ANOTHER)\n": "        return\n"},
        (
            "tests/operations/batches/test_files.py"
            "::test_a_file_whose_name_ends_like_another_kind_of_file_is_refused"
        ),
    ),
    Safeguard(
        "a workbook that unpacks to too much is not unpacked",
        "backoffice.operations.batches.reading:_check_parts",
        {"sum(part.file_size for part in parts) > MAX_UNPACKED": "not parts"},
        "tests/operations/batches/test_files.py::test_a_workbook_that_unpacks_to_too_much_is_not_unpacked",
    ),
    Safeguard(
        "the certificate of a Redis broker is verified",
        "backoffice.celery:broker_tls",
        {'"ssl_cert_reqs": ssl.CERT_REQUIRED': '"ssl_cert_reqs": ssl.CERT_NONE'},
        "tests/core/test_broker_tls.py::test_a_certificate_of_an_unknown_authority_is_refused[rediss]",
    ),
    Safeguard(
        "the host name of an AMQP broker is verified",
        "backoffice.celery:broker_tls",
        {'            "server_hostname": address.hostname,\n': ""},
        "tests/core/test_broker_tls.py::test_a_certificate_for_another_host_is_refused[amqps]",
    ),
    Safeguard(
        "the certificate of a syslog server is verified",
        "backoffice.audit.destinations:TlsSyslogDestination._send",
        {"ssl.create_default_context(": "ssl._create_unverified_context("},
        "tests/audit/test_destinations.py::"
        "test_syslog_over_tls_verifies_the_server_and_gets_messages_with_their_length",
    ),
)
