"""The shipped units and proxy configurations are accepted by the programs that read them, where these exist."""

import re
import shutil
import socket
import ssl
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from backoffice.core.telemetry.endpoints import LIVE
from backoffice.installation.questions import answered
from backoffice.web_server import MAX_BODY_BYTES, MAX_DELIVERY_BYTES
from tests.faults.harness.processes import wait_until
from tests.installation.test_questions import GIVEN
from tests.requirements import listens
from tools.processes import ROOT, free_port
from tools.rehearsal import nginx

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MOST_EXPOSURE = 2.0  # of 10, by `systemd-analyze security`; below 2 is called OK
SYSTEMD = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(SYSTEMD is None, reason="needs systemd-analyze")


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_every_process_limits_the_lookup_of_a_host_name() -> None:
    """The deadline of a call to the provider does not bound it."""
    options = "RES_OPTIONS=timeout:2 attempts:2"
    assert all(f'\nEnvironment="{options}"\n' in unit.read_text() for unit in UNITS)
    assert options in (DEPLOY / "Dockerfile").read_text().replace('"', "")


@needs_systemd
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    programs = str(Path(sys.executable).parent)
    for unit in (DEPLOY / "systemd").iterdir():
        text = re.sub(r"/srv/countersign/\w+/\.venv/bin", programs, unit.read_text())
        (tmp_path / unit.name).write_text(text)
    done = run("systemd-analyze", "verify", "--man=no", *map(str, tmp_path.iterdir()))
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_confined(unit: Path) -> None:
    done = run("systemd-analyze", "security", "--offline=true", "--no-pager", str(unit))
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert exposure is not None
    assert float(exposure[1]) <= MOST_EXPOSURE


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_ends_with_all_its_processes_and_has_no_secret(unit: Path) -> None:
    text = unit.read_text()
    assert "KillMode=control-group" in text
    assert ("env.migrate" in text) is (unit.stem == "countersign-migrate")
    assert re.findall(r"COUNTERSIGN_\w*(?:KEY|SECRET|TOKEN|PASSWORD)\w*=", text) == []
    stop = re.search(r"TimeoutStopSec=(\d+)", text)
    if unit.stem in {"countersign-worker", "countersign-sweeper"}:
        assert stop is not None
        assert int(stop[1]) > 30  # seconds that a request to the provider may take


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_release_is_migrated_from_another_folder_than_processes_run_in(unit: Path) -> None:
    """What restarts before the migrations are done starts with the last release."""
    folders = set(re.findall(r"/srv/countersign/(\w+)", unit.read_text()))
    assert folders == {"next" if unit.stem == "countersign-migrate" else "current"}


def test_the_upgrade_switches_processes_to_the_release_after_its_migrations() -> None:
    page = (ROOT / "docs/operator/upgrade.md").read_text().partition("## Go back")[0]
    order = ["/srv/countersign/next\n", "systemctl start countersign-migrate", "/srv/countersign/current\n"]
    order += ["cp deploy/systemd/countersign-*", "systemctl restart"]
    places = [page.index(command) for command in order]
    assert places == sorted(places)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_may_write_to_every_folder_that_setup_suggests_and_to_no_other(unit: Path) -> None:
    text, values = unit.read_text(), answered(GIVEN, {}, None)
    assert "ProtectSystem=strict" in text
    assert "ReadWritePaths" not in text
    [states] = re.findall(r"^StateDirectory=(.*)$", text, re.MULTILINE)
    suggested = [values["COUNTERSIGN_DATA_DIR"], values["COUNTERSIGN_JOURNAL_DIR"]]
    suggested += [str(Path(urlsplit(values["COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS"]).path).parent)]
    assert [f"/var/lib/{name}" for name in states.split()] == suggested
    page = (ROOT / "docs/operator/deploy.md").read_text()
    assert [folder for folder in suggested if f"| `{folder}` |" not in page] == []


@pytest.mark.nginx
def test_nginx_accepts_its_configuration(tmp_path: Path) -> None:
    ports = {"https_port": 443, "http_port": 80, "web_port": 8000}
    configuration, _certificate = nginx.write_configuration(tmp_path, **ports)
    done = run(str(nginx.PROGRAM), "-t", "-c", str(configuration))
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr


