#!/usr/bin/env bash
# Configures and builds a preset of CMakePresets.json: build.sh [PRESET = release] [-DOPTION=VALUE...]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
# Warnings are errors where CI runs, and in build trees that were set so.
werror=()
[ -z "${CI:-}" ] || werror=(-DQUOLL_WERROR=ON)
cmake --preset "$preset" ${werror[@]+"${werror[@]}"} "${@:2}"
cmake --build --preset "$preset" -j "$(nproc)"
