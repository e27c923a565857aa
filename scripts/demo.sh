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

printf '\n== a page of digits, found by a detector ==\n'
build/bin/detector models/digit_detector/digit_detector.{param,bin} models/digit_detector/page.png out/page.png
echo "annotated: out/page.png"

printf '\n== networks, milliseconds ==\n'
build/bin/benchmark 2 --warmup 1 --json out/benchmark.json
build/bin/benchmark 10 1 param=benchmark/models/squeezenet.param --profile out/profile.html >/dev/null
build/bin/engineinfo benchmark/models/squeezenet.param --html out/model.html --brief >/dev/null

if [ -n "${QUOLL_DATA:-}" ]; then
    printf '\n== faces ==\n'
    for photo in "$QUOLL_DATA"/images/*.jpg; do
        picture=out/$(basename "$photo" .jpg).png
        build/bin/detect_faces "$QUOLL_DATA"/models/slim-320/slim_320.{param,bin} "$photo" "$picture"
        echo "annotated: $picture"
    done
else
    printf '\nQUOLL_DATA is not set: no photos to find faces in\n'
fi

printf '\n== to look at ==\n'
echo "pictures: $PWD/out/*.png"
echo "a network, layer by layer: $PWD/out/model.html"
echo "where its time goes: $PWD/out/profile.html"
[ ! -e build-wasm/web/demo.html ] || echo "the engine in the browser: $PWD/build-wasm/web/demo.html"
