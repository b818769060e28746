#!/bin/sh
# Make .venv/ in this clone: Python >= 3.11, everything at the versions of constraints.txt. Safe to repeat.
#
#   PYTHON       interpreter to use (default: python3, else python3.13, python3.12, python3.11)
#   TORCH_INDEX  package index to take torch from, for example PyTorch's own index of CPU builds
set -eu
cd "$(dirname "$0")/.."

say() { printf 'environment: %s\n' "$*"; }
fail() { printf 'environment: %s\n' "$*" >&2; exit 2; }

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }

python=${PYTHON:-}
if [ -n "$python" ]; then
  fits "$python" || fail "PYTHON=$python is not a Python 3.11, 3.12 or 3.13"
else
  for candidate in python3 python3.13 python3.12 python3.11; do
    if fits "$candidate"; then
      python=$candidate
      break
    fi
  done
fi
[ -n "$python" ] || fail "no Python 3.11, 3.12 or 3.13 found. Install one, or name it: make PYTHON=/path/to/python3.12"

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    fail "$python has no venv module. As root: apt-get install python3-venv"
  fi
  say "$python has no venv module; installing python3-venv from the distribution"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q python3-venv
fi

# Linked to a different interpreter, or half made: begin again.
if [ -d .venv ] && ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  say ".venv is damaged; making it anew"
  rm -rf .venv
fi
[ -d .venv ] || { say "making .venv with $("$python" --version)"; "$python" -m venv .venv; }

pip() { .venv/bin/python -m pip --disable-pip-version-check "$@"; }
torch=$(grep '^torch==' constraints.txt)
if ! .venv/bin/python -c "import importlib.metadata as m, sys; sys.exit(m.version('torch').split('+')[0] != '${torch#torch==}')" 2>/dev/null; then
  if [ -n "${TORCH_INDEX:-}" ]; then
    say "installing $torch from TORCH_INDEX"
    pip install --quiet --index-url "$TORCH_INDEX" "$torch"
  else
    if ! pip install --quiet --dry-run --no-deps --report - "$torch" 2>/dev/null | grep -q '+cpu'; then
      say "installing $torch with its CUDA libraries: about 3 GB to download, 7 GB on disk."
      say "Without a GPU here, stop (Ctrl-C) and set TORCH_INDEX to PyTorch's index of CPU builds (200 MB)."
    fi
    pip install --quiet --constraint constraints.txt "$torch"
  fi
fi
say "installing the rest at the versions of constraints.txt"
pip install --quiet --constraint constraints.txt --editable '.[train,examples,plot,dev]'
touch .venv/ready
say "ready: .venv/bin/gradferry"
