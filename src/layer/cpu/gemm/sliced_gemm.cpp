#include "layer/cpu/gemm/sliced_gemm.h"

#include <math.h>

#include <algorithm>

namespace quoll {

double CrestFactor::ratio() const { return squares > 0 ? peak * sqrt(count / squares) : 0; }

void CrestFactor::add(const CrestFactor& other) {
    peak = std::max(peak, other.peak);
    squares += other.squares;
    count += other.count;
    finite = finite && other.finite;
}

void CrestFactor::widen(const CrestFactor& other) {
    const bool all_finite = finite && other.finite;
    if (other.ratio() > ratio()) *this = other;
    finite = all_finite;
}

}  // namespace quoll
