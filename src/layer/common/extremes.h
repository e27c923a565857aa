// The greater and the lesser of two numbers, NaN if either is.
#ifndef QUOLL_LAYER_EXTREMES_H
#define QUOLL_LAYER_EXTREMES_H

#include <math.h>

namespace quoll {

template <class T>
inline T maximum(T a, T b) {
    return a > b || isnan(a) ? a : b;
}
template <class T>
inline T minimum(T a, T b) {
    return a < b || isnan(a) ? a : b;
}

}  // namespace quoll

#endif
