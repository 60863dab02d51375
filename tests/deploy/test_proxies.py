"""The shipped proxy configurations at work, in front of a web process that is there or away."""

import os
import re
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest
import yaml

from tests.faults.harness.processes import wait_until
from tests.requirements import listens
from tools.processes import ROOT, free_port
from tools.rehearsal import nginx

DEPLOY = ROOT / "deploy"
METRICS_FROM = "192.0.2.9"  # in both configurations, to be replaced
CREDENTIAL = "XqK2-one-time"
SECONDS = 10


class Answers(BaseHTTPRequestHandler):
    """A web process that answers every page, and keeps the headers of the last request."""

    seen: ClassVar[dict[str, str]] = {}

    def do_GET(self) -> None:
        Answers.seen = dict(self.headers)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def web_port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join(SECONDS)


Ask = Callable[..., int]
"""The status of the answer to this path: a GET, or a POST of this body."""
RunProxy = Callable[..., AbstractContextManager[Ask]]


@contextmanager
def running(command: list[str], folder: Path, port: int, **variables: str) -> Iterator[None]:
    with (folder / "output.log").open("wb") as log:
        environment = {**os.environ, "HOME": str(folder), **variables}
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait_until(lambda: listens(port), "the proxy serves")
            yield
        finally:
            process.terminate()
            process.wait(SECONDS)


def status_of(connection: HTTPConnection, path: str, body: bytes | None) -> int:
    connection.request("GET" if body is None else "POST", path, body)
    status = connection.getresponse().status
    connection.close()
    return status


@contextmanager
def run_nginx(folder: Path, web_port: int, *, metrics_from: str = METRICS_FROM) -> Iterator[Ask]:
    port = free_port()
    ports = {"https_port": port, "http_port": free_port(), "web_port": web_port}
    configuration, certificate = nginx.write_configuration(folder, **ports)
    site = folder / "countersign.nginx.conf"
    site.write_text(site.read_text().replace(f"allow {METRICS_FROM};", f"allow {metrics_from};"))
    trusted = ssl.create_default_context(cafile=str(certificate))
    with running([str(nginx.PROGRAM), "-c", str(configuration)], folder, port):
        yield lambda path, body=None: status_of(
            HTTPSConnection("localhost", port, timeout=SECONDS, context=trusted), path, body
        )


@contextmanager
def run_caddy(folder: Path, web_port: int, *, metrics_from: str = METRICS_FROM) -> Iterator[Ask]:
    """Without TLS, for which Caddy would ask an authority."""
    port, text = free_port(), (DEPLOY / "Caddyfile").read_text()
    text = re.sub(r"^\ttls \{.*?^\t\}$", "", text, flags=re.MULTILINE | re.DOTALL)
    site = folder / "Caddyfile"
    site.write_text(text.replace("\n{\n", "\n{\n\tadmin off\n", 1))
    command = ["caddy", "run", "--config", str(site), "--adapter", "caddyfile"]
    own = {"SITE_ADDRESS": f"http://localhost:{port}", "UPSTREAM": f"127.0.0.1:{web_port}"}
    with running(command, folder, port, **own, METRICS_FROM=metrics_from):
        yield lambda path, body=None: status_of(
            HTTPConnection("localhost", port, timeout=SECONDS), path, body
        )


@pytest.fixture(
    params=[
        pytest.param(run_nginx, marks=pytest.mark.nginx, id="nginx"),
        pytest.param(run_caddy, marks=pytest.mark.caddy, id="Caddy"),
    ]
)
def run_proxy(request: pytest.FixtureRequest) -> RunProxy:
    chosen: RunProxy = request.param
    return chosen


@pytest.mark.parametrize(("metrics_from", "status"), [(METRICS_FROM, 403), ("127.0.0.1", 200)])
def test_metrics_are_for_the_address_of_prometheus_alone(
    tmp_path: Path, web_port: int, run_proxy: RunProxy, metrics_from: str, status: int
) -> None:
    with run_proxy(tmp_path, web_port, metrics_from=metrics_from) as ask:
        assert ask("/account/sign-in/") == 200
        assert ask("/metrics") == status


@pytest.mark.parametrize("path", ["/", "/metrics", "/account/set-up/x/", "/hooks/x/"])
def test_every_request_says_that_a_proxy_passed_it_on(
    tmp_path: Path, web_port: int, run_proxy: RunProxy, path: str
) -> None:
    """Otherwise the web process took everybody for a program of its own machine, which needs no token for metrics."""
    Answers.seen = {}
    with run_proxy(tmp_path, web_port, metrics_from="127.0.0.1") as ask:
        assert ask(path) == 200
    assert Answers.seen["X-Forwarded-For"] == "127.0.0.1"
    assert Answers.seen["X-Forwarded-Proto"] == "https"


def test_no_log_has_a_one_time_link_or_the_callback_url_while_the_web_process_is_away(
    tmp_path: Path, run_proxy: RunProxy
) -> None:
    with run_proxy(tmp_path, free_port()) as ask:
        assert ask("/account/sign-in/") == 502
        assert ask(f"/account/set-up/{CREDENTIAL}/") == 502
        assert ask(f"/hooks/{CREDENTIAL}/", b"{}") == 502
    logs = {file.name: file.read_text() for file in tmp_path.glob("*.log")}
    assert any("refused" in log for log in logs.values())
    assert [name for name, log in logs.items() if CREDENTIAL in log] == []


def test_prometheus_asks_as_the_proxies_allow() -> None:
    [scraped] = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yml").read_text())["scrape_configs"]
    site = (DEPLOY / "nginx.conf").read_text()
    assert (scraped["scheme"], scraped["metrics_path"]) == ("https", "/metrics")
    assert scraped["static_configs"][0]["targets"] == [re.findall(r"server_name (\S+);", site)[0]]
    assert scraped["authorization"]["credentials_file"]
    assert re.search(rf"location = /metrics {{\s+allow {METRICS_FROM};.*\n\s+deny all;", site)
    assert f"{{$METRICS_FROM:{METRICS_FROM}}}" in (DEPLOY / "Caddyfile").read_text()
