"""The metrics by their conventions, and everything that names them: alert rules, dashboard and documentation."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.apps import apps
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from backoffice.core.models import ProcessRow, ProviderCallCount
from backoffice.operations import jobs
from backoffice.operations.monitoring.metrics import render_metrics
from tools.processes import ROOT

pytestmark = pytest.mark.django_db
FOLDER = ROOT / "deploy" / "monitoring"
DOCS = ROOT / "docs" / "operator"
NAME = re.compile(r"countersign_\w+")
RENAMED = {"job": "exported_job"}  # by Prometheus, since the target has this label
RULES = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]


@pytest.fixture(autouse=True)
def something_to_report(client: Client, db: None) -> None:
    now = timezone.now()
    ProcessRow.objects.create(
        machine="a",
        kind="web",
        pid=1,
        started_at=now,
        at=now,
        report={"disk_free": 5, "failed_parts": ["broker"], "failed_rows": {"run_due_schedules": 2}},
    )
    ProviderCallCount.objects.create(minute=now, call="read", outcome="ok", calls=3, seconds=1.5, slowest=1)
    jobs.record_heartbeat("send_due")
    client.get("/account/sign-in/")


def samples() -> dict[str, set[str]]:
    """The names of the samples, and the labels of each as they are sent."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(render_metrics().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def families() -> set[str]:
    return {line.split()[2] for line in render_metrics().decode().splitlines() if line.startswith("# HELP")}


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    yield from (target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", []))


def test_names_have_prefix_and_base_units() -> None:
    for name in families() - {"countersign_integrity_violations"}:
        assert NAME.fullmatch(name)
        assert not re.search(r"_(ms|milliseconds|minutes|hours|kb|mb|megabytes|percent)(_|$)", name)
    assert {name for name in samples() if name.endswith("_total")} == {
        "countersign_http_requests_total",
        "countersign_provider_calls_total",
    }


def test_rules_and_dashboard_use_existing_metrics_and_labels() -> None:
    known = samples()
    used = list(expressions())
    assert len(used) > 40
    for expression in used:
        names = set(NAME.findall(expression))
        assert names <= known.keys(), expression
        labels = {RENAMED.get(label, label) for label in set[str]().union(*(known[name] for name in names))}
        assert set(re.findall(r"by \((\w+)(?:, (\w+))?\)", expression)) <= {
            (first, second) for first in labels for second in ("", *labels)
        }, expression


def test_rules_and_dashboard_name_no_label_of_the_target_as_one_of_ours() -> None:
    """Prometheus gives each sample the labels of its target, and renames ours of the same name."""
    of_the_target = {"job", "instance"}
    ours = {name for name, labels in samples().items() if labels & of_the_target}
    assert ours == {
        "countersign_failed_rows",
        "countersign_job_failed",
        "countersign_sweeper_age_seconds",
    }
    for expression in expressions():
        if ours & set(NAME.findall(expression)):
            assert "by (exported_job)" in expression
    for rule in RULES:
        if ours & set(NAME.findall(rule["expr"])) and rule["alert"] != "CountersignSweeperStopped":
            assert "{{ $labels.exported_job }}" in rule["annotations"]["summary"]
    [target] = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    assert not target.get("honor_labels")


def test_every_alert_has_its_section_in_the_runbook_and_a_line_in_its_table() -> None:
    runbook = (DOCS / "runbook.md").read_text()
    sections = {
        re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))
        for title in re.findall(r"^## (.*)", runbook, re.M)
    }
    for rule in RULES:
        section = rule["annotations"]["runbook"]
        assert section in sections
        assert f"[`{rule['alert']}`](#{section})" in runbook
        assert rule["labels"]["severity"] in {"page", "urgent", "ticket"}
        assert rule["annotations"]["summary"]


def test_the_documentation_lists_exactly_the_existing_metrics() -> None:
    listed = re.findall(r"^\| `(countersign_\w+)` \|", (DOCS / "monitoring.md").read_text(), re.M)
    assert sorted(listed) == sorted(families())


def test_the_runbook_names_no_other_metrics() -> None:
    assert set(NAME.findall((DOCS / "runbook.md").read_text())) <= samples().keys() | families()


@pytest.mark.promtool
def test_promtool_accepts_rules_configuration_and_metrics(tmp_path: Path) -> None:
    for arguments in (
        ("check", "rules", "alerts.yml"),
        ("check", "config", "--syntax-only", "prometheus.yml"),
    ):
        subprocess.run(["promtool", *arguments], cwd=FOLDER, check=True, capture_output=True)
    checked = subprocess.run(["promtool", "check", "metrics"], input=render_metrics(), capture_output=True)
    assert (checked.returncode, checked.stderr.decode()) == (0, "")


