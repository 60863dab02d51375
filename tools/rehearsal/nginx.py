"""`deploy/nginx.conf` on this machine: with other ports, a throwaway certificate, and everything in one folder."""

import shutil
from pathlib import Path

from tools.processes import ROOT
from tools.rehearsal.certificates import write_certificate

PROGRAM = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def write_configuration(folder: Path, *, https_port: int, http_port: int, web_port: int) -> tuple[Path, Path]:
    """Write the configuration; return its file and that of the certificate.

    It differs from `deploy/nginx.conf` in addresses and paths, and listens on IPv4 only: this machine may lack IPv6.
    """
    certificate, key = write_certificate(folder)
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    changes = {
        "listen 443 ssl": f"listen 127.0.0.1:{https_port} ssl",
        "listen 80;": f"listen 127.0.0.1:{http_port};",
        "127.0.0.1:8000": f"127.0.0.1:{web_port}",
        "countersign.example": "localhost",
        "/etc/ssl/countersign/fullchain.pem": str(certificate),
        "/etc/ssl/countersign/key.pem": str(key),
        "/var/log/nginx": str(folder),
        "$host$request_uri": f"$host:{https_port}$request_uri",
        "Host $host;": "Host $http_host;",
    }
    for shipped, here in changes.items():
        text = text.replace(shipped, here)
    site = folder / "countersign.nginx.conf"
    site.write_text("\n".join(line for line in text.splitlines() if "listen [::]" not in line))
    main = folder / "nginx.conf"
    temporary = "".join(
        f"  {kind}_temp_path {folder}/nginx-{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main.write_text(
        f"daemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx-error.log;\n"
        f"events {{ worker_connections 512; }}\nhttp {{\n{temporary}  include {site};\n}}\n"
    )
    return main, certificate
