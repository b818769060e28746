#!/bin/sh
# Fill a folder with what the trainer image needs, by the pip of the environment: docker/wheelhouse.sh FOLDER [PYTHON]
# The wheels are those of PYTHON's version, which must be that of the image's base.
set -eu

folder=$1
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
python=${2:-$root/.venv/bin/python}

wanted=$("$python" -c "
import sys
from pathlib import Path
sys.path.insert(0, '$root/docker')
from recipe import requirements
print(requirements(Path('$root')), end='')")
new=$(mktemp -d "$root/.wheelhouse.XXXXXX")
trap 'rm -rf "$new"' EXIT
# shellcheck disable=SC2086 # one word each
"$python" -m pip download -q --only-binary :all: -d "$new" -c "$root/constraints.txt" \
  ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} pip $wanted
# Whole or not at all: a folder that an interrupt left half full would look like a finished one.
mkdir -p "$(dirname -- "$folder")"
rm -rf "$folder"
mv "$new" "$folder"
trap - EXIT
