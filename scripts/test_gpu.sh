#!/usr/bin/env bash
# For machines with a GPU: every case table of the layers on the device against the scalar reference, test_vulkan*, and the bundled
# networks against the CPU with their times, in fp32, in fp16 and in fp16 without matrix units, with and without products of halves;
# 100,000 inferences in 8 threads; with build/venv the oracles (official ONNX cases, ncnn, ONNX Runtime on random models), and with
# QUOLL_DATA the networks from exporters, the largest ones too; then a summary. Says which device it was.
# scripts/test_gpu.sh [BIN [PART...]]: the folder of the built programs (build/bin); all parts are layers programs memory zoo onnx_cases
# ncnn_layers networks onnx_models bundled. QUOLL_VULKAN_DEVICE chooses the device.
set -uo pipefail

cd "$(dirname "$0")/.."
bin=${1:-build/bin}
all_parts=(layers programs memory zoo onnx_cases ncnn_layers networks onnx_models bundled)
parts=("${@:2}")
[ ${#parts[@]} -gt 0 ] || parts=("${all_parts[@]}")
for part in "${parts[@]}"; do
    [[ " ${all_parts[*]} " == *" $part "* ]] || { echo "$0: $part: no such part; there are ${all_parts[*]}" >&2; exit 2; }
done
wanted() { [[ " ${parts[*]} " == *" $1 "* ]]; }
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
failed=0

# run NAME COMMAND...: how many tests passed, or the lines that tell of failures and a status of 1.
run() {
    local name=$1
    shift
    if "$@" >"$log/$name" 2>&1; then
        echo "$name: $(grep -c '^\[       OK \]' "$log/$name") tests passed"
    else
        echo "$name: FAILED"
        grep -A 12 'Failure$\|^\[  FAILED  \]\|terminate\|Segmentation' "$log/$name" | head -60
        return 1
    fi
}

# What other programs answer, with all nets on the device as far as it can run them.
pytest=(build/venv/bin/python -m pytest -p no:cacheprovider -q -n "$(nproc)")
oracle() {
    local name=$1
    shift
    wanted "$name" || return 0
    if QUOLL_TEST_GPU=$number "$@" >"$log/oracle_$name" 2>&1; then
        echo "$name: $(tail -n 1 "$log/oracle_$name")"
    else
        failed=1
        echo "$name: FAILED"
        tail -n 40 "$log/oracle_$name"
    fi
}

bundled() {
    local name=$1
    shift
    local models=()
    for model in benchmark/models/*.param; do models+=("$model"); done
    "$bin/bench_gpu" "$@" "${models[@]}" >"$log/$name" 2>&1 || { failed=1; echo "$name: FAILED"; }
    grep ' differs by ' "$log/$name" | sed 's|benchmark/models/||; s|\.param||'
    # Of the range of answers: fp32 rounds alike; f16 keeps 11 bits, whose errors through some hundred layers stay far below 1 %.
    local most=1e-5
    [ "$name" = fp32 ] || most=0.01
    if ! awk -v most="$most" '/ differs by / { n++; if (!($NF + 0 < most) || $NF ~ /inf|nan/) bad = 1 } END { exit bad || !n }' "$log/$name"; then
        failed=1
        echo "$name: an answer differs by more than $most of the range"
    fi
}

device=$("$bin/bench_gpu" --list) || exit 1
echo "$device"
number=$(sed -n 's/^GPU \([0-9]*\): .*/\1/p' <<<"$device")
if wanted layers; then
    # Several processes share the device.
    shards=()
    for shard in 0 1 2 3 4 5 6 7; do
        run "layers_$shard" env GTEST_TOTAL_SHARDS=8 GTEST_SHARD_INDEX=$shard "$bin/tests/layer_tests" '--gtest_filter=*.vulkan' &
        shards+=($!)
    done
    for shard in "${shards[@]}"; do wait "$shard" || failed=1; done
fi
if wanted programs; then
    for subject in '' _api _blocks _caches _faults _fusion _packing _pipelines _pixels _sharing _types _winograd; do
        run "test_vulkan$subject" "$bin/tests/test_vulkan$subject" || failed=1
    done
    [ ! -x "$bin/tests/test_vulkan_layers" ] || run test_vulkan_layers "$bin/tests/test_vulkan_layers" || failed=1
fi
! wanted memory || run test_vulkan_memory env QUOLL_VULKAN_RUNS=100000 "$bin/tests/test_vulkan_memory" || failed=1
if wanted zoo && [ -n "${QUOLL_DATA:-}" ] && [ -x build/venv/bin/python ]; then
    QUOLL_BIN=$(realpath "$bin") QUOLL_GPU_WHOLE=1 build/venv/bin/python -m pytest -p no:cacheprovider -q tests/onnx/test_zoo_gpu.py || failed=1
fi
if [ -x build/venv/bin/python ]; then
    export QUOLL_BIN=$(realpath "$bin")
    oracle onnx_cases build/venv/bin/python tests/onnx/run_node_tests.py --generated --jobs "$(nproc)"
    oracle ncnn_layers "${pytest[@]}" tests/python/test_ncnn_layers.py -k 'not written'
    oracle networks "${pytest[@]}" tests/python/test_random_ncnn_networks.py tests/onnx/test_random_networks.py -k gpu
    oracle onnx_models "${pytest[@]}" tests/onnx/test_random{,_models}.py tests/onnx/test_{contrib,control,corners,empty,quantized,ranks,run_time_sizes,small_types}.py
fi
if wanted bundled; then
    bundled fp32
    bundled fp16 --fp16
    bundled fp16_tiles --fp16 --no-matrices
    bundled fp16_halves --fp16 --no-matrices --fp16-arithmetic
fi
[ $failed = 0 ] && echo "all passed"
exit $failed
