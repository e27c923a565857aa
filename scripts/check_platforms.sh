#!/usr/bin/env bash
# Builds presets for other machines and runs them here, under qemu-user: check_platforms.sh [--all] [PRESET...]
# Without --all the library has the operators of models/digits alone and -O1, minutes a preset; with it all, as released.
# Without presets, all of those below. Installs compilers (install_deps.sh --cross). build-PRESET is left for ctest.
set -uo pipefail
cd "$(dirname "$0")/.."

operators='Input;Convolution;ConvolutionDepthWise;InnerProduct;ReLU;Clip;BinaryOp;Split;Reshape;Reduction;Pooling;Softmax;Flatten;Padding'
operators+=';BatchNorm;Quantize;Dequantize;Requantize'
options=(-DQUOLL_LAYERS="$operators" '-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG' -DQUOLL_VULKAN=OFF)
if [ "${1:-}" = --all ]; then
    options=(-DQUOLL_LAYERS= '-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG')
    shift
fi
presets=("$@")
[ ${#presets[@]} -gt 0 ] || presets=(aarch64 armv7 arm-softfloat riscv64 riscv64-v powerpc64le mips64el mipsel)
programs=(enginerun benchmark test_mat test_modelbin test_gemm test_conv)
python=build/venv/bin/python
[ -x $python ] || python=python3

# run_emulated PRESET TRIPLE: the trained model on its pictures, and the tests that were built.
run_emulated() {
    local levels=scalar
    case $1 in
        aarch64 | armv7) levels='scalar neon' ;;
        riscv64-v) levels='scalar rvv' ;;
    esac
    # The processor of qemu-riscv64; those of others have all that is asked for.
    [ "$1" != riscv64-v ] || local -x QEMU_CPU=rv64,v=true,vlen=256
    QUOLL_LEVELS=$levels QUOLL_BIN="build-$1/bin" ENGINERUN_PREFIX="$(sed -n 's/^set(quoll_qemu \(.*\))$/qemu-\1/p' "toolchains/$2.cmake") -L /usr/$2" \
        $python -m pytest -p no:cacheprovider -q tests/python/test_models.py -k digits &&
        ctest --test-dir "build-$1" --output-on-failure --timeout 1200 -R '^(test_mat|test_modelbin|test_gemm|test_conv)$'
}

failed=0
for preset in "${presets[@]}"; do
    log=build-$preset/check.log
    mkdir -p "build-$preset"
    triple=$(sed -n "s|.*\"name\": \"$preset\",.*toolchains/\(.*\)[.]cmake.*|\1|p" CMakePresets.json)
    triple=${triple%-clang}
    printf '== %s: ' "$preset"
    if scripts/install_deps.sh --cross "$preset" >"$log" 2>&1 </dev/null && cmake --preset "$preset" "${options[@]}" >>"$log" 2>&1 &&
        cmake --build "build-$preset" -j "$(nproc)" --target "${programs[@]}" >>"$log" 2>&1 &&
        run_emulated "$preset" "$triple" >>"$log" 2>&1; then
        echo ok
    else
        failed=$((failed + 1))
        echo "FAILED, the end of $log:"
        tail -n 20 "$log"
    fi
done
echo "$((${#presets[@]} - failed)) passed, $failed failed"
[ $failed -eq 0 ]
