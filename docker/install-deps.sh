#!/bin/sh
# Runs inside the build of trainer.Dockerfile: /build/requirements.txt -> /layers/{cuda,torch,rest}/opt/site, slim and compiled.
set -eu

say() { printf '%s\n' "install-deps: $*"; }

pip_wheel=$(find /wheels -name 'pip-*.whl' | head -n 1)
if [ -n "$pip_wheel" ]; then
  say "packages from the wheelhouse, no index"
  pip="python3 $pip_wheel/pip"
  set -- --no-index --find-links /wheels
else
  say "packages from the index"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends python3-pip
  pip="python3 -m pip"
  set -- ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"}
fi
[ -n "${PIP_INDEX_URL:-}" ] || unset PIP_INDEX_URL

# shellcheck disable=SC2086 # two words
$pip install -q --no-compile --no-cache-dir --root-user-action ignore --target /layers/rest/opt/site "$@" \
  -r /build/requirements.txt -c /build/constraints.txt

cd /layers/rest/opt/site
# torch looks for this program at import, although nothing here runs it; the rest of its bin/ is test binaries.
install -D torch/bin/torch_shm_manager /tmp/keep/torch_shm_manager
rm -rf torch/test torch/include torch/bin torch/share/cmake bin
install -D /tmp/keep/torch_shm_manager torch/bin/torch_shm_manager
find . -depth -type d -name tests -exec rm -rf {} +
find . \( -name '*.pyi' -o -name 'lib*test*.so' \) -delete

# Symbols are a quarter of a CPU torch. torch only: strip breaks vendored libraries that patchelf has touched.
if ! command -v strip >/dev/null; then
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends binutils; } \
    || say "no strip here: the image stays larger"
fi
if command -v strip >/dev/null; then
  find torch -name '*.so*' -type f -size +1M -exec strip --strip-unneeded {} +
fi

python3 -m compileall -q --invalidation-mode unchecked-hash . || say "some modules do not compile, as their authors meant"

mkdir -p /layers/cuda/opt/site /layers/torch/opt/site
for package in nvidia triton cuda; do
  [ ! -d "$package" ] || mv "$package" /layers/cuda/opt/site/
done
mv torch /layers/torch/opt/site/
# The same packages give the same layers, whenever they are built: what a host holds is not sent again.
find /layers -exec touch -h -d @1 {} +
say "megabytes: $(du -sm /layers/* | tr '\n\t' ' :')"
