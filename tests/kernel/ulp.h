// The distance of a float from an exact value, in units in the last place of the exact value.
#ifndef QUOLL_TESTS_KERNEL_ULP_H
#define QUOLL_TESTS_KERNEL_ULP_H

#include <float.h>
#include <math.h>

inline double ulp_of(double exact) {
    int e;
    frexp(fabs(exact), &e);
    if (e < -125) e = -125;  // denormals share the spacing of the least normal number
    return ldexp(1.0, e - 24);
}

// 0 when both are NaN, the same infinity, or exact is beyond float and got is infinite.
inline double ulp_error(float got, double exact) {
    if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (fabs(exact) > FLT_MAX) {
        if (isinf(got)) return (got > 0) == (exact > 0) ? 0 : INFINITY;
        return isinf(exact) ? INFINITY : fabs(got - exact) / ulp_of(FLT_MAX);
    }
    // Infinity instead of a value that rounds to the largest float counts as one step beyond it.
    const double value = isinf(got) ? copysign(ldexp(1.0, 128), got) : got;
    return fabs(value - exact) / ulp_of(exact);
}

#endif
