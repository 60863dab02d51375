"""What the source of the application never does: run text as code, open a shell, trust markup, draw weak numbers."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

from tools.processes import ROOT

PACKAGES = ("backoffice", "payments_gateway")
# Simulations and made-up data, which are no part of an installation.
MADE_UP = ("payments_gateway/sandbox/", "backoffice/demo/")
SCRIPTS = sorted((ROOT / "static").glob("*.js"))

RUNS_TEXT = {"eval", "exec", "compile"}
OPENS_A_PROCESS = {"os.system", "os.popen", "pty.spawn"}
UNSAFE_FORMS = {"pickle", "marshal", "shelve", "dill", "jsonpickle"}
OF_OTHER_SYSTEMS = {
    "ldap",
    "ldap3",
    "lxml",
    "jinja2",
    "graphene",
    "strawberry",
    "channels",
    "pymemcache",
    "memcache",
}
ESCAPES_ITSELF = {  # each calls `escape` or `format_html` on what it did not write
    "backoffice/core/templatetags/display.py",
    "backoffice/core/web/formatting.py",
    "backoffice/operations/pages/transactions.py",
}
WEAK = {"md5", "sha1", "new"}
READS_WEAK_HASHES = {"backoffice/accounts/protection/passwords.py"}  # a list of them is compared
CRYPTOGRAPHY = {  # the algorithms of the table in docs/security/rules.md, and what reads a key
    *("AESGCM", "Ed25519PrivateKey", "Ed25519PublicKey", "HKDF", "SHA256", "hashes", "padding"),
    *("RSAPublicKey", "generate_private_key", "Encoding", "PublicFormat", "load_pem_public_key"),
    *("TOTP", "InvalidToken", "SHA1", "SHA512", "InvalidSignature", "InvalidTag", "UnsupportedAlgorithm"),
}
SIGNATURE_OF_A_WEBHOOK = {"PSS", "MGF1", "SHA256"}
OTHER_CRYPTOGRAPHY = {
    "Crypto",
    "Cryptodome",
    "nacl",
    "rsa",
    "ecdsa",
    "pyaes",
    "OpenSSL",
    "M2Crypto",
    "jwt",
    "jose",
}
SPEAKS_TO_OTHERS = {
    *("requests", "urllib3", "http.client", "urllib.request", "socket", "smtplib", "apprise", "boto3"),
    *(
        "httpx",
        "aiohttp",
        "ftplib",
        "poplib",
        "imaplib",
        "telnetlib",
        "xmlrpc.client",
        "paramiko",
        "websocket",
    ),
}
# Each with the settings that name whom it speaks to, as in the table of docs/security/rules.md; none if it opens no
# connection. Database, broker, object store and telemetry are reached by the libraries of their settings.
NAMED_BY = {
    "payments_gateway/connection.py": (
        "GATEWAY_URL",
        "NOTIFY_WEBHOOKS",
        "PUBLIC_URL",
        "AUDIT_CHECKPOINT_DESTINATIONS",
    ),
    "payments_gateway/transport.py": ("GATEWAY_URL",),
    "backoffice/audit/destinations.py": ("AUDIT_CHECKPOINT_DESTINATIONS",),
    "backoffice/core/web/mail.py": ("EMAIL_HOST",),
    "backoffice/notifications/channels/chat.py": ("NOTIFY_CHATS", "NOTIFY_CHAT_HOSTS"),
    "backoffice/notifications/channels/email.py": ("EMAIL_HOST",),
    "backoffice/reports/schedules/messages.py": ("EMAIL_HOST",),
    "backoffice/accounts/break_glass.py": (),
    "backoffice/core/telemetry/processes.py": (),
    "backoffice/operations/delivery/journal.py": (),
    "backoffice/startup_checks.py": (),
    "backoffice/web_server.py": (),
}
IN_SCRIPTS = re.compile(
    r"\beval\(|new Function\(|innerHTML|outerHTML|insertAdjacentHTML|document\.write|document\.cookie"
    r"|localStorage|sessionStorage|indexedDB|postMessage|__proto__|onmessage"
)


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the application by its path, parsed."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(MADE_UP):
                yield name, ast.parse(path.read_text())


@cache
def nodes() -> list[tuple[str, ast.Call | ast.Import | ast.ImportFrom]]:
    """Every call and import, with the path of its module."""
    wanted = (ast.Call, ast.Import, ast.ImportFrom)
    return [(path, node) for path, tree in sources() for node in ast.walk(tree) if isinstance(node, wanted)]


@cache
def calls() -> list[tuple[str, str, ast.Call]]:
    """Every call, with the path of its module and the dotted name that is called."""
    return [(path, ast.unparse(node.func), node) for path, node in nodes() if isinstance(node, ast.Call)]


def imported() -> Iterator[tuple[str, str]]:
    """Every top-level name that is imported, with the path of the module that imports it."""
    for path, node in nodes():
        if isinstance(node, ast.Import):
            yield from ((path, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield path, (node.module or "").partition(".")[0]


def test_only_listed_modules_speak_to_others_and_settings_name_whom() -> None:
    """A new one needs a line here, a setting that names its hosts, and a row in the table of the rules."""
    whole = {
        (path, name)
        for path, node in nodes()
        if not isinstance(node, ast.Call)
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
    }
    assert {path for path, name in whole if name in SPEAKS_TO_OTHERS} == set(NAMED_BY)
    assert [name for names in NAMED_BY.values() for name in names if not hasattr(settings, name)] == []


def test_no_text_is_run_as_code() -> None:
    assert [(path, name) for path, name, _ in calls() if name in RUNS_TEXT] == []


def test_no_shell_is_opened() -> None:
    through_a_shell = [
        (path, name)
        for path, name, call in calls()
        if name in OPENS_A_PROCESS or any(keyword.arg == "shell" for keyword in call.keywords)
    ]
    assert through_a_shell == []


def test_no_form_of_data_is_read_that_can_make_objects() -> None:
    assert [found for found in imported() if found[1] in UNSAFE_FORMS] == []
    assert [(path, name) for path, name, _ in calls() if name in {"yaml.load", "yaml.unsafe_load"}] == []


def test_no_other_interpreter_is_used() -> None:
    assert [found for found in imported() if found[1] in OF_OTHER_SYSTEMS] == []


def test_no_markup_is_declared_safe() -> None:
    declared = {path for path, name, _ in calls() if name.rpartition(".")[2] in {"mark_safe", "SafeString"}}
    assert declared <= ESCAPES_ITSELF
    templates = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "backoffice").rglob("templates/**/*.html")]
    assert templates
    unescaped = re.compile(r"\|\s*safe\b|autoescape off|\|\s*safeseq\b")
    assert [path for path in templates if unescaped.search(path.read_text())] == []


def test_no_template_is_made_of_text_that_somebody_typed() -> None:
    assert [
        (path, name) for path, name, _ in calls() if name.rpartition(".")[2] in {"Template", "from_string"}
    ] == []


def test_random_values_come_from_the_operating_system() -> None:
    drawn = [(path, name) for path, name, _ in calls() if name.startswith("random.")]
    assert drawn == [("payments_gateway/transport.py", "random.SystemRandom")]


def test_no_weak_hash_is_used() -> None:
    weak = [
        (path, name)
        for path, name, _ in calls()
        if name.partition(".")[0] == "hashlib"
        and name.rpartition(".")[2] in WEAK
        and path not in READS_WEAK_HASHES
    ]
    assert weak == []


def test_cryptography_is_that_of_one_library_and_of_the_listed_algorithms() -> None:
    used = {
        (path, alias.name)
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cryptography")
        for alias in node.names
    }
    assert {name for _, name in used} <= CRYPTOGRAPHY
    sha1 = {path for path, name in used if name in {"SHA1", "SHA512", "TOTP"}}
    assert sha1 == {"backoffice/operations/models/otp.py"}  # as authenticator apps have it
    called = {name.rpartition(".")[2] for _, name, _ in calls() if name.startswith(("padding.", "hashes."))}
    assert called == SIGNATURE_OF_A_WEBHOOK
    others = {path for path, name in imported() if name in OTHER_CRYPTOGRAPHY}
    assert others == {"payments_gateway/crypto_addresses.py"}  # Keccak, for the checksums of addresses


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_neither_makes_markup_nor_keeps_data(script: Path) -> None:
    assert IN_SCRIPTS.findall(script.read_text()) == []
