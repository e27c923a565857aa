// The resize kernels on every ISA against sums in double precision.
#include <float.h>
#include <gtest/gtest.h>
#include <math.h>

#include <random>

#include "guarded.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/resize/resize.h"

using namespace quoll;

namespace {

struct Entry {
    const char* name;
    ResizeVariants ResizeKernels::*forms;
    int taps;
};
const Entry kEntries[] = {
#define QUOLL_RESIZE(name, taps) {#name, &ResizeKernels::name, taps},
#include "layer/cpu/resize/kernels.inc"
#undef QUOLL_RESIZE
};

void PrintTo(const Entry& e, std::ostream* os) { *os << e.name; }

class Resize : public ::testing::TestWithParam<Entry> {
protected:
    // Every addition and multiplication rounds a value that is at most the sum of magnitudes.
    void check(double sum, double magnitude, float got, Isa isa) const {
        ASSERT_LE(fabs(got - sum), GetParam().taps * FLT_EPSILON * magnitude) << isa_name(isa);
    }
    std::mt19937 rng{7};
    std::uniform_real_distribution<float> value{-2.f, 2.f};
};

TEST_P(Resize, along_a_row) {
    const int taps = GetParam().taps, width = 23;
    for (Isa isa : available_isas()) {
        for (int p = 0; p < kResizePacks; p++) {
            const int pack = kResizePack[p];
            for (int n : {0, 1, 5, 16, 37}) {
                Guarded<float> row(width * pack), factor(n * taps), out(n * pack);
                Guarded<int> index(n * taps);
                for (float& x : row) x = value(rng);
                for (float& x : factor) x = value(rng);
                for (int& i : index) i = (int)(rng() % width);
                (kernel_set(isa).resize->*GetParam().forms)
                    .row[p](row.data(), index.data(), factor.data(), out.data(), n);
                for (int i = 0; i < n * pack; i++) {
                    double sum = 0, magnitude = 0;
                    for (int k = i / pack * taps; k < (i / pack + 1) * taps; k++) {
                        const double term = (double)row[index[k] * pack + i % pack] * factor[k];
                        sum += term, magnitude += fabs(term);
                    }
                    check(sum, magnitude, out[i], isa);
                }
            }
        }
    }
}

TEST_P(Resize, across_rows) {
    const int taps = GetParam().taps;
    for (Isa isa : available_isas()) {
        for (size_t n : {0, 1, 3, 4, 8, 15, 16, 17, 64, 131}) {
            Guarded<float> a(n), b(n), c(n), d(n), factor(taps), out(n);
            const float* const rows[4] = {a.data(), b.data(), c.data(), d.data()};
            for (Guarded<float>* m : {&a, &b, &c, &d, &factor})
                for (float& x : *m) x = value(rng);
            (kernel_set(isa).resize->*GetParam().forms).column(rows, factor.data(), out.data(), n);
            for (size_t i = 0; i < n; i++) {
                double sum = 0, magnitude = 0;
                for (int k = 0; k < taps; k++) {
                    const double term = (double)rows[k][i] * factor[k];
                    sum += term, magnitude += fabs(term);
                }
                check(sum, magnitude, out[i], isa);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Resize, ::testing::ValuesIn(kEntries),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
