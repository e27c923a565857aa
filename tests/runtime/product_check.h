// y = a b of a net with these blobs against sums in double.
#ifndef QUOLL_TESTS_PRODUCT_CHECK_H
#define QUOLL_TESTS_PRODUCT_CHECK_H

#include <gtest/gtest.h>
#include <math.h>

#include <algorithm>

#include "quoll/net.h"

namespace quoll {

// transposed: b is [columns][depth]. rounding: of a stored value, relative; least: absolute,
// besides what f32 loses in the sums. row_step: rows from one that is looked at to the next; the
// last is. of_sizes: what products may be wrong by besides, of the sum of their magnitudes.
inline void expect_product(const Net& net, const Mat& a, const Mat& b, bool transposed,
                           double rounding, double least, int row_step, double of_sizes = 0) {
    Extractor ex = net.create_extractor();
    Mat y;
    ASSERT_EQ(0, ex.input("a", a));
    ASSERT_EQ(0, ex.input("b", b));
    ASSERT_EQ(0, ex.extract("y", y));
    const int rows = a.h, depth = a.w, columns = transposed ? b.h : b.w;
    for (int i = 0; i < rows; i += i + row_step < rows ? row_step : std::max(1, rows - 1 - i)) {
        for (int j = 0; j < columns; j++) {
            double sum = 0, size = 0;
            for (int k = 0; k < depth; k++) {
                const double p = (double)a.row(i)[k] * (transposed ? b.row(j)[k] : b.row(k)[j]);
                sum += p, size += fabs(p);
            }
            const double bound =
                fabs(sum) * rounding + least + depth * size / 8388608 + of_sizes * size;
            ASSERT_NEAR(sum, y.row(i)[j], bound) << rows << " " << depth << " " << i << " " << j;
        }
    }
}

}  // namespace quoll

#endif
