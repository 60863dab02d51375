"""Settings of Countersign, read from the environment (12-factor).

Every default suits development against the sandbox. Outside the sandbox no setting has an unsafe default: the
process refuses to start with one (`refuse_unsafe`, at the end).
"""

import tomllib
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF

from backoffice import settings_values
from backoffice.environment_variables import EnvironmentVariables
from backoffice.startup_checks import refuse_unsafe

# A comment with `#:` describes the variable below it; the configuration page of the docs is generated from these.
env = EnvironmentVariables()
BASE_DIR = Path(__file__).resolve().parent.parent
VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]

# == Installation
#: The file of variables that `manage.py setup` stored; a variable of the process takes precedence. Empty: none is
#: read. A file that does not exist or cannot be read is refused. Default: `.env` in the project folder, if it exists.
ENV_FILE: str = env.str("COUNTERSIGN_ENV_FILE", default=str(BASE_DIR / ".env"))
if ENV_FILE:
    env.read_file("COUNTERSIGN_ENV_FILE", ENV_FILE)

#: The folder for collected static files, files in the making and, unless configured otherwise, finished exports,
#: archives, the database and the broker. Each machine has its own.
#: Default: `var` in the project folder.
DATA_DIR = Path(env.str("COUNTERSIGN_DATA_DIR", default=str(BASE_DIR / "var")))
DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)

#: An existing folder for the journals: what this machine claimed and sent, compared with the database before each
#: request. Put it on a volume that is not restored together with the database. Default: `journal` in the data folder.
JOURNAL_DIR = Path(env.str("COUNTERSIGN_JOURNAL_DIR", default=str(DATA_DIR / "journal")))
if JOURNAL_DIR == DATA_DIR / "journal":
    JOURNAL_DIR.mkdir(mode=0o700, exist_ok=True)

#: `sandbox`, `rehearsal`, `staging` or `production`; shown on every page. One deployment serves one merchant in one
#: environment. A rehearsal is the production form against the sandbox, on loopback (`make rehearse`).
ENVIRONMENT: str = env.str("COUNTERSIGN_ENVIRONMENT", default="sandbox")
#: Let one machine be all there is: SQLite, the broker of folders, and containers beside this one without TLS, which are
#: refused outside the sandbox otherwise.
SINGLE_MACHINE: bool = env.bool("COUNTERSIGN_SINGLE_MACHINE", default=False)
#: Demo people, money and operations, with sign-in codes on the sign-in page. Set by `make demo`; refused outside the
#: sandbox on loopback.
DEMO: bool = env.bool("COUNTERSIGN_DEMO", default=False)
#: Django's debug mode; refused outside the sandbox.
DEBUG: bool = env.bool("COUNTERSIGN_DEBUG", default=False)
_IN_SANDBOX = ENVIRONMENT == "sandbox"
# No real money can move there either, so what takes a day may take less. Everything else is as in production.
_AGAINST_SANDBOX = _IN_SANDBOX or ENVIRONMENT == "rehearsal"
#: The https address under which people and the provider reach this installation. Used to recognise our own callback
#: URL, for links in emails and for the one-time links of `manage.py staff`. Without it scheduled reports cannot be
#: saved and no email is sent.
PUBLIC_URL: str = env.str("COUNTERSIGN_PUBLIC_URL", default="").rstrip("/")

# == Secrets
#: Django's secret key. Default: a development value.
SECRET_KEY: str = env.str("COUNTERSIGN_SECRET_KEY", default=settings_values.DEVELOPMENT_SECRET).strip()
#: Earlier secret keys, comma-separated: sessions, one-time links and recovery codes made under them remain valid.
SECRET_KEY_FALLBACKS: list[str] = env.list("COUNTERSIGN_SECRET_KEY_FALLBACKS", default=[])
#: `id:base64` of 32 bytes each, comma-separated, newest first. Encrypts one-time codes, API keys and the seeds of
#: authenticators; seals operations, approvals and releases, passwords, authenticators and one-time links. Default: a
#: development value.
ENCRYPTION_KEYS: list[str] = env.list(
    "COUNTERSIGN_ENCRYPTION_KEYS", default=[f"development:{settings_values.DEVELOPMENT_ENCRYPTION_KEY}"]
)

