#!/usr/bin/env bash
# Installs the Debian packages that building needs, the Python package included; with --tests also those of scripts/test.sh, with --cross PRESET... what
# these presets of CMakePresets.json need: the compiler, and what runs their programs here.
# Does nothing, and asks for nothing, when all are there.
set -euo pipefail

packages=(g++ cmake make ninja-build ccache libhwy-dev libcli11-dev libstb-dev nlohmann-json3-dev libgtest-dev
    libprotobuf-dev protobuf-compiler libonnx-dev libyaml-cpp-dev libvulkan-dev glslang-tools glslang-dev spirv-tools
    python3-venv python3-dev)
case "${1:-}" in
    '') ;;
    --tests) packages+=(abigail-tools doxygen g++-aarch64-linux-gnu clang-19 lld-19 qemu-user pkgconf ca-certificates libonnx-testdata
        mesa-vulkan-drivers vulkan-validationlayers libvulkan1) ;;
    --cross)
        for preset in "${@:2}"; do
            case "$preset" in
                small-aarch64) packages+=(g++-aarch64-linux-gnu qemu-user lld) ;;
                small-armv7) packages+=(g++-arm-linux-gnueabihf qemu-user lld) ;;
                minimal-aarch64) packages+=(clang-19 lld-19 g++-aarch64-linux-gnu qemu-user) ;;
                minimal-armv7) packages+=(clang-19 lld-19 g++-arm-linux-gnueabihf qemu-user) ;;
                aarch64 | jetson | pi3 | pi4) packages+=(g++-aarch64-linux-gnu qemu-user) ;;
                armv7 | himix100 | himix200 | v831) packages+=(g++-arm-linux-gnueabihf qemu-user) ;;
                arm-softfloat) packages+=(g++-arm-linux-gnueabi qemu-user) ;;
                riscv64) packages+=(g++-riscv64-linux-gnu qemu-user) ;;
                riscv64-v) packages+=(clang-16 g++-riscv64-linux-gnu qemu-user) ;;
                loongarch64) packages+=(g++-loongarch64-linux-gnu qemu-user) ;;
                powerpc64le) packages+=(g++-powerpc64le-linux-gnu qemu-user) ;;
                mips64el) packages+=(g++-mips64el-linux-gnuabi64 qemu-user) ;;
                mipsel) packages+=(g++-mipsel-linux-gnu qemu-user) ;;
                mingw) packages+=(g++-mingw-w64-x86-64-posix wine wine64) ;;
                *) echo "$0: no cross compiler for the preset '$preset'" >&2; exit 2 ;;
            esac
        done ;;
    *) echo "usage: $0 [--tests | --cross PRESET...]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install_deps.sh: please install as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${root[@]}" apt-get update -qq </dev/null
"${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null
