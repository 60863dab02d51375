#!/bin/sh
# Install one release into an empty folder: deploy/install.sh SOURCE TARGET [extras]
#
# TARGET gets the code and, in .venv, exactly what requirements.lock names; with `extras` also what an object store, error
# reports and traces need (requirements-extras.lock). Needs Python 3.11+ with venv, and no root.
# The Dockerfile runs this script, and so does the test suite, as a user who is not root.
set -eu
umask 022

source=${1:?usage: deploy/install.sh SOURCE TARGET}
target=${2:?usage: deploy/install.sh SOURCE TARGET}
extras=${3:-}
most_megabytes=200

if [ -e "$target" ] && [ -n "$(ls -A "$target")" ]; then
  echo "$target is not empty: each release gets a folder of its own. Nothing was installed." >&2
  exit 1
fi
mkdir -p "$target"
cd "$source"
source=$(pwd)
for part in backoffice payments_gateway templates static locale deploy manage.py gunicorn.conf.py pyproject.toml requirements.lock; do
  cp -R "$part" "$target/"
done
find "$target" -name __pycache__ -prune -exec rm -rf {} +
rm -f "$target"/deploy/*.env "$target"/deploy/postgres-password # what operators created beside compose.yml

cd "$target"
"${PYTHON:-python3}" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
  --requirement requirements.lock
if [ "$extras" = extras ]; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
    --requirement "$source/requirements-extras.lock"
  most_megabytes=300
fi
.venv/bin/python -m compileall -q backoffice payments_gateway

megabytes=$(du -sm .venv | cut -f1)
if [ "$megabytes" -gt "$most_megabytes" ]; then
  echo "The environment takes $megabytes MB, more than $most_megabytes: does requirements.lock name a tool?" >&2
  exit 1
fi
version=$(.venv/bin/python -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
echo "Installed Countersign $version in $target: $megabytes MB"