# == Audit log checkpoints
#: Where the signed head of the audit log is stored every minute, comma-separated: `file:///path`,
#: `syslog+tls://host:port`, `syslog+unix:///path`, `https://host/path`; on this machine also `syslog+udp://host:port`
#: and `syslog+tcp://host:port`. Shown to auditors, so put no secret into an address. Without any, anyone who can write
#: to the database can rewrite the log unnoticed.
AUDIT_CHECKPOINT_DESTINATIONS: list[str] = env.list("COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS", default=[])
#: `id:base64` of 32 bytes each, comma-separated, newest first: the Ed25519 keys that sign checkpoints. The first one
#: signs, all of them verify. Required with a destination.
AUDIT_CHECKPOINT_KEYS: list[str] = env.list("COUNTERSIGN_AUDIT_CHECKPOINT_KEYS", default=[])
#: Bearer token sent to https destinations.
AUDIT_CHECKPOINT_TOKEN: str = env.str("COUNTERSIGN_AUDIT_CHECKPOINT_TOKEN", default="").strip()
#: A file of certificate authorities to trust for destinations by https and syslog+tls. Default: those of the system.
AUDIT_CHECKPOINT_CA_FILE: str = env.str("COUNTERSIGN_AUDIT_CHECKPOINT_CA_FILE", default="")

# == Provider
#: Base address of the provider's API, with its version segment; https except on loopback.
GATEWAY_URL: str = env.str("COUNTERSIGN_GATEWAY_URL", default="http://127.0.0.1:8001/v2")
#: Base address for the operations under `{base_url_v4}`.
GATEWAY_URL_V4: str = env.str("COUNTERSIGN_GATEWAY_URL_V4", default="http://127.0.0.1:8001/v4")
#: The merchant's API key. After a guided rotation the key in use is kept encrypted in the database instead.
#: Default: the sandbox's key.
GATEWAY_API_KEY: str = env.str("COUNTERSIGN_GATEWAY_API_KEY", default=settings_values.SANDBOX_API_KEY).strip()
#: The merchant's username at the provider. Transfers are incoming or outgoing by this name, so it must be exact.
GATEWAY_API_USER: str = env.str("COUNTERSIGN_GATEWAY_API_USER", default="countersign-demo")
#: The `businessId` sent with payments. Default: that of the newest transactions, if they all name the same one.
GATEWAY_BUSINESS_ID: str = env.str("COUNTERSIGN_GATEWAY_BUSINESS_ID", default="").strip()
#: The value of the `X-User-Version` header.
GATEWAY_USER_VERSION: str = env.str("COUNTERSIGN_GATEWAY_USER_VERSION", default="v2")
#: How the provider behaves where its specification leaves it open: `specification`, `published`, or a TOML file that
#: overrides single fields of the profile that it names with `profile = "published"`.
GATEWAY_PROFILE: str = env.str("COUNTERSIGN_GATEWAY_PROFILE", default="specification").strip()
#: How the provider's one-time codes are obtained: `not_asked` (calls carry none), `entered` (by the person who sends)
#: or `managed` (made by Countersign from the authenticator secret, which an operation stores). Default: `entered` where
#: the profile requires codes, otherwise `not_asked`.
OTP_MODE: str = env.str("COUNTERSIGN_OTP_MODE", default="").strip()
#: A file of certificate authorities to trust for calls to the provider. Default: those of the system.
GATEWAY_CA_FILE: str = env.str("COUNTERSIGN_GATEWAY_CA_FILE", default="")
#: Let the provider's address be one of a private network, such as that of a proxy of your own.
GATEWAY_PRIVATE_ADDRESSES: bool = env.bool("COUNTERSIGN_GATEWAY_PRIVATE_ADDRESSES", default=False)
#: What host names of the provider's staging addresses contain: required in staging, refused in production.
GATEWAY_STAGING_HOST_MARKER: str = env.str(
    "COUNTERSIGN_GATEWAY_STAGING_HOST_MARKER", default="staging"
).lower()

# == Webhooks
#: The secret part of the callback URL, `/hooks/<secret>/`: at least 32 characters of `A-Z a-z 0-9 _ -`. Without it no
#: webhook is received.
WEBHOOK_SECRET: str = env.str("COUNTERSIGN_WEBHOOK_SECRET", default="").strip()
#: A PEM file with the provider's public key, or both keys while it changes them; read again when the file changes.
#: Without it deliveries are stored, but trigger nothing.
WEBHOOK_KEYS: str = env.str("COUNTERSIGN_WEBHOOK_KEYS", default="")

