// Products with weights of four bits in blocks, and what is computed together with them: the norm
// before, sums, activations and multiplications behind. Skipped where there is no device.
#include <math.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "forwarding_backend.h"
#include "gpu/instance.h"
#include "layer/vulkan/compiled_region.h"
#include "quoll/gpu.h"
#include "quoll/net.h"
#include "random_weights.h"

namespace quoll {
namespace {

const float kEps = 0.5f;  // large, so that it counts

std::string product(const char* name, const char* in, const char* out, int n, int k) {
    return std::string("Gemm ") + name + " 1 1 " + in + " " + out +
           " 3=1 5=1 6=1 10=-1 18=400 8=" + std::to_string(n) + " 9=" + std::to_string(k) + "\n";
}

// A gated layer of a decoder, of `hidden` values per row and `middle` between.
std::string feed_forward(int hidden, int middle) {
    return "7767517\n10 13\nInput in0 0 1 in0\nSplit s 1 2 in0 a r\nRMSNorm n 1 1 a b 0=" +
           std::to_string(hidden) + " 1=0.5 2=1\nSplit t 1 2 b g u\n" +
           product("gate", "g", "gg", middle, hidden) + "Swish f 1 1 gg h\n" +
           product("up", "u", "uu", middle, hidden) + "BinaryOp mul 2 1 h uu m 0=2\n" +
           product("down", "m", "d", hidden, middle) + "BinaryOp sum 2 1 r d out0 0=0\n";
}

// Weights in the order in which the layers read them; the first, third, ... are floats.
class Weights : public DataReader {
public:
    mutable std::vector<std::vector<unsigned char>> read_;
    size_t read(void* buf, size_t size) const override {
        memset(buf, 0, size);
        if (size == 4) return size;  // what follows is f32
        std::vector<unsigned char> bytes(size);
        const bool floats = read_.size() % 2 == 0, first = read_.empty();
        for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 37 + i / 5 * 11 + 7);
        for (size_t i = 0; floats && i < size / 4; i++) {
            const float value =
                (first ? 0.8f : 7.f * (float)read_.size()) * (1.f + (float)(i * 7 % 13) / 20.f);
            memcpy(&bytes[4 * i], &value, 4);
        }
        memcpy(buf, bytes.data(), size);
        read_.push_back(bytes);
        return size;
    }
    float number(size_t weight, size_t i) const {
        float value;
        memcpy(&value, &read_[weight][4 * i], 4);
        return value;
    }
    // x times the matrix of weight 2 i + 1, with its scales behind it; or, with the magnitudes of
    // both, how much it may be off by if x is by so much.
    std::vector<double> times(int i, const std::vector<double>& x, int n,
                              bool magnitudes = false) const {
        const size_t k = x.size(), bytes = (k + 1) / 2, blocks = (k + 31) / 32;
        std::vector<double> y(n);
        for (int row = 0; row < n; row++)
            for (size_t j = 0; j < k; j++) {
                const int two = read_[2 * i + 1][row * bytes + j / 2];
                const int four = j % 2 ? two >> 4 : two & 15;
                const double weight =
                    (four < 8 ? four : four - 16) / number(2 * i + 2, row * blocks + j / 32);
                y[row] += magnitudes ? fabs(x[j] * weight) : x[j] * weight;
            }
        return y;
    }
};

struct Wanted {
    std::vector<double> values;
    // By how much they may be off where inputs of products, scales and sums are f16.
    std::vector<double> rounding;
};

Wanted wanted(const Weights& w, const float* in, int hidden, int middle) {
    const double kRound = 1. / 2048, kSteepest = 1.1;  // of f16, of Swish
    double squares = 0;
    for (int i = 0; i < hidden; i++) squares += (double)in[i] * in[i];
    std::vector<double> x(hidden);
    for (int i = 0; i < hidden; i++) x[i] = in[i] / sqrt(squares / hidden + kEps) * w.number(0, i);
    const std::vector<double> gate = w.times(0, x, middle), up = w.times(1, x, middle);
    const std::vector<double> gates = w.times(0, x, middle, true);
    const std::vector<double> ups = w.times(1, x, middle, true);
    std::vector<double> made(middle), off(middle);
    for (int i = 0; i < middle; i++) {
        const double swish = gate[i] / (1 + exp(-gate[i]));
        made[i] = swish * up[i];
        // Of x and the scales, then of what is stored.
        off[i] = 2 * kRound * (fabs(swish) * ups[i] + kSteepest * gates[i] * fabs(up[i])) +
                 kRound * fabs(made[i]);
    }
    Wanted all = {w.times(2, made, hidden), w.times(2, off, hidden, true)};
    const std::vector<double> sums = w.times(2, made, hidden, true);
    for (int i = 0; i < hidden; i++) {
        all.values[i] += in[i];
        all.rounding[i] += kRound * (sums[i] + fabs(all.values[i]));
    }
    return all;
}

// Keeps what was compiled last.
class KeepingBackend : public ForwardingBackend {
public:
    using ForwardingBackend::ForwardingBackend;
    std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                  const Option& opt) const override {
        return compiled = ForwardingBackend::compile(region, opt);
    }
    mutable std::shared_ptr<const CompiledRegion> compiled;
};

