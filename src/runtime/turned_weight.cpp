#include "runtime/turned_weight.h"

#include <string.h>

#include <algorithm>

namespace quoll {

Mat WeightByInputs::copy() const {
    Mat m((int)outputs, (int)inputs);
    for (size_t i = 0; i < inputs && !m.empty(); i++)
        memcpy(m.row((int)i), row(i), outputs * sizeof(float));
    return m;
}

Mat WeightByInputs::turned() const {
    const size_t kBlock = 16;
    Mat m((int)(inputs * outputs));
    if (m.empty()) return m;
    float* const to = m;
    for (size_t begin = 0; begin < outputs; begin += kBlock) {
        const size_t count = std::min(outputs - begin, kBlock);
        for (size_t i = 0; i < inputs; i++) {
            float values[kBlock];
            memcpy(values, row(i) + begin * sizeof(float), count * sizeof(float));
            for (size_t o = 0; o < count; o++) to[(begin + o) * inputs + i] = values[o];
        }
    }
    return m;
}

}  // namespace quoll