# == Two-person rule
#: Seconds for which an entered one-time code is kept, encrypted, for the worker. Default: until an authenticator's code
#: is no longer accepted (the end of its step of 30 seconds, and the tolerance of the profile), or 90 for codes that the
#: provider sends.
OTP_LIFETIME_SECONDS: int = env.int("COUNTERSIGN_OTP_LIFETIME_SECONDS", default=0)
#: Hours after which an operation that was not sent expires.
PENDING_LIFETIME_HOURS: int = env.int("COUNTERSIGN_PENDING_LIFETIME_HOURS", default=72)
#: Minutes after which a conversion that was not sent expires, since its rate changes.
CONVERSION_LIFETIME_MINUTES: int = env.int("COUNTERSIGN_CONVERSION_LIFETIME_MINUTES", default=30)
#: Amounts above which two people must approve while no approval policy was approved, such as `NGN=5000000,USD=2000`. A
#: currency that is not named keeps its default. Default: `NGN=10000000,USD=10000,USDT=10000`.
SECOND_APPROVAL_ABOVE = settings_values.approval_limits(
    env.list("COUNTERSIGN_SECOND_APPROVAL_ABOVE", default=[])
)
#: Hours for which a person whose account was made or changed with `--break-glass` can neither approve, send nor
#: resolve. Less than 24 only in the sandbox and in a rehearsal.
BREAK_GLASS_RESTRICTION_HOURS: int = env.int("COUNTERSIGN_BREAK_GLASS_RESTRICTION_HOURS", default=24)
#: Hours for which a person who was invited or reactivated, got a role or a group, or had the second factor reset can
#: neither approve, send nor resolve. Changes of people are not affected. Less than 24 only in the sandbox and in a
#: rehearsal.
NEW_RIGHTS_WAIT_HOURS: int = env.int("COUNTERSIGN_NEW_RIGHTS_WAIT_HOURS", default=24)
#: With `1`, an operation whose transaction at the provider is not known holds back every other one of its balance.
#: Otherwise it holds back only those with the same amount, which could be mistaken for it.
STRICT_BALANCE_ORDER: bool = env.bool("COUNTERSIGN_STRICT_BALANCE_ORDER", default=False)
#: Kinds of payments that can be made to approved recipients of the register only, such as `withdrawal,wallet_transfer`:
#: any of `withdrawal`, `transfer`, `wallet_transfer` and `payment`. The approval policies can add kinds, and
#: cannot remove any.
ALLOW_LIST: frozenset[str] = settings_values.allow_listed_kinds(
    env.list("COUNTERSIGN_ALLOW_LIST", default=[])
)
#: Hours before which an approved recipient that was added, or whose name, currency or networks were changed, cannot be
#: paid, by any kind. At most 8760. Where the approval policies require cooling too, the stricter of the two applies:
#: the longer time, the lower ceilings, and one more approval in its place only if both permit it.
RECIPIENT_COOLING_HOURS = settings_values.cooling_hours(
    env.int("COUNTERSIGN_RECIPIENT_COOLING_HOURS", default=0)
)
#: What a recipient can be paid in total before the hours of `COUNTERSIGN_RECIPIENT_COOLING_HOURS` have passed, such as
#: `NGN=50000,USD=100`. Nothing in a currency that is not named.
RECIPIENT_COOLING_CEILINGS = settings_values.amounts_by_currency(
    "COUNTERSIGN_RECIPIENT_COOLING_CEILINGS", env.list("COUNTERSIGN_RECIPIENT_COOLING_CEILINGS", default=[])
)
#: With `1`, a payment that those hours hold can be sent once one person more has approved it than its rules require.
RECIPIENT_COOLING_EXTRA_APPROVAL: bool = env.bool(
    "COUNTERSIGN_RECIPIENT_COOLING_EXTRA_APPROVAL", default=False
)
#: With `0`, a payment to a bank account of an approved recipient waits while the name of the account's holder cannot be
#: read from the bank before sending. Otherwise it is sent under the approved name, and its attempt says so.
SEND_WITHOUT_NAME_CHECK: bool = env.bool("COUNTERSIGN_SEND_WITHOUT_NAME_CHECK", default=True)
ADMINISTRATORS_TO_SEND = 2  # nothing is sent while fewer administrators are active
RELEASE_LIFETIME_MINUTES = 15  # how long a release waits to be sent if it has no one-time code
#: The longest that one call to the provider may take; less than 30 only in the sandbox, for tests.
SEND_DEADLINE_SECONDS: float = env.float("COUNTERSIGN_SEND_DEADLINE_SECONDS", default=30.0)
# A request starts at most this long after its attempt was claimed, or not at all.
SEND_WITHIN_SECONDS = min(5.0, SEND_DEADLINE_SECONDS)
#: For tests: where to kill or freeze a process, such as `send.claimed=kill`. Refused outside the sandbox.
FAULT_POINTS: dict[str, str] = env.dict("COUNTERSIGN_FAULT_POINT", default={})

