"""`make rehearse`: the production form on this machine, against the sandbox, with one payment over TLS.

PostgreSQL with two roles, Redis or RabbitMQ, gunicorn behind the shipped nginx configuration, every check of
production, set up by `manage.py setup`. Every page says REHEARSAL. Without nginx, gunicorn terminates TLS itself.
"""

import argparse
import json
import os
import re
import secrets
import sys
import tempfile
import time
from base64 import b32decode
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import requests
from django_otp.oath import TOTP
from psycopg.sql import SQL, Identifier

from backoffice.installation import preparation
from payments_gateway.sandbox import API_KEY
from tools import smoke
from tools.browser import BrowserError, HttpBrowser
from tools.processes import Stack, StackError, free_port, run_python
from tools.rehearsal import nginx
from tools.rehearsal.certificates import write_certificate

DATABASE = os.environ.get("REHEARSAL_DATABASE", "postgres://postgres@127.0.0.1:5432/countersign_rehearsal")
BROKER = os.environ.get("REHEARSAL_BROKER", "redis://127.0.0.1:6379/7")
ADMINISTRATORS = ("Zainab Musa <zainab@example.com>", "Kemi Balogun <kemi@example.com>")
PEOPLE = {"Preparer": ("Tunde Bello", "tunde@example.com"), "Approver": ("Amara Okafor", "amara@example.com")}
LINK = re.compile(r"https://\S+/account/set-up/\S+")
SECRET = re.compile(r"<code>([A-Z2-7 ]+)</code>")


@dataclass
class Rehearsal(Stack):
    """The processes of production; `web_port` is gunicorn's, `https_port` the one that people use."""

    https_port: int = 0
    certificate: Path | None = None

    @property
    def address(self) -> str:
        """Where people reach it."""
        return f"https://localhost:{self.https_port}"

    @property
    def env_file(self) -> Path:
        """The variables that setup stored for the processes that run."""
        return self.folder / "env"

    @property
    def variables(self) -> dict[str, str]:
        """What setup stored: the processes get nothing else."""
        return preparation.read_variables(self.env_file)

    def start(self) -> None:
        """Drop what an earlier rehearsal left, set everything up, and return once pages respond over TLS."""
        drop_database()
        self.start_sandbox()
        self.set_sandbox(settle_after=self.settle_after)
        self.links = LINK.findall(self.set_up())
        self.start_proxied_web()
        worker = ("-m", "celery", "-A", "backoffice.celery", "worker", "--concurrency", "2")
        self.run("worker", *worker)
        self.run("sweeper", "manage.py", "sweep")

    def set_up(self) -> str:
        """Run `manage.py setup` as an operator would, and return what it printed. Raises StackError."""
        keys = self.folder / "webhook-keys.pem"
        keys.write_text(self.webhook_public_keys())
        (self.folder / "data").mkdir(mode=0o700)
        given = {
            "COUNTERSIGN_ENVIRONMENT": "rehearsal",
            "COUNTERSIGN_PUBLIC_URL": self.address,
            "COUNTERSIGN_DATA_DIR": str(self.folder / "data"),
            "COUNTERSIGN_BROKER_URL": BROKER,
            "COUNTERSIGN_GATEWAY_URL": f"{self.sandbox}/v2",
            "COUNTERSIGN_GATEWAY_API_KEY": API_KEY,
            "COUNTERSIGN_GATEWAY_API_USER": "countersign-demo",
            "COUNTERSIGN_BEHIND_PROXY": "true" if nginx.PROGRAM else "false",
            "COUNTERSIGN_SETUP_DATABASE_URL": DATABASE,
        }
        by_hand = {
            "COUNTERSIGN_WEBHOOK_KEYS": str(keys),
            "COUNTERSIGN_EMAIL_URL": f"filemail:///{self.folder / 'mailbox'}",
            "COUNTERSIGN_NEW_RIGHTS_WAIT_HOURS": "0",  # a day in production
            "COUNTERSIGN_BREAK_GLASS_RESTRICTION_HOURS": "0",
        }
        preparation.add_variables(self.env_file, by_hand)
        people = [part for person in ADMINISTRATORS for part in ("--administrator", person)]
        options = ("--env-file", str(self.env_file), "--no-input", *people)
        done = run_python("manage.py", "setup", *options, own={**given, **by_hand})
        if done.returncode:
            raise StackError(f"Setup failed:\n{done.stdout}{done.stderr}")
        self.warnings = re.findall(r"\((\w+\.[WE]\d+)\)", done.stderr + done.stdout)
        return done.stdout

    def start_proxied_web(self) -> None:
        """gunicorn behind nginx, or with TLS of its own."""
        if nginx.PROGRAM is None:
            self.certificate, key = write_certificate(self.folder)
            self.web_port = self.https_port
            # The worker of production speaks no TLS.
            tls = ("--worker-class", "gthread", "--certfile", str(self.certificate), "--keyfile", str(key))
            self.run("web", *self._gunicorn(), *tls)
        else:
            ports = {"https_port": self.https_port, "http_port": free_port(), "web_port": self.web_port}
            configuration, self.certificate = nginx.write_configuration(self.folder, **ports)
            self.run("web", *self._gunicorn())
            self.run_program("proxy", nginx.PROGRAM, "-c", str(configuration))
        self.wait_for("web", f"{self.address}/account/sign-in/", certificate=str(self.certificate))

    def browser(self) -> HttpBrowser:
        """A browser that trusts the certificate of this rehearsal."""
        browser = HttpBrowser(self.address)
        browser.session.trust_env = False  # a bundle named there would take precedence
        browser.session.verify = str(self.certificate)
        return browser

    def count_in_logs(self, text: str) -> int:
        """How often the text is in the logs of the processes."""
        return sum(log.read_text(errors="replace").count(text) for log in (self.folder / "logs").iterdir())

    def _gunicorn(self) -> tuple[str, ...]:
        bind = ("--bind", f"127.0.0.1:{self.web_port}", "--log-level", "warning")
        return ("-m", "gunicorn", *bind)


