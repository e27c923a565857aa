#include "layer/nn/pairwisecoupling.h"

#include <math.h>

#include <algorithm>
#include <numeric>

namespace quoll {

void PairwiseCoupling::params(PairwiseCoupling& s, ParamVisitor& v) {
    v(0, "classes", s.classes, 2, "classes", between(2, 512));
}

void PairwiseCoupling::weights(PairwiseCoupling&, WeightVisitor&) {}

int PairwiseCoupling::shape(const PairwiseCoupling& s, const std::vector<Shape>& in,
                            std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "input", in[0].dtype, DType::f32));
    const int pairs = s.classes * (s.classes - 1) / 2;
    if (in[0].dims != 2 || in[0].w != pairs)
        return s.fail("expected [rows, %d], got %s", pairs, shape_text(in[0]).c_str());
    out.assign(1, in[0]);
    out[0].w = s.classes;
    return kOk;
}

// Minimises p' Q p for sums of p of 1, where Q[i][i] is the sum of squares of what the others win
// against i, and Q[i][j] = -r[i][j] r[j][i]: class after class is brought to its best value while
// the others keep their proportions. It ends where Q p is nearly the same for all, as the programs
// do that fitted the probabilities: their answers have that rounding.
void PairwiseCoupling::couple(const float* pairs, Buffers* b, float* out) const {
    const size_t n = (size_t)classes;
    std::vector<double>&r = b->first, &q = b->system, &p = b->p, &qp = b->product;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            r[i * n + j] = std::min(std::max((double)*pairs++, 1e-7), 1 - 1e-7);
            r[j * n + i] = 1 - r[i * n + j];
        }
    }
    for (size_t i = 0; i < n; i++) {
        q[i * n + i] = 0;
        for (size_t j = 0; j < n; j++) {
            if (j == i) continue;
            q[i * n + i] += r[j * n + i] * r[j * n + i];
            q[i * n + j] = -r[i * n + j] * r[j * n + i];
        }
    }
    p.assign(n, 1.0 / classes);
    const int rounds = std::max(100, classes);
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < n; i++)
            qp[i] = std::inner_product(p.begin(), p.end(), q.begin() + (ptrdiff_t)(i * n), 0.0);
        double sum = std::inner_product(p.begin(), p.end(), qp.begin(), 0.0), error = 0;
        for (double v : qp) error = std::max(error, fabs(v - sum));
        if (!(error >= 0.005 / classes)) break;
        for (size_t i = 0; i < n; i++) {
            const double step = (sum - qp[i]) / q[i * n + i];
            p[i] += step;
            for (size_t j = 0; j < n; j++) {
                qp[j] = (qp[j] + step * q[j * n + i]) / (1 + step);
                p[j] /= 1 + step;
            }
            sum = std::inner_product(p.begin(), p.end(), qp.begin(), 0.0);
        }
    }
    for (size_t i = 0; i < n; i++) out[i] = (float)p[i];
}

int PairwiseCoupling::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                              const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    if (tops[0].empty()) return kOk;
    const size_t n = (size_t)classes;
    Buffers b;
    b.first.resize(n * n), b.system.resize(n * n), b.p.resize(n), b.product.resize(n);
    for (int y = 0; y < tops[0].h; y++)
        couple((const float*)bottoms[0].data + (size_t)y * bottoms[0].w, &b,
               (float*)tops[0].data + (size_t)y * n);
    return kOk;
}

QUOLL_DEFINE_LAYER(PairwiseCoupling)

}  // namespace quoll