def fired(tmp_path: Path, ages: dict[str, str], *, minutes: int, alerts: list[str]) -> dict[str, int]:
    """How many alerts of each name fire after these minutes, if the metrics have these values each minute."""
    series = [{"series": name, "values": values} for name, values in ages.items()]
    expected = [{"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": []} for name in alerts]
    content = {
        "rule_files": [str(FOLDER / "alerts.yml")],
        "evaluation_interval": "30s",
        "tests": [{"interval": "1m", "input_series": series, "alert_rule_test": expected}],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(content))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    parts = re.findall(
        r"alertname: (\w+), time.*?got:(.*?)(?=alertname:|\Z)", done.stdout + done.stderr, re.DOTALL
    )
    return {name: got.count("Labels:") for name, got in parts}


@pytest.mark.promtool
def test_a_stopped_sweeper_is_one_alert_and_not_one_for_each_job(tmp_path: Path) -> None:
    jobs = [f'countersign_sweeper_age_seconds{{exported_job="{name}"}}' for name in ("a", "b", "c")]
    late = [
        "countersign_integrity_checks_age_seconds",
        "countersign_mirror_age_seconds",
        "countersign_reconciliation_age_seconds",
    ]
    alerts = [
        "CountersignSweeperStopped",
        "CountersignJobLate",
        "CountersignChecksDoNotRun",
        "CountersignMirrorLate",
        "CountersignReconciliationLate",
    ]
    stopped = dict.fromkeys([*jobs, *late], "0+60x30")
    assert fired(tmp_path, stopped, minutes=20, alerts=alerts) == {"CountersignSweeperStopped": 1}
    # One job still ends its rounds: each of the others has its alert.
    hanging = stopped | {jobs[0]: "0x30"}
    assert fired(tmp_path, hanging, minutes=20, alerts=alerts) == {
        "CountersignJobLate": 2,
        "CountersignChecksDoNotRun": 1,
        "CountersignMirrorLate": 1,
        "CountersignReconciliationLate": 1,
    }
    assert fired(tmp_path, dict.fromkeys([*jobs, *late], "0x30"), minutes=20, alerts=alerts) == {}


@pytest.mark.promtool
def test_a_missing_sweeper_is_one_alert_once_its_jobs_are_late(tmp_path: Path) -> None:
    alerts = ["CountersignSweeperStopped", "CountersignProcessMissing"]
    gone = {
        'countersign_sweeper_age_seconds{exported_job="a"}': "0+60x30",
        'countersign_processes{kind="sweeper"}': "0x30",
        'countersign_processes{kind="web"}': "2x30",
    }
    assert fired(tmp_path, gone, minutes=3, alerts=alerts) == {"CountersignProcessMissing": 1}
    assert fired(tmp_path, gone, minutes=20, alerts=alerts) == {"CountersignSweeperStopped": 1}
    # Of another kind it is an alert of its own, and of a sweeper that never ran the only one.
    both = gone | {'countersign_processes{kind="worker"}': "0x30"}
    assert fired(tmp_path, both, minutes=20, alerts=alerts) == dict.fromkeys(alerts, 1)
    never_ran = {'countersign_processes{kind="sweeper"}': "0x30"}
    assert fired(tmp_path, never_ran, minutes=20, alerts=alerts) == {"CountersignProcessMissing": 1}


def test_an_app_that_is_set_up_again_gives_its_metrics_once() -> None:
    """Prometheus refuses a page that describes a metric twice."""
    apps.get_app_config("notifications").ready()
    described = [
        line.split()[2] for line in render_metrics().decode().splitlines() if line.startswith("# HELP")
    ]
    assert len(described) == len(set(described))


def test_processes_count_while_they_report() -> None:
    now = timezone.now()
    ProcessRow.objects.create(
        machine="b", kind="web", pid=1, started_at=now, at=now - timedelta(minutes=2), report={}
    )
    text = render_metrics().decode()
    assert 'countersign_processes{kind="web"} 1.0' in text
    assert 'countersign_processes{kind="sweeper"} 0.0' in text
    assert 'countersign_processes_not_ready{part="broker"} 1.0' in text
    assert 'countersign_disk_free_bytes{machine="a"} 5.0' in text
    assert 'machine="b"' not in text


def test_calls_of_the_provider_are_counters() -> None:
    text = render_metrics().decode()
    assert 'countersign_provider_calls_total{call="read",outcome="ok"} 3.0' in text
    assert 'countersign_provider_calls_total{call="change",outcome="unknown"} 0.0' in text
    assert 'countersign_provider_call_duration_seconds_sum{call="read"} 1.5' in text


@pytest.mark.parametrize(("method", "label"), [("GET", "GET"), ("PURGE", "other")])
def test_requests_are_counted_with_bounded_labels(client: Client, method: str, label: str) -> None:
    def count() -> Any:
        pattern = rf'^countersign_http_requests_total{{method="{label}",status="405"}} (\S+)'
        found = re.search(pattern, render_metrics().decode(), re.M)
        return float(found[1]) if found else 0.0

    before = count()
    address = "/account/sign-out/" if method == "GET" else "/account/sign-in/"
    answer = client.generic(method, address)
    assert count() == before + (answer.status_code == 405)