# == Web server
#: The host names that are served, comma-separated.
ALLOWED_HOSTS: list[str] = env.list("COUNTERSIGN_ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
#: Origins with scheme whose forms are accepted, comma-separated; needed if a proxy changes the host name.
CSRF_TRUSTED_ORIGINS: list[str] = env.list("COUNTERSIGN_TRUSTED_ORIGINS", default=[])
ROOT_URLCONF = "backoffice.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("fr", "Français")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["backoffice.core.formats"]

INSTALLED_APPS = [
    "backoffice.core",  # before Django's own apps, since it replaces two of their commands
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",  # its templates, of which templates/django/forms replaces one
    "csp",
    "django_htmx",
    "django_otp",
    "payments_gateway",
    "backoffice.audit",
    "backoffice.accounts",
    "backoffice.policies",
    "backoffice.recipients",
    "backoffice.ledger",
    "backoffice.operations",
    "backoffice.api_keys",
    "backoffice.webhooks",
    "backoffice.governance",
    "backoffice.reports",
    "backoffice.notifications",
    "backoffice.installation",
    "backoffice.retention",
    "backoffice.sweeper",
    *(["backoffice.demo"] if DEMO else []),
]

MIDDLEWARE = [
    "backoffice.core.telemetry.endpoints.HealthMiddleware",  # first: probes use neither our host name nor TLS
    "backoffice.core.telemetry.http_metrics.RequestMetricsMiddleware",
    "backoffice.core.web.middleware.BrowserPolicyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "backoffice.core.web.middleware.PageCompressionMiddleware",
    "backoffice.core.web.middleware.RequestContextMiddleware",
    "backoffice.webhooks.endpoint.DeliveryMiddleware",  # deliveries go no further
    "backoffice.core.web.page_limit.PageLimitMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "backoffice.accounts.access.AuthenticationMiddleware",
    "backoffice.accounts.access.StaffOnlyMiddleware",
    "backoffice.core.web.submissions.PostRedirectGetMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

FORM_RENDERER = "django.forms.renderers.TemplatesSetting"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "backoffice.core.web.middleware.environment",
                "backoffice.operations.pages.context_processors.section",
                "backoffice.operations.pages.context_processors.waiting_count",
                "backoffice.operations.pages.context_processors.payments_pause",
                "backoffice.operations.pages.context_processors.unrecognised_transactions",
                "backoffice.governance.pages.bootstrap.first_steps",
                "backoffice.api_keys.pages.expiring_keys",
                "backoffice.webhooks.pages.missing_webhooks",
                "backoffice.notifications.pages.undelivered_notifications",
                *(["backoffice.demo.people.demo_context"] if DEMO else []),
            ],
        },
    },
]

