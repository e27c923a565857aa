#!/usr/bin/env bash
# Configures and builds a preset of CMakePresets.json: build.sh [PRESET = release] [-DOPTION=VALUE...]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
cmake --preset "$preset" "${@:2}"
cmake --build --preset "$preset" -j "$(nproc)"
