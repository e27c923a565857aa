// The layout kernels on every ISA, within guard pages.
#include <gtest/gtest.h>

#include "guarded.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/layout/layout.h"

using namespace quoll;

TEST(Layout, transpose) {
    for (Isa isa : available_isas()) {
        for (size_t rows : {1, 3, 16, 21, 40}) {
            for (size_t columns : {1, 4, 15, 32, 37}) {
                const size_t src_step = rows + 3, dst_step = columns + 2;
                Guarded<float> src((columns - 1) * src_step + rows);
                Guarded<float> dst((rows - 1) * dst_step + columns);
                for (size_t i = 0; i < src.size(); i++) src[i] = (float)i;
                for (float& x : dst) x = -1.f;
                kernel_set(isa).layout->transpose(
                    {src.data(), src_step, dst.data(), dst_step, rows, columns});
                for (size_t i = 0; i < dst.size(); i++) {
                    const size_t row = i / dst_step, column = i % dst_step;
                    const float want = column < columns ? (float)(column * src_step + row) : -1.f;
                    ASSERT_EQ(want, dst[i]) << isa_name(isa) << ", " << rows << " rows of "
                                            << columns << ", value " << i;
                }
            }
        }
    }
}
