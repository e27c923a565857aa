#include "layer/common/int8_rows.h"

#include <math.h>

#include <algorithm>

namespace quoll {

float int8_scale(const float* x, int rows, size_t step, int count) {
    float most = 0.f;
    for (int y = 0; y < rows; y++)
        for (int i = 0; i < count; i++) most = std::max(most, fabsf(x[y * step + i]));
    return most == 0.f ? 1.f : 127.f / most;
}

void to_int8(const float* x, int count, float scale, signed char* out) {
    for (int i = 0; i < count; i++) out[i] = float2int8(x[i] * scale);
}

int64_t int8_dot(const signed char* a, const signed char* b, int count) {
    const int kMost = 1 << 16;  // products that an int32 holds the sum of
    int64_t sum = 0;
    for (int i = 0; i < count; i += kMost) {
        const int end = std::min(count, i + kMost);
        int32_t part = 0;
        for (int j = i; j < end; j++) part += a[j] * b[j];
        sum += part;
    }
    return sum;
}

}  // namespace quoll
