#!/bin/bash
# Times the suite of export_suite.py on this machine, beside ONNX Runtime and OpenVINO: fp32 and bf16 (where OpenVINO computes in it), one
# thread and more. On a machine that reaches no registry give the wheels of `compare.py --fetch` and the archive of `pack_suite.py`.
#
#   benchmark/measure_suite.sh SUITE [OUT] [-- options of compare.py]      SUITE: a folder of ONNX models, or SUITE.tar.xz
#   WHEELS=folder THREADS=1,4,16 PRECISION=fp32,bf16 PYTHON=python3        in the environment
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
suite=${1:?usage: benchmark/measure_suite.sh SUITE [OUT] [-- options]}
out=${2:-$root/build/suite-report}
shift $(($# < 2 ? $# : 2))
[ "${1:-}" = -- ] && shift
python=${PYTHON:-python3}
if [ ! -x "$root/build/bin/bench_worker" ]; then
    cmake -S "$root" -B "$root/build" -G Ninja -DCMAKE_BUILD_TYPE=Release
    ninja -C "$root/build" bench_worker bench_peak
fi
if [ -f "$suite" ]; then
    folder=$root/build/suite
    [ -d "$folder" ] || "$python" "$root/benchmark/pack_suite.py" unpack "$suite" "$folder"
    suite=$folder
fi
"$python" "$root/benchmark/compare.py" --onnx "$suite" --peers onnxruntime,openvino --threads "${THREADS:-1}" \
    --precision "${PRECISION:-fp32,bf16}" --rounds 5 --out "$out" ${WHEELS:+--wheels "$WHEELS"} "$@"
