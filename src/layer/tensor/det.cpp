#include "layer/tensor/det.h"

#include <math.h>

#include <algorithm>

namespace quoll {

int Det::shape(const Det& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "input", in[0].dtype, DType::f32));
    if (in[0].dims < 2 || in[0].w != in[0].h)
        return s.fail("expected square matrices, got %s", shape_text(in[0]).c_str());
    std::vector<int> sizes = sizes_of(in[0]);
    sizes.resize(sizes.size() - 2);
    out.resize(1);
    return shape_of_sizes(s, sizes, DType::f32, &out[0]);
}

// The determinant of a matrix of n rows, which is overwritten: elimination with the largest pivot
// of each column.
static double determinant(std::vector<double>& a, int n) {
    double det = 1;
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (a[pivot * n + k] == 0) return 0;
        if (pivot != k) {
            std::swap_ranges(&a[pivot * n], &a[pivot * n] + n, &a[k * n]);
            det = -det;
        }
        det *= a[k * n + k];
        for (int i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int j = k + 1; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

int Det::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    const size_t each = (size_t)m.w * m.h, count = value_count(tops[0]);
    const Flat from(m), into(tops[0]);
    std::vector<double> matrix(each);
    for (size_t i = 0; i < count; i++) {
        const float* first = (const float*)m.data + (each ? from(i * each) : 0);
        std::copy(first, first + each, matrix.begin());
        ((float*)tops[0].data)[into(i)] = (float)determinant(matrix, m.w);
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Det)

}  // namespace quoll