# == Database and broker
# No ATOMIC_REQUESTS: services define where a transaction begins and ends.
#: `postgres://user:password@host:5432/name`. Default: SQLite in the data folder.
DATABASES = {
    "default": settings_values.database(
        "COUNTERSIGN_DATABASE_URL",
        env.str("COUNTERSIGN_DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'countersign.sqlite3'}"),
    )
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",  # a writer waits at BEGIN instead of failing at its first write
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
    # The sweeper's jobs query for work every second: opening the file each time was most of what they cost. It is
    # short, because a connection keeps a file that was replaced: up to ten seconds in the sweeper.
    DATABASES["default"]["CONN_MAX_AGE"] = 5
else:
    # A commit returns once it is on disk, whatever the server's default: after a crash a release that was already
    # sent must not be pending again. Nothing is compiled (`jit`): with ten thousand open operations the server expects
    # the queries about approvals to take long, and compiles them for seconds, although they take milliseconds.
    _options = DATABASES["default"].setdefault("OPTIONS", {})
    # A machine or network that is lost closes no connection. Both ends notice it after 20 seconds instead of two hours:
    # we stop waiting for an answer, and the server frees the locks of whoever had no statement running. None of these
    # ends a long statement while both ends are there.
    _our_end = {
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 2,
        "tcp_user_timeout": 20_000,
    }
    _keepalives = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=2"
    _server_end = f"{_keepalives} -c tcp_user_timeout=20s"
    _flags = ("-c jit=off", _server_end, _options.get("options"), "-c synchronous_commit=on")
    _options["options"] = " ".join(flag for flag in _flags if flag)
    # `connect_timeout`: seconds until a page says that the database is away.
    DATABASES["default"]["OPTIONS"] = {"connect_timeout": 5, **_our_end, **_options}
    DATABASES["default"]["CONN_MAX_AGE"] = 60
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
#: The same database, with the role that owns its tables and migrates. Only `manage.py migrate` uses it, so give it to
#: no process that runs. The role of COUNTERSIGN_DATABASE_URL may then read and insert, and change what its work
#: changes. Default: one role for both.
_MIGRATION_DATABASE_URL: str = env.str("COUNTERSIGN_MIGRATION_DATABASE_URL", default="").strip()
MIGRATION_DATABASE: dict[str, Any] = (
    settings_values.database("COUNTERSIGN_MIGRATION_DATABASE_URL", _MIGRATION_DATABASE_URL)
    if _MIGRATION_DATABASE_URL
    else {}
)
#: Seconds that `manage.py migrate` waits for a table that is in use (PostgreSQL). Whoever needs the table waits behind
#: it for so long; then it lets them go on, and tries again. 0 waits without end.
MIGRATION_LOCK_TIMEOUT: int = env.int("COUNTERSIGN_MIGRATION_LOCK_TIMEOUT", default=5)
#: Seconds that a page waits for a row or table which another process holds (PostgreSQL). Then it says that the database
#: is busy, and nothing was done. 0 waits without end.
WEB_LOCK_TIMEOUT: int = env.int("COUNTERSIGN_WEB_LOCK_TIMEOUT", default=10)
#: Seconds that one statement of a page may take (PostgreSQL). Exports and searches have limits of their own. 0 is no
#: limit.
WEB_STATEMENT_TIMEOUT: int = env.int("COUNTERSIGN_WEB_STATEMENT_TIMEOUT", default=30)

# Background work. A message only wakes a worker; the database is the record of what is to be done.
# The default broker keeps its messages in folders under DATA_DIR and needs no server.
#: `redis://…` or `amqp://…`. Default: folders in the data folder.
CELERY_BROKER_URL: str = settings_values.broker(
    "COUNTERSIGN_BROKER_URL", env.str("COUNTERSIGN_BROKER_URL", default="filesystem://localhost//")
)
#: A file of certificate authorities to trust for the broker. Default: those of the system.
BROKER_CA_FILE: str = env.str("COUNTERSIGN_BROKER_CA_FILE", default="")

# == Exports
#: An export with more rows than this is a background export.
EXPORT_STREAM_ROWS: int = env.int("COUNTERSIGN_EXPORT_STREAM_ROWS", default=1_500_000)
#: Threads of one web process that downloads may use at the same time.
EXPORT_STREAMS: int = env.int("COUNTERSIGN_EXPORT_STREAMS", default=2)
#: Background exports that run at the same time.
EXPORTS_AT_ONCE: int = env.int("COUNTERSIGN_EXPORTS_AT_ONCE", default=2)
#: Background exports of one person that may be queued, running or kept.
EXPORTS_PER_PERSON: int = env.int("COUNTERSIGN_EXPORTS_PER_PERSON", default=20)
#: The same for all people together.
EXPORTS_TOTAL: int = env.int("COUNTERSIGN_EXPORTS_TOTAL", default=1000)
#: The same for the exports of one person's scheduled reports, counted separately.
SCHEDULED_EXPORTS_PER_PERSON: int = env.int("COUNTERSIGN_SCHEDULED_EXPORTS_PER_PERSON", default=200)
#: No export starts or continues with less free space, in megabytes, on the disk of the data folder.
EXPORT_DISK_RESERVE_MB: int = env.int("COUNTERSIGN_EXPORT_DISK_RESERVE_MB", default=512)

# == Files
#: The bucket of an S3-compatible object store; it must be private. Default: folders in the data folder.
FILES_BUCKET: str = env.str("COUNTERSIGN_FILES_BUCKET", default="").strip()
#: What the names of all objects begin with, such as `countersign`.
FILES_PREFIX: str = env.str("COUNTERSIGN_FILES_PREFIX", default="").strip().strip("/")
#: The address of an object store that is not that of AWS; https except on loopback.
FILES_ENDPOINT: str = env.str("COUNTERSIGN_FILES_ENDPOINT", default="").strip()
#: The region of the bucket.
FILES_REGION: str = env.str("COUNTERSIGN_FILES_REGION", default="us-east-1").strip()
#: The access key of the object store. Default: the role of the machine, or what else boto3 finds.
FILES_ACCESS_KEY: str = env.str("COUNTERSIGN_FILES_ACCESS_KEY", default="").strip()
#: The secret key that belongs to it.
FILES_SECRET_KEY: str = env.str("COUNTERSIGN_FILES_SECRET_KEY", default="").strip()
#: A file of certificate authorities to trust for the object store. Default: those of the system.
FILES_CA_FILE: str = env.str("COUNTERSIGN_FILES_CA_FILE", default="")

# == Retention
# Days for which rows are kept; 0 keeps them for ever. Evidence is never deleted.
#: Webhook deliveries, from when they were first received.
KEEP_DELIVERIES_DAYS: int = env.int("COUNTERSIGN_KEEP_DELIVERIES_DAYS", default=400)
#: Background exports that ended, in the list of their person. Their files are deleted after seven days.
KEEP_EXPORTS_DAYS: int = env.int("COUNTERSIGN_KEEP_EXPORTS_DAYS", default=400)
#: Notifications that were delivered or dropped.
KEEP_NOTIFICATIONS_DAYS: int = env.int("COUNTERSIGN_KEEP_NOTIFICATIONS_DAYS", default=90)
#: That an event without an audit entry was found, so that it is not notified twice; at least 90, or 0.
KEEP_OCCURRENCES_DAYS: int = env.int("COUNTERSIGN_KEEP_OCCURRENCES_DAYS", default=400)
#: Files of payments that were not submitted.
KEEP_UPLOADS_DAYS: int = env.int("COUNTERSIGN_KEEP_UPLOADS_DAYS", default=30)
#: Balances of each quarter-hour; the overview shows those of 60 days.
KEEP_BALANCE_SNAPSHOTS_DAYS: int = env.int("COUNTERSIGN_KEEP_BALANCE_SNAPSHOTS_DAYS", default=400)
#: What expired: sessions, answers to submitted forms, and values that were read from the provider.
KEEP_EXPIRED_DAYS: int = env.int("COUNTERSIGN_KEEP_EXPIRED_DAYS", default=1)
#: One-time links after they expired.
KEEP_SETUP_LINKS_DAYS: int = env.int("COUNTERSIGN_KEEP_SETUP_LINKS_DAYS", default=30)

# == Email
# Notifications and messages of scheduled reports: a link, no figures.
#: Where emails are sent, such as `smtp+tls://user:password@host:587`. Another machine needs TLS. The default writes
#: those of scheduled reports to the log of the process, and there are no notifications by email.
vars().update(
    settings_values.mail("COUNTERSIGN_EMAIL_URL", env.str("COUNTERSIGN_EMAIL_URL", default="consolemail://"))
)
#: The sender of these emails.
DEFAULT_FROM_EMAIL: str = env.str("COUNTERSIGN_EMAIL_FROM", default="countersign@localhost")
EMAIL_TIMEOUT = 10  # seconds, for each step with the server

# == Notifications
# People choose their channels on their account page. Here are the shared ones. All need COUNTERSIGN_PUBLIC_URL.
#: Shared mailboxes that get the groups of COUNTERSIGN_NOTIFY_SHARED_GROUPS, comma-separated.
NOTIFY_EMAILS: list[str] = env.list("COUNTERSIGN_NOTIFY_EMAILS", default=[])
#: Shared chat and push channels that get the same groups: URLs of Apprise, such as `slack://…`, comma-separated. They
#: hold tokens; COUNTERSIGN_NOTIFY_CHATS_FILE names a file instead.
NOTIFY_CHATS: list[str] = env.list("COUNTERSIGN_NOTIFY_CHATS", default=[])
#: Hosts at which people may have a chat or push channel of their own, comma-separated; `*.example.com` is every name
#: below it. Default: Slack, Discord, Teams, Google Chat, Webex, Telegram, Zulip, ntfy.sh, Pushover, Pushbullet,
#: Opsgenie and PagerDuty.
NOTIFY_CHAT_HOSTS: list[str] = env.list(
    "COUNTERSIGN_NOTIFY_CHAT_HOSTS", default=settings_values.DEFAULT_CHAT_HOSTS
)
#: What shared mailboxes and chat channels get, comma-separated: `waiting`, `decisions`, `outcomes`, `problems`,
#: `payments`, `keys`, `files`, `security`. Default: `problems,payments,keys`.
NOTIFY_SHARED_GROUPS: list[str] = env.list(
    "COUNTERSIGN_NOTIFY_SHARED_GROUPS", default=["problems", "payments", "keys"]
)
#: Addresses that get signed webhooks of notifications, comma-separated; https except on loopback.
NOTIFY_WEBHOOKS: list[str] = env.list("COUNTERSIGN_NOTIFY_WEBHOOKS", default=[])
#: What they get. Default: everything except `security`.
NOTIFY_WEBHOOK_GROUPS: list[str] = env.list(
    "COUNTERSIGN_NOTIFY_WEBHOOK_GROUPS",
    default=["waiting", "decisions", "outcomes", "problems", "payments", "keys", "files"],
)
#: The secret that signs them: at least 32 characters.
NOTIFY_WEBHOOK_SECRET: str = env.str("COUNTERSIGN_NOTIFY_WEBHOOK_SECRET", default="").strip()
#: A file of certificate authorities to trust for these addresses. Default: those of the system.
NOTIFY_CA_FILE: str = env.str("COUNTERSIGN_NOTIFY_CA_FILE", default="")
#: Let chat channels and webhooks connect to private, link-local and loopback addresses, and chat channels without
#: encryption. Set it for servers inside your own network, or behind a proxy of it.
NOTIFY_PRIVATE_ADDRESSES: bool = env.bool("COUNTERSIGN_NOTIFY_PRIVATE_ADDRESSES", default=False)
#: Add the sentence of an operation to messages, with its amount and recipient. Otherwise they hold reference and kind.
NOTIFY_SENTENCES: bool = env.bool("COUNTERSIGN_NOTIFY_SENTENCES", default=False)
#: Language of messages to shared channels, and to people whose language is that of their browser: `en` or `fr`.
NOTIFY_LANGUAGE: str = env.str("COUNTERSIGN_NOTIFY_LANGUAGE", default="en")
#: Hours after which an operation that waits for an approval is escalated to the people of the next level, or to
#: administrators if there is none; and administrators are notified of one that waits to be sent. Default: never.
NOTIFY_ESCALATE_HOURS: int = env.int("COUNTERSIGN_NOTIFY_ESCALATE_HOURS", default=0)
#: Hours after which a message that cannot be delivered is given up.
NOTIFY_GIVE_UP_HOURS: int = env.int("COUNTERSIGN_NOTIFY_GIVE_UP_HOURS", default=72)

# Sign-in
AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "accounts:sign_in"
LOGIN_REDIRECT_URL = "operations:overview"
AUTHENTICATION_BACKENDS = [
    "backoffice.accounts.roles.StaffBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "backoffice.accounts.protection.passwords.BreachedPasswordValidator"},
    {"NAME": "backoffice.accounts.protection.passwords.GuessablePasswordValidator"},
]
#: A sorted file of SHA-1 hashes of breached passwords, as "Have I Been Pwned" offers it: they are refused. It is read
#: here; no service is asked. Default: the 30,000 most common ones alone.
BREACHED_PASSWORDS_FILE: str = settings_values.hash_list(
    "COUNTERSIGN_BREACHED_PASSWORDS_FILE", env.str("COUNTERSIGN_BREACHED_PASSWORDS_FILE", default="")
)
SESSION_ENGINE = "backoffice.accounts.sessions"
SESSION_IDLE_SECONDS = 15 * 60
SESSION_ABSOLUTE_SECONDS = 12 * 60 * 60

# == Transport and monitoring
# A `__Host-` cookie needs TLS, which the sandbox on loopback does not have.
_TLS = not _IN_SANDBOX
SESSION_COOKIE_NAME = "__Host-session" if _TLS else "countersign_session"
CSRF_COOKIE_NAME = "__Host-csrf" if _TLS else "countersign_csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _TLS
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "backoffice.accounts.access.csrf_failure"
SECURE_SSL_REDIRECT = _TLS
SECURE_REDIRECT_EXEMPT = [
    r"^metrics$",  # read on this machine, without the proxy that terminates TLS
    r"^hooks/",  # a program that sends without TLS is refused: a redirect would hide the leak
]
#: Bearer token with which a monitoring system on another machine reads `/metrics`; at least 16 characters.
METRICS_TOKEN: str = env.str("COUNTERSIGN_METRICS_TOKEN", default="").strip()
SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60 if _TLS else 0
#: Require TLS for every subdomain of the host name as well (HSTS). With `0` for this host name alone, where a subdomain
#: has no TLS.
SECURE_HSTS_INCLUDE_SUBDOMAINS: bool = env.bool("COUNTERSIGN_HSTS_SUBDOMAINS", default=True)
#: Let browsers preload the HSTS rule before the first visit. It affects the whole domain: only its owner may set it.
SECURE_HSTS_PRELOAD: bool = env.bool("COUNTERSIGN_HSTS_PRELOAD", default=False)
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]  # they demand the two HSTS settings above
#: Trust `X-Forwarded-Proto` and the last `X-Forwarded-For` of the one proxy in front. Set it behind a proxy that ends
#: TLS: without it every request is redirected to https for ever.
TRUST_FORWARDED_FOR: bool = env.bool("COUNTERSIGN_BEHIND_PROXY", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUST_FORWARDED_FOR else None
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "object-src": [NONE],  # as the default; ASVS 3.4.3 asks for it by name
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

# Static files, compressed and named by their content.
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
_bucket = {"bucket_name": FILES_BUCKET, "endpoint_url": FILES_ENDPOINT, "region_name": FILES_REGION}
_bucket |= {"access_key": FILES_ACCESS_KEY, "secret_key": FILES_SECRET_KEY, "verify": FILES_CA_FILE}
STORAGES: dict[str, dict[str, Any]] = {
    **settings_values.file_stores(DATA_DIR, _bucket, prefix=FILES_PREFIX),
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "backoffice.core.storage.static_files.ReleaseStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = DEBUG

#: Send errors to Sentry, or a server that speaks its protocol: types of exceptions and places in the code, no texts, no
#: values, no requests. Needs the extra `sentry`. Default: nothing is sent.
SENTRY_DSN: str = env.str("COUNTERSIGN_SENTRY_DSN", default="").strip()
#: Send traces by OpenTelemetry (OTLP over HTTP) to this address, such as `http://127.0.0.1:4318/v1/traces`: routes and
#: durations, no paths and no values. Needs the extra `otel`. Default: nothing is sent.
OTEL_ENDPOINT: str = env.str("COUNTERSIGN_OTEL_ENDPOINT", default="").strip()
_EXTRAS = (
    ("COUNTERSIGN_SENTRY_DSN", "sentry", SENTRY_DSN, "sentry_sdk"),
    ("COUNTERSIGN_OTEL_ENDPOINT", "otel", OTEL_ENDPOINT, "opentelemetry.exporter"),
)
# Settings whose packages are not installed, and the extra that has them; `check --deploy` warns.
MISSING_EXTRAS = {
    name: extra
    for name, extra, value, package in _EXTRAS
    if value and not settings_values.is_installed(package)
}
_REPORTS_ERRORS = bool(SENTRY_DSN) and "COUNTERSIGN_SENTRY_DSN" not in MISSING_EXTRAS
if OTEL_ENDPOINT and "COUNTERSIGN_OTEL_ENDPOINT" not in MISSING_EXTRAS:
    INSTALLED_APPS.append("backoffice.core.telemetry.tracing.TracingConfig")
    MIDDLEWARE.insert(1, "backoffice.core.telemetry.tracing.TracingMiddleware")
#: The level of the log, which goes to standard error.
_LOG_LEVEL: str = env.str("COUNTERSIGN_LOG_LEVEL", default="INFO")
#: The form of the log: `json`, one object per line, or `text`. Default: `text` in the sandbox, otherwise `json`.
LOG_FORMAT: str = env.str("COUNTERSIGN_LOG_FORMAT", default="text" if _IN_SANDBOX else "json").strip()
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "context": {"()": "backoffice.core.logs.ContextFilter"},
    },
    "formatters": {
        "text": {
            "class": "backoffice.core.logs.RedactingFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s",
        },
        "json": {"class": "backoffice.core.logs.JsonFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "filters": ["context"],
            "formatter": "json" if LOG_FORMAT == "json" else "text",
        },
        **(
            {"reports": {"()": "backoffice.core.telemetry.error_reports.ErrorReportHandler"}}
            if _REPORTS_ERRORS
            else {}
        ),
    },
    "root": {"handlers": ["stderr", *(["reports"] if _REPORTS_ERRORS else [])], "level": _LOG_LEVEL},
    "loggers": {
        "django": {"handlers": []},  # Django's own console and mail handlers would bypass our formatter
        "django.request": {"level": "ERROR"},
        "waitress": {"level": "WARNING"},
        "waitress.queue": {"level": "ERROR"},  # a warning for each request that waits for a thread
        "apprise": {"level": "ERROR"},  # below it, it logs what it sends
    },
}

# Of the variables above; the deployment check warns of those that are set and unknown.
KNOWN_VARIABLES: list[str] = sorted(env.names_read)
UNKNOWN_VARIABLES: list[str] = env.unknown()
refuse_unsafe(globals())
