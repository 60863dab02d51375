"""The Celery application. A message only wakes a worker: losing, repeating or delaying one changes nothing.

Money tasks take one id, acknowledge before they run and are never retried: the database is the record of what
is to be done, and `manage.py sweep` finds work whose message was lost.
"""

import os
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django
from celery import Celery
from celery.signals import import_modules, setup_logging
from django.conf import settings
from kombu.transport import TRANSPORT_ALIASES

from backoffice.startup_checks import ended_by_refusals, read_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backoffice.settings")
read_settings()

TRANSPORT_ALIASES["filesystem"] = "backoffice.core.local_broker:LocalBrokerTransport"


@import_modules.connect  # before the receiver that Celery connects when the application is made
def set_up_django(**_of_celery: object) -> None:
    """Set up Django before Celery does, which logs the traceback of a setting that is refused."""
    with ended_by_refusals():
        django.setup()


app = Celery("countersign")
app.config_from_object("django.conf:settings", namespace="CELERY")


@setup_logging.connect
def keep_django_logging(**_wanted: object) -> None:
    """Prevent Celery from configuring logging, which it does unless this signal has a receiver.

    Without its handlers every line, including the traceback of a failed task, goes through the formatter that
    redacts secrets (settings.LOGGING).
    """


def broker_options(url: str, data_dir: Path) -> dict[str, Any]:
    """Transport options for each broker: folders for the broker without a server, no long waits for the
    others.
    """
    if url.startswith("redis"):
        return {"socket_connect_timeout": 1, "socket_timeout": 5, "max_retries": 0}
    if not url.startswith("filesystem"):
        return {"max_retries": 0}
    folders = {name: data_dir / "broker" / name for name in ("messages", "control")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {
        "data_folder_in": str(folders["messages"]),
        "data_folder_out": str(folders["messages"]),
        "control_folder": str(folders["control"]),
        "polling_interval": 0.05,
    }


def broker_tls(url: str, ca_file: str) -> dict[str, Any] | None:
    """TLS options that verify the broker's certificate and host name; None for a broker without TLS.

    By itself, kombu verifies nothing of `rediss`, and no host name of `amqps`.
    """
    address = urlsplit(url)
    if address.scheme == "rediss":
        return {
            "ssl_cert_reqs": ssl.CERT_REQUIRED,
            "ssl_check_hostname": True,
            "ssl_ca_certs": ca_file or None,
        }
    if address.scheme == "amqps":
        return {
            "cert_reqs": ssl.CERT_REQUIRED,
            "server_hostname": address.hostname,
            "ca_certs": ca_file or None,
        }
    return None


app.conf.update(
    task_ignore_result=True,
    task_acks_late=False,
    task_publish_retry=False,
    task_serializer="json",
    accept_content=["json"],
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_connection_timeout=1,
    timezone="UTC",
    broker_use_ssl=broker_tls(settings.CELERY_BROKER_URL, settings.BROKER_CA_FILE),
    broker_transport_options=broker_options(settings.CELERY_BROKER_URL, settings.DATA_DIR),
)
app.autodiscover_tasks(["backoffice"])
