// bench_kernel: kernels by themselves and operators one at a time, with Google Benchmark.
//
//   bench_kernel [--benchmark_filter=REGEX] [--benchmark_format=json] ...  (--help has more)
//
// gemm/..., split/..., int8/...: micro-kernels of each instruction set on operands in cache; the
// column peak% is their share of what bench_peak's loop of the same instruction reaches on this
// core. gemm_driver/...: whole products, B packed beforehand; gemm_packing_driver/...: B packed
// each time. op/...: a layer in a Net of its own on one thread, named TYPE_inputs_parameters;
// GMACPS is 1e9 multiply-accumulates a second, Input the input bytes per second.
#include <benchmark/benchmark.h>
#include <string.h>

#include <memory>
#include <string>
#include <vector>

#include "common/cli.h"
#include "graph/analysis.h"
#include "layer/cpu/gemm/gemm_run.h"
#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/int8/int8_units.h"
#include "layer/cpu/registry/kernel_rows.h"
#include "peak.h"
#include "quoll/net.h"
#include "random_weights.h"

using namespace quoll;
using benchmark::Counter;
using benchmark::State;

namespace {

// Operations a nanosecond that the unit of this name reaches, 0 without it; measured once.
double peak_of(const std::string& name) {
    static std::vector<std::pair<std::string, double>> known;
    for (const auto& entry : known)
        if (entry.first == name) return entry.second;
    double speed = 0;
    for (const PeakUnit& unit : peak_units())
        if (name == unit.name) speed = unit.operations / peak_time_ns(unit);
    known.emplace_back(name, speed);
    return speed;
}

// The multiply-add of an instruction set; "" where peak.h has no loop for it.
const char* unit_of(Isa isa) {
    const int lanes = vector_kernels(isa).lanes;
    return lanes == 16 ? "vfmadd231ps zmm" : lanes == 8 ? "vfmadd231ps ymm" : "";
}

// Gop/s and the share of the peak, for so many operations per iteration.
void count_operations(State& state, double operations, const std::string& unit) {
    const double peak = peak_of(unit);
    state.counters["Gop/s"] = Counter(operations * 1e-9, Counter::kIsIterationInvariantRate);
    if (peak > 0)
        state.counters["peak%"] =
            Counter(100 * operations * 1e-9 / peak, Counter::kIsIterationInvariantRate);
}

// In a Mat, as the library has its operands: vectors that begin on a cache line are not split.
Mat noise(size_t count) {
    Mat values((int)count);
    uint64_t state = 1;
    fill_random(values, count, -1.f, 1.f, &state);
    return values;
}

const size_t kDepth = 256;  // k of a tile: A and B stay in the first-level cache

void gemm_tile(State& state, Isa isa, GemmTileKernel kernel, size_t rows, size_t columns) {
    const GemmKernels& kernels = *kernel_set(isa).gemm;
    const Mat a = noise(rows * kDepth), b = noise(columns * kDepth), init = noise(columns);
    Mat c((int)(rows * columns));
    const GemmBlock block = {0, 0};
    GemmTile tile = {};
    tile.a = a, tile.a_row = kDepth, tile.a_k = 1;
    tile.blocks = &block, tile.num_blocks = 1, tile.block_k = kDepth;
    tile.b = b, tile.init = init, tile.init_vector = kernels.lanes;
    tile.c = c, tile.c_row = (ptrdiff_t)columns, tile.c_vector = kernels.lanes;
    tile.low = -1e30f, tile.high = 1e30f;
    for (auto _ : state) {
        kernel(tile);
        benchmark::ClobberMemory();
    }
    count_operations(state, 2. * (double)(rows * columns * kDepth), unit_of(isa));
}

void gemm_vector(State& state, Isa isa, GemmVectorKernel kernel, size_t columns) {
    const size_t k = kDepth;
    const Mat a = noise(k), b = noise(columns * k), init = noise(columns);
    Mat c((int)columns);
    for (auto _ : state) {
        kernel(a, 1, k, b, columns, init, c, -1e30f, 1e30f);
        benchmark::ClobberMemory();
    }
    count_operations(state, 2. * (double)(columns * k), unit_of(isa));
}

void gemm_packing(State& state, Isa isa, GemmPackPanel kernel, bool row_major) {
    const GemmKernels& kernels = *kernel_set(isa).gemm;
    const size_t columns = (size_t)kernels.lanes * kernels.vectors;
    const Mat b = noise(columns * kDepth);
    Mat panel((int)(columns * kDepth));
    for (auto _ : state) {
        kernel(b, row_major ? columns : kDepth, kDepth, columns, columns, panel);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed((int64_t)state.iterations() * (int64_t)(columns * kDepth * 4));
}

// A square product on all vectors of an instruction set, B packed before or each time.
void gemm_driver(State& state, Isa isa, size_t size, bool packs) {
    const KernelSet& set = kernel_set(isa);
    const Mat a = noise(size * size), b = noise(size * size);
    Mat c((int)(size * size));
    Mat packed = gemm_packed(*set.gemm, b, size, true, size, size);
    const Mat bias = gemm_bias(*set.gemm, nullptr, size);
    GemmMatrix m = {};
    m.kernels = &set, m.a = a, m.a_row = (ptrdiff_t)size, m.a_k = 1;
    m.m = m.n = m.k = size;
    m.b = packed, m.bias = bias, m.c = c;
    m.c_row = (ptrdiff_t)size, m.c_pack = size, m.activation = FusedActivation(set, Activation());
    for (auto _ : state) {
        if (packs) gemm_pack(*set.gemm, b, size, true, size, size, packed);
        gemm_matrix(m, 1);
        benchmark::ClobberMemory();
    }
    count_operations(state, 2. * (double)size * (double)size * (double)size, unit_of(isa));
}

// Operands of two tiles of rows and a full panel, as long as the first-level cache holds of one
// term, laid out as TilePlan does.
struct UnitOperands {
    enum { kSteps = 8, kRows = kUnitTiles * kUnitRows };
    explicit UnitOperands(size_t terms) : row(kSteps * terms * kUnitRowBytes), operands() {
        const size_t size = (kRows + kUnitColumns) * row;
        memory.reset(new char[size + 64]);
        char* a = memory.get() + (64 - (uintptr_t)memory.get() % 64) % 64;
        // As bf16 values that begin with 0.25.
        for (size_t i = 0; i < size; i++) a[i] = (char)(i % 2 ? 0x3e : i * 97 % 251);
        for (size_t i = 0; i < kSteps; i++)
            places.push_back((ptrdiff_t)(i * kRows * terms * kUnitRowBytes));
        for (int i = 0; i < kRows; i++) targets.push_back(i * kUnitColumns);
        operands.a = a, operands.a_row = (ptrdiff_t)(terms * kUnitRowBytes);
        operands.a_tile = operands.a_row * kUnitRows;
        operands.tile_rows = kUnitRows, operands.steps = places.data();
        operands.num_steps = kSteps, operands.b = a + kRows * row;
    }
    size_t row;
    std::unique_ptr<char[]> memory;
    std::vector<ptrdiff_t> places;
    std::vector<int32_t> targets;
    TileOperands operands;
};

// With sums on their way to C; operations are those of the bf16 products.
void split_tile(State& state, const SplitGemmKernels& kernels) {
    const UnitOperands unit(kernels.terms);
    std::vector<float> c(UnitOperands::kRows * kUnitColumns), bias(kUnitColumns);
    SplitStore store = {};
    store.width = store.columns = kUnitColumns, store.group = store.c_group = 16;
    store.bias = bias.data(), store.c = c.data(), store.rows = unit.targets.data();
    store.low = -1e30f, store.high = 1e30f, store.slope = 1.f;
    alignas(64) float sums[UnitOperands::kRows * kUnitColumns];
    SplitTile tile = {};
    tile.sums = sums;
    (TileOperands&)tile = unit.operands;
    SplitEpilogue epilogue = {};
    epilogue.store = store, epilogue.sums = sums;
    kernels.begin(kUnitRows);
    for (auto _ : state) {
        kernels.chain[0](tile, epilogue);
        epilogue.rows = UnitOperands::kRows;
        benchmark::ClobberMemory();
    }
    kernels.end_chain(epilogue);
    kernels.end();
    count_operations(
        state,
        2. * UnitOperands::kRows * kUnitColumns * UnitOperands::kSteps * kSplitK * kernels.products,
        "tdpbf16ps");
}

// The sums alone.
void int8_unit_tile(State& state, const Int8UnitKernels& kernels) {
    const UnitOperands unit(1);
    alignas(64) int32_t sums[UnitOperands::kRows * kUnitColumns], init[kUnitColumns] = {};
    Int8UnitTile tile = {};
    (TileOperands&)tile = unit.operands;
    tile.step_k_groups = kUnitRowBytes / 4;
    tile.init = init, tile.sums = sums;
    kernels.begin(kUnitRows, kUnitRowBytes);
    Int8Epilogue epilogue = {};
    epilogue.sums = sums;
    epilogue.finish = [](const Int8Epilogue&) {};
    for (auto _ : state) {
        kernels.chain(tile, epilogue);
        epilogue.rows = UnitOperands::kRows;
        benchmark::ClobberMemory();
    }
    kernels.end_chain(epilogue);
    kernels.end();
    count_operations(state, 2. * (double)(UnitOperands::kRows * kUnitColumns * unit.row),
                     "tdpbusd");
}

// As a tile of the int8 family; operations are those of 8-bit values.
void int8_tile(State& state, const Int8Kernels& kernels, size_t rows) {
    const size_t width = (size_t)kernels.lanes * kernels.vectors, k_groups = 64;
    std::vector<int32_t> a(rows * k_groups, 0x01020304), b(width * k_groups, 0x03020105),
        init(width), sums(rows * width);
    const GemmBlock block = {0, 0};
    Int8Tile tile = {};
    tile.a = a.data(), tile.a_row = (ptrdiff_t)k_groups;
    tile.blocks = &block, tile.num_blocks = 1, tile.block_k = k_groups;
    tile.b = b.data(), tile.init = init.data(), tile.sums = sums.data();
    for (auto _ : state) {
        kernels.tile[rows - 1](tile);
        benchmark::ClobberMemory();
    }
    count_operations(state, 2. * (double)(rows * width * k_groups) * kernels.k_group,
                     kernels.k_group < 4   ? ""
                     : kernels.lanes == 16 ? "vpdpbusd zmm"
                                           : "vpdpbusd ymm");
}

struct OperatorCase {
    const char* type;
    const char* params;
    std::vector<Shape> inputs;
};
const OperatorCase kOperators[] = {
    {"Convolution", "0=64 1=7 3=2 4=3 5=1 6=9408", {Shape(224, 224, 3)}},
    {"Convolution", "0=64 1=3 4=1 5=1 6=36864", {Shape(56, 56, 64)}},
    {"Convolution", "0=256 1=3 4=1 5=1 6=589824", {Shape(14, 14, 256)}},
    {"Convolution", "0=256 1=1 5=1 6=16384", {Shape(56, 56, 64)}},
    {"Convolution", "0=1024 1=1 5=1 6=1048576", {Shape(7, 7, 1024)}},
    {"ConvolutionDepthWise", "0=128 1=3 4=1 5=1 6=1152 7=128", {Shape(56, 56, 128)}},
    {"ConvolutionDepthWise", "0=512 1=3 3=2 4=1 5=1 6=4608 7=512", {Shape(14, 14, 512)}},
    {"ConvolutionDepthWise", "0=240 1=5 4=2 5=1 6=6000 7=240", {Shape(14, 14, 240)}},
    {"Deconvolution", "0=32 1=4 3=2 4=1 5=1 6=32768", {Shape(28, 28, 64)}},
    {"InnerProduct", "0=1000 1=1 2=2048000", {Shape(2048)}},
    {"Gemm", "2=0 3=0", {Shape(256, 256), Shape(256, 256)}},
    {"MatMul", "", {Shape(64, 128, 8), Shape(128, 64, 8)}},
    {"LSTM", "0=128 1=65536 2=0", {Shape(128, 32)}},
    {"Pooling", "0=0 1=3 2=2 3=1", {Shape(112, 112, 64)}},
    {"Pooling", "0=1 4=1", {Shape(7, 7, 2048)}},
    {"ReLU", "", {Shape(56, 56, 256)}},
    {"Sigmoid", "", {Shape(56, 56, 64)}},
    {"Swish", "", {Shape(56, 56, 64)}},
    {"GELU", "", {Shape(768, 197)}},
    {"Softmax", "0=1 1=1", {Shape(197, 197, 12)}},
    {"LayerNorm", "0=768 1=0.00001 2=1", {Shape(768, 197)}},
    {"BatchNorm", "0=64", {Shape(56, 56, 64)}},
    {"BinaryOp", "0=0", {Shape(56, 56, 256), Shape(56, 56, 256)}},
    {"Concat", "0=0", {Shape(28, 28, 64), Shape(28, 28, 128)}},
    {"ShuffleChannel", "0=2", {Shape(28, 28, 116)}},
    {"Permute", "0=3", {Shape(56, 56, 64)}},
    {"Interp", "0=2 1=2.0 2=2.0", {Shape(26, 26, 128)}},
    {"LRN", "0=0 1=5 2=0.0001 3=0.75", {Shape(27, 27, 256)}},
};

std::string joined_axes(const Shape& shape) {
    std::string text;
    for (int i = 0; i < shape.dims; i++) text += (i ? "x" : "") + std::to_string(shape.size(i));
    return text;
}

std::string name_of(const OperatorCase& op) {
    std::string text = std::string("op/") + op.type;
    for (const Shape& shape : op.inputs) text += "_" + joined_axes(shape);
    std::string params = op.params;
    for (char& c : params) c = c == ' ' ? '_' : c;
    return params.empty() ? text : text + "_" + params;
}

std::string param_text(const OperatorCase& op) {
    const std::string count = std::to_string(op.inputs.size());
    std::string text = "7767517\n" + std::to_string(op.inputs.size() + 1) + " " +
                       std::to_string(op.inputs.size() + 1) + "\n",
                bottoms;
    for (size_t i = 0; i < op.inputs.size(); i++) {
        const std::string name = "in" + std::to_string(i);
        text += "Input " + name + " 0 1 " + name + "\n";
        bottoms += " " + name;
    }
    return text + op.type + " op " + count + " 1" + bottoms + " out " + op.params + "\n";
}

void run_operator(State& state, const OperatorCase& op, bool bf16) {
    Net net;
    net.opt.num_threads = 1;
    net.opt.use_bf16_storage = bf16;
    if (net.load_param_mem(param_text(op).c_str()) || net.load_model(RandomWeights()))
        return state.SkipWithError("does not load");
    std::vector<Mat> inputs;
    size_t bytes = 0;
    uint64_t seed = 1;
    for (const Shape& shape : op.inputs) {
        inputs.push_back(Mat(shape));
        fill_random(inputs.back(), inputs.back().total(), -1.f, 1.f, &seed);
        bytes += (size_t)shape.total() * (bf16 ? 2 : 4);
    }
    Extractor ex = net.create_extractor();
    Mat out;
    const auto run = [&] {
        ex.clear();
        for (size_t i = 0; i < inputs.size(); i++) ex.input(net.input_indexes()[i], inputs[i]);
        return ex.extract(net.output_indexes()[0], out, 1);
    };
    if (run() != 0) return state.SkipWithError("does not run");
    const Shape made = out.logical_shape();
    for (auto _ : state) run();
    const double macs = (double)net.layers().back()->macs(op.inputs, {made});
    state.counters["GMACPS"] = Counter(macs * 1e-9, Counter::kIsIterationInvariantRate);
    state.counters["Input"] =
        Counter((double)bytes, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1024);
}

void add_gemm(Isa isa) {
    const GemmKernels& kernels = *vector_kernels(isa).gemm;
    const size_t lanes = (size_t)kernels.lanes, full = lanes * kernels.vectors;
    const std::string where = std::string("/") + isa_name(isa) + "/";
    for (int vectors = 1; vectors <= kernels.vectors; vectors++)
        for (int rows = 1; rows <= kernels.max_rows; rows++)
            benchmark::RegisterBenchmark(
                ("gemm/tile" + where + std::to_string(rows) + "x" + std::to_string(lanes * vectors))
                    .c_str(),
                gemm_tile, isa, kernels.tile[vectors - 1][rows - 1], (size_t)rows, lanes * vectors);
#define QUOLL_GEMM_PACK(name)                                                            \
    benchmark::RegisterBenchmark(("gemm/" + (#name + where)).c_str(), gemm_packing, isa, \
                                 kernels.name, #name == std::string("pack_row_major"));
#define QUOLL_GEMM_VECTOR(name)                                                         \
    benchmark::RegisterBenchmark(("gemm/" + (#name + where)).c_str(), gemm_vector, isa, \
                                 kernels.name, 4 * full);
#define QUOLL_GEMM_INIT(name, pack)
#include "layer/cpu/gemm/kernels.inc"
#undef QUOLL_GEMM_PACK
#undef QUOLL_GEMM_VECTOR
#undef QUOLL_GEMM_INIT
    for (size_t size : {128, 512, 1024})
        for (bool packs : {false, true})
            benchmark::RegisterBenchmark(
                ((packs ? "gemm_packing_driver" : "gemm_driver") + where + std::to_string(size))
                    .c_str(),
                gemm_driver, isa, size, packs);
}

void add_int8_tiles(const Int8Kernels& kernels) {
    for (int rows = 1; rows <= kernels.max_rows; rows++)
        benchmark::RegisterBenchmark(
            (std::string("int8/tile/") + kernels.name + "/" + std::to_string(rows)).c_str(),
            int8_tile, kernels, (size_t)rows);
}

// The rows of kernel_rows.inc that this machine runs.
void add_row(const KernelRow& row) {
    const auto add = [&](const char* family, auto run) {
        benchmark::RegisterBenchmark((family + ("/" + std::string(row.name))).c_str(),
                                     [run, &row](State& state) {
                                         run(state);
                                         state.counters["best MAC/cycle"] = row.macs_a_cycle;
                                     });
    };
    switch (row.slot) {
        case KernelSlot::split6:
        case KernelSlot::split3:
        case KernelSlot::split1:
            // Kernels that take lists have no tiles to be timed, and no machine here runs them.
            if (static_cast<const SplitGemmKernels*>(row.kernels)->list) return;
            return add("split", [&row](State& state) {
                split_tile(state, *static_cast<const SplitGemmKernels*>(row.kernels));
            });
        case KernelSlot::int8_units:
            if (static_cast<const Int8UnitKernels*>(row.kernels)->list) return;
            return add("int8", [&row](State& state) {
                int8_unit_tile(state, *static_cast<const Int8UnitKernels*>(row.kernels));
            });
        case KernelSlot::int8:
            return add_int8_tiles(*static_cast<const Int8Kernels*>(row.kernels));
        case KernelSlot::gemm_tile:
        case KernelSlot::sve_gemm_tile:
            return add("gemm", [&row](State& state) {
                gemm_tile(state, best_isa(row.features), row.tile, (size_t)row.rows,
                          (size_t)row.columns);
            });
        default:
            return;  // no loop of its own: bench_conv times them in their layers
    }
}

void add_rows() {
    for (Isa isa : available_isas()) add_int8_tiles(*vector_kernels(isa).int8);
    for (const KernelRow& row : kernel_rows())
        if (host_cpu_features().has_all(row.features)) add_row(row);
}

void add_operators() {
    for (const OperatorCase& op : kOperators)
        for (bool bf16 : {false, true})
            benchmark::RegisterBenchmark((name_of(op) + (bf16 ? "_bf16" : "_float")).c_str(),
                                         run_operator, op, bf16);
}

}  // namespace

int main(int argc, char** argv) {
    // Google Benchmark reads the options of its own, the others are as every program's.
    std::vector<char*> own = {argv[0]}, framework = {argv[0]};
    for (int i = 1; i < argc; i++)
        (strncmp(argv[i], "--benchmark_", 12) == 0 ? framework : own).push_back(argv[i]);
    CommandLine line("Measures kernels by themselves and operators one at a time, on one thread.",
                     "bench_kernel");
    line.footer(
        "Options of Google Benchmark:\n"
        "  --benchmark_filter=REGEX         those of these names; default: all\n"
        "  --benchmark_list_tests=true      their names only\n"
        "  --benchmark_min_time=SECONDS     of each; default 0.5\n"
        "  --benchmark_repetitions=N        with the mean and the median of them\n"
        "  --benchmark_format=json          or csv; default console\n"
        "  --benchmark_out=FILE             also there, as JSON");
    int exit_code = 0;
    if (!line.parse((int)own.size(), own.data(), &exit_code)) return exit_code;
    int count = (int)framework.size();
    benchmark::Initialize(&count, framework.data());
    if (benchmark::ReportUnrecognizedArguments(count, framework.data())) return 2;
    for (Isa isa : available_isas()) add_gemm(isa);
    add_rows();
    add_operators();
    // A filter that names nothing has been reported.
    return benchmark::RunSpecifiedBenchmarks() > 0 ? 0 : 2;
}
