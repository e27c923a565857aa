#include "layer/cpu/gemm/fixed_gemm.h"

#include <math.h>

#include <algorithm>

namespace quoll {

double FixedSpread::ratio() const { return squares > 0 ? peak * sqrt(count / squares) : 0; }

void FixedSpread::add(const FixedSpread& other) {
    peak = std::max(peak, other.peak);
    squares += other.squares;
    count += other.count;
    finite = finite && other.finite;
}

void FixedSpread::widen(const FixedSpread& other) {
    const bool all_finite = finite && other.finite;
    if (other.ratio() > ratio()) *this = other;
    finite = all_finite;
}

}  // namespace quoll
