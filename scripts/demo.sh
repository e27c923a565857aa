#!/usr/bin/env bash
# From a bare checkout to results: installs what is needed, builds, reads a sheet of handwritten digits, times
# networks, and with QUOLL_DATA set finds the faces in its photos. Pictures go to out/.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
scripts/build.sh release
mkdir -p out

printf '\n== handwritten digits ==\n'
build/bin/classify models/digits/digits.param models/digits/digits.bin models/digits/sheet.png --grid 32 \
    --labels models/digits/sheet_labels.txt --out out/digits.png
echo "annotated: out/digits.png"

printf '\n== networks, milliseconds ==\n'
build/bin/benchmark 2 --warmup 1 --json out/benchmark.json

if [ -n "${QUOLL_DATA:-}" ]; then
    printf '\n== faces ==\n'
    for photo in "$QUOLL_DATA"/images/*.jpg; do
        picture=out/$(basename "$photo" .jpg).png
        build/bin/detect_faces "$QUOLL_DATA"/models/slim-320/slim_320.{param,bin} "$photo" --out "$picture"
        echo "annotated: $picture"
    done
else
    printf '\nQUOLL_DATA is not set: no photos to find faces in\n'
fi