def drop_database() -> None:
    """Drop the database and the roles of the rehearsal, if they exist."""
    name = urlsplit(DATABASE).path.strip("/")
    with psycopg.connect(urlsplit(DATABASE)._replace(path="/postgres").geturl(), autocommit=True) as server:
        server.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))
        for role in (name, f"{name}_owner"):
            server.execute(SQL("DROP ROLE IF EXISTS {}").format(Identifier(role)))


def enrol(browser: HttpBrowser, link: str) -> None:
    """Open a one-time link, choose a password, and set up an authenticator and recovery codes."""
    password = secrets.token_urlsafe(18)
    page = browser.get(urlsplit(link).path)
    page = browser.submit(page, "", new_password=password, repeated=password)
    shown = SECRET.search(page.text)
    if shown is None:
        raise BrowserError(f"{page.url} shows no key for an authenticator")
    secret = shown[1].replace(" ", "")
    code = TOTP(b32decode(secret + "=" * (-len(secret) % 8))).token()
    page = browser.submit(page, "/account/authenticator/", code=f"{code:06}")
    browser.submit(page, "/account/recovery-codes/stored/")


def run(rehearsal: Rehearsal) -> dict[str, Any]:
    """Both administrators sign in, two people are added, and one payment is prepared, approved, sent, confirmed."""
    for link in rehearsal.links:
        with rehearsal.browser() as administrator:
            enrol(administrator, link)
    browsers = {role: rehearsal.browser() for role in PEOPLE}
    for role, (name, email) in PEOPLE.items():
        options = ("--name", name, "--role", role, "--break-glass", "Rehearsal")
        enrol(browsers[role], LINK.findall(rehearsal.manage("staff", "create", email, *options))[0])
    preparer, approver = browsers["Preparer"], browsers["Approver"]
    operation = smoke.prepare(preparer)
    page = approver.get(operation)
    approver.submit(page, "/approve-and-send/", otp=rehearsal.one_time_code())
    status = smoke.wait_until_closed(approver, operation)
    rehearsal.manage("mirror")
    rehearsal.manage("check_integrity", "--full")
    ledger = requests.get(f"{rehearsal.sandbox}/_sandbox/ledger", timeout=10).json()
    return {
        "status": status,
        **smoke.provider_debits(ledger),
        "audit_entries": smoke.verified_entries(rehearsal),
        "says_rehearsal": all("REHEARSAL" in shown.text for shown in (page, preparer.get("/"))),
        "refused_by_database": rehearsal.count_in_logs("permission denied"),
        "tls": "nginx" if nginx.PROGRAM else "gunicorn",
        "database_role": urlsplit(rehearsal.variables["COUNTERSIGN_DATABASE_URL"]).username,
        "warnings": sorted(set(rehearsal.warnings)),
    }


def main() -> int:
    """Print one line of JSON; 0 only if exactly one debit of the right amount was made and no check warned."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--stay", action="store_true", help="keep everything running until Ctrl-C")
    parser.add_argument("--port", type=int, default=0, help="of https (default: a free one)")
    options = parser.parse_args()
    began = time.monotonic()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="countersign-rehearsal-") as folder,
            Rehearsal(
                Path(folder), free_port(), free_port(), https_port=options.port or free_port()
            ) as rehearsal,
        ):
            observations = run(rehearsal)
            observations["seconds"] = round(time.monotonic() - began, 1)
            print(json.dumps(observations), flush=True)
            if options.stay:
                _stay(rehearsal)
    except (StackError, BrowserError, psycopg.OperationalError) as exc:
        print(json.dumps({"status": "error", "problem": str(exc)}))
        return 1
    drop_database()
    return 0 if is_passed(observations) else 1


def is_passed(observations: dict[str, Any]) -> bool:
    """Whether the payment was made once, as in production, and nothing warned."""
    return bool(
        observations["status"] == "succeeded"
        and observations["debits_at_provider"] == 1
        and observations["audit_entries"] > 0
        and observations["says_rehearsal"]
        and observations["refused_by_database"] == 0
        and observations["warnings"] == []
    )


def _stay(rehearsal: Rehearsal) -> None:
    """Wait for Ctrl-C."""
    print(f"{rehearsal.address} (certificate: {rehearsal.certificate}). Ctrl-C stops and deletes everything.")
    try:
        while all(process.poll() is None for process in rehearsal.processes.values()):
            time.sleep(0.5)
    except KeyboardInterrupt:
        print("Stopping …")


if __name__ == "__main__":
    sys.exit(main())