size_t count(const Program& program, Shader shader) {
    return std::count_if(program.dispatches.begin(), program.dispatches.end(),
                         [&](const Dispatch& d) { return d.key.shader == shader; });
}

void check(int hidden, int middle, int rows, size_t dispatches, bool f16 = false) {
    SCOPED_TRACE(std::to_string(hidden) + " to " + std::to_string(middle) + ", " +
                 std::to_string(rows) + " rows" + (f16 ? " of f16" : ""));
    Net net;
    net.opt.num_threads = 1;
    net.opt.use_fp16_storage = f16;
    const auto backend = std::make_shared<KeepingBackend>(net.opt);
    net.add_backend(backend);
    ASSERT_EQ(0, net.load_param_mem(feed_forward(hidden, middle).c_str()));
    const Weights weights;
    ASSERT_EQ(0, net.load_model(weights));
    ASSERT_EQ(7u, weights.read_.size());
    Mat in(hidden, rows), out;
    uint64_t state = 1;
    fill_random(in, in.total(), -2.f, 2.f, &state);
    for (size_t i = 0; f16 && i < in.total(); i++)
        in[i] = float16_to_float32(float32_to_float16(in[i]));
    Extractor ex = net.create_extractor();
    ASSERT_EQ(0, ex.input("in0", in));
    ASSERT_EQ(0, ex.extract("out0", out));
    ASSERT_TRUE(backend->compiled);
    const Program& program = as_vulkan(*backend->compiled).program();
    EXPECT_EQ(dispatches, program.dispatches.size());
    const bool bytes = f16 && rows == 1 && open_gpu(0)->features().dot_products;
    EXPECT_EQ(bytes ? 2u : 0u, count(program, Shader::gemv_blocks));
    for (int r = 0; r < rows; r++) {
        const Wanted want = wanted(weights, in.row(r), hidden, middle);
        double range = 0;
        for (double v : want.values) range = std::max(range, fabs(v));
        for (int i = 0; i < hidden; i++)
            EXPECT_NEAR(want.values[i], out.row(r)[i], 1e-5 * range + (f16 ? want.rounding[i] : 0))
                << "row " << r << ", value " << i;
    }
}

// An upload, a download, and one dispatch for each product, of one row for both in the middle; of
// several rows the norm besides.
TEST(VulkanBlocks, products_take_what_is_around_them) {
    if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    check(64, 96, 1, 4);
    check(40, 72, 1, 4);  // blocks that are not whole
    check(44, 72, 1, 5);  // words that are not
    check(1056, 24, 1, 4);
    check(24, 2080, 1, 4);
    check(64, 96, 5, 6);
}

TEST(VulkanBlocks, rows_of_f16_as_bytes) {
    if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    check(64, 96, 1, 4, true);
    check(32, 2304, 1, 4, true);
    check(2304, 32, 1, 4, true);
    check(9216, 64, 1, 4, true);  // rounds of the invocations
    check(64, 96, 5, 6, true);
}

}  // namespace
}  // namespace quoll
