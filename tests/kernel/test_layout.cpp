// The layout kernels on every ISA, within guard pages.
#include <gtest/gtest.h>

#include "guarded.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/layout/layout.h"

using namespace quoll;

namespace {

template <class T, class Kernel>
void check_transpose(Kernel LayoutKernels::*kernel) {
    const T nothing = (T)65535;  // beyond 13 times the number of values
    for (Isa isa : available_isas()) {
        if (!(kernel_set(isa).layout->*kernel)) continue;
        for (size_t rows : {1, 3, 16, 21, 40}) {
            for (size_t columns : {1, 4, 15, 32, 37, 85}) {
                const size_t src_step = rows + 3, dst_step = columns + 2;
                Guarded<T> src((columns - 1) * src_step + rows);
                Guarded<T> dst((rows - 1) * dst_step + columns);
                for (size_t i = 0; i < src.size(); i++) src[i] = (T)(i * 13);
                for (T& x : dst) x = nothing;
                (kernel_set(isa).layout->*kernel)(
                    {src.data(), src_step, dst.data(), dst_step, rows, columns});
                for (size_t i = 0; i < dst.size(); i++) {
                    const size_t row = i / dst_step, column = i % dst_step;
                    const T want = column < columns ? (T)((column * src_step + row) * 13) : nothing;
                    ASSERT_EQ(want, dst[i]) << isa_name(isa) << ", " << rows << " rows of "
                                            << columns << ", value " << i;
                }
            }
        }
    }
}

}  // namespace

TEST(Layout, transpose) { check_transpose<float>(&LayoutKernels::transpose); }
TEST(Layout, transpose_halves) { check_transpose<uint16_t>(&LayoutKernels::transpose_halves); }