@pytest.fixture
def https_port(tmp_path: Path) -> Iterator[int]:
    """A port where nginx serves TLS as its shipped configuration says."""
    port = free_port()
    ports = {"https_port": port, "http_port": free_port(), "web_port": free_port()}
    configuration, _certificate = nginx.write_configuration(tmp_path, **ports)
    with subprocess.Popen([str(nginx.PROGRAM), "-c", str(configuration)], stderr=subprocess.PIPE) as process:
        wait_until(lambda: listens(port), "nginx serves TLS")
        yield port
        process.terminate()


def agreed(port: int, version: ssl.TLSVersion, ciphers: str = "ALL:@SECLEVEL=0") -> tuple[str, str] | None:
    """Version and cipher suite that a client of this version alone agrees on with the proxy; None if it is refused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers(ciphers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the versions that have to be refused
        context.minimum_version = context.maximum_version = version
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
            context.wrap_socket(plain) as connection,
        ):
            return str(connection.version()), (connection.cipher() or ("",))[0]
    except (ssl.SSLError, ConnectionError):
        return None


@pytest.mark.nginx
def test_nginx_speaks_tls_1_2_and_1_3_alone(https_port: int) -> None:
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        assert agreed(https_port, version) is None
    for version, name in ((ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")):
        assert (agreed(https_port, version) or ("",))[0] == name


@pytest.mark.nginx
def test_nginx_agrees_on_recommended_cipher_suites_alone_and_prefers_the_strongest(https_port: int) -> None:
    tls_1_2 = ssl.TLSVersion.TLSv1_2
    for weak in ("AES256-GCM-SHA384", "AES128-SHA", "ECDHE-ECDSA-AES256-SHA384", "ECDHE-ECDSA-AES128-SHA"):
        assert agreed(https_port, tls_1_2, f"{weak}:@SECLEVEL=0") is None
    weakest_first = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
    assert agreed(https_port, tls_1_2, weakest_first) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")


def test_caddy_speaks_tls_1_2_and_1_3_alone_with_recommended_cipher_suites() -> None:
    text = (DEPLOY / "Caddyfile").read_text()
    assert re.findall(r"^\t\tprotocols (.*)$", text, re.MULTILINE) == ["tls1.2 tls1.3"]
    [ciphers] = re.findall(r"^\t\tciphers (.*)$", text, re.MULTILINE)
    recommended = re.compile(
        r"TLS_ECDHE_(ECDSA|RSA)_WITH_(AES_(128|256)_GCM_SHA\d+|CHACHA20_POLY1305_SHA256)"
    )
    assert [suite for suite in ciphers.split() if not recommended.fullmatch(suite)] == []
    assert "AES_256" in ciphers.split()[0]


@pytest.mark.caddy
def test_caddy_accepts_its_configuration(tmp_path: Path) -> None:
    site = tmp_path / "Caddyfile"
    site.write_text((DEPLOY / "Caddyfile").read_text())
    done = run(
        "env", f"HOME={tmp_path}", "caddy", "validate", "--config", str(site), "--adapter", "caddyfile"
    )
    assert done.returncode == 0, done.stderr
    assert run("caddy", "fmt", str(site)).stdout == site.read_text()


def test_a_proxy_accepts_as_large_a_body_as_the_server() -> None:
    [site, deliveries] = re.findall(r"client_max_body_size (\d+)(k?);", (DEPLOY / "nginx.conf").read_text())
    [caddy] = re.findall(r"\tmax_size (\d+)MB", (DEPLOY / "Caddyfile").read_text())
    assert (site, int(caddy) * 1_000_000) == ((str(MAX_BODY_BYTES), ""), MAX_BODY_BYTES)
    assert (int(deliveries[0]) * 1024, deliveries[1]) == (MAX_DELIVERY_BYTES, "k")


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile"])
def test_a_proxy_replaces_what_a_client_says_about_itself(name: str) -> None:
    text = (DEPLOY / name).read_text()
    assert re.search(r"X-Forwarded-For (?:\$remote_addr;|\{remote_host\})", text)
    assert re.search(r"X-Forwarded-Proto (?:\$scheme;|https)", text)
    assert "$proxy_add_x_forwarded_for" not in text


def test_the_compose_file_names_only_what_it_declares_or_what_is_there() -> None:
    """What `docker compose config` finds besides the form, which needs no container engine."""
    compose = yaml.safe_load((DEPLOY / "compose.yml").read_text())
    services = compose["services"]
    unknown = []
    for name, service in services.items():
        mounted = [one.split(":")[0] for one in service.get("volumes", [])]
        volumes = [one for one in mounted if not (DEPLOY / one).is_file()]
        for kind, named, declared in (
            ("volume", volumes, compose["volumes"]),
            ("network", service["networks"], compose["networks"]),
            ("secret", service.get("secrets", []), compose["secrets"]),
            ("service", service.get("depends_on", []), services),
        ):
            unknown += [(name, kind, one) for one in named if one not in declared]
    assert unknown == []
    checked = {name for name, service in services.items() if "healthcheck" in service}
    assert services["proxy"]["env_file"] == ["proxy.env"]  # without the provider's key
    # The image's server answers on its own socket alone while it makes the database.
    assert "--host" in services["postgres"]["healthcheck"]["test"]
    needs_health = {
        needed
        for service in services.values()
        if isinstance(service.get("depends_on"), dict)
        for needed, how in service["depends_on"].items()
        if how["condition"] == "service_healthy"
    }
    assert needs_health <= checked


SECRETS_BESIDE_COMPOSE = ("deploy/*.env", "deploy/postgres-password")


def test_the_secrets_beside_the_compose_file_enter_neither_an_image_nor_the_repository() -> None:
    """The image is built from the folder above them, in which they are made (docs/operator/deploy.md)."""
    compose = yaml.safe_load((DEPLOY / "compose.yml").read_text())
    files = {one for service in compose["services"].values() for one in service.get("env_file", [])}
    files |= {secret["file"] for secret in compose["secrets"].values()}
    assert "countersign.env" in files
    assert [
        one for one in files if not any(Path("deploy", one).match(p) for p in SECRETS_BESIDE_COMPOSE)
    ] == []
    assert set(SECRETS_BESIDE_COMPOSE) <= set((ROOT / ".dockerignore").read_text().splitlines())
    kept_out = {f"/{pattern}" for pattern in SECRETS_BESIDE_COMPOSE}
    assert kept_out <= set((ROOT / ".gitignore").read_text().splitlines())


def test_an_installed_release_has_no_secrets_of_a_compose_file_in_its_source(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for folder in ("backoffice", "payments_gateway", "templates", "static", "locale"):
        (source / folder).mkdir(parents=True)
    shutil.copytree(DEPLOY, source / "deploy")
    for file in ("manage.py", "gunicorn.conf.py", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / file, source)
    secret_files = ("countersign.env", "proxy.env", "postgres-password")
    for name in secret_files:
        (source / "deploy" / name).write_text("secret")
    # It ends where it would make the environment, after the files were copied.
    done = run("env", "PYTHON=false", "sh", str(DEPLOY / "install.sh"), str(source), str(target))
    assert done.returncode != 0
    assert (target / "deploy" / "nginx.conf").exists()
    assert [name for name in secret_files if (target / "deploy" / name).exists()] == []


def test_the_daily_container_runs_what_the_daily_unit_runs_and_web_is_probed() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yml").read_text())["services"]
    unit = (DEPLOY / "systemd" / "countersign-daily.service").read_text()
    [command] = re.findall(r"^ExecStart=\S+ (manage\.py .*)$", unit, re.MULTILINE)
    assert f"python {command};" in services["daily"]["command"][-1]
    done = run("sh", "-n", "-c", services["daily"]["command"][-1].replace("$$", "$"))
    assert (done.returncode, done.stderr) == (0, "")
    program, *arguments = services["web"]["healthcheck"]["test"][1:]
    assert program == "python"
    assert f"http://127.0.0.1:8000{LIVE}" in arguments[-1]
    refused = run(sys.executable, *(one.replace(":8000", f":{free_port()}") for one in arguments))
    assert "Connection refused" in refused.stderr


def test_containers_run_without_root_on_a_root_that_cannot_be_written() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yml").read_text())["services"]
    for name in ("web", "worker", "sweeper", "daily", "setup"):
        service = services[name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert service["security_opt"] == ["no-new-privileges:true"]
        knows_owner = "owner-secrets:/owner-secrets" in service["volumes"]
        assert knows_owner is (name == "setup")  # the password of the role that owns the tables
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001:10001"]
    assert "RUN /source/deploy/install.sh /source /srv/countersign extras" in lines
    assert not [line for line in lines if "pip install" in line]
