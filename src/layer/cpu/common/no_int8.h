// Empty classes that replace those of layer/cpu/int8 without QUOLL_INT8. Layers refuse int8 weights
// before they would make one (check_int8_term).
#ifndef QUOLL_LAYER_CPU_COMMON_NO_INT8_H
#define QUOLL_LAYER_CPU_COMMON_NO_INT8_H

#include <memory>

#include "quoll/mat.h"
#include "quoll/option.h"

namespace quoll {

struct Int8TilePlan {};

// Int8Conv, Int8Depthwise, Int8Matrix and Int8Sums.
class NoInt8 {
public:
    enum { kUnsuitable = 1 };
    template <class... Args>
    int create(const Args&...) {
        return kError;
    }
    static constexpr bool created() { return false; }
    template <class... Args>
    static constexpr int out_pack(const Args&...) {
        return 1;
    }
    template <class... Args>
    std::shared_ptr<const Int8TilePlan> plan(const Args&...) const {
        return nullptr;
    }
    template <class... Args>
    int forward(const Args&...) const {
        return kError;
    }
    template <class... Args>
    int forward_added(const Args&...) const {
        return kError;
    }
    template <class... Args>
    int forward_ranged(const Args&...) const {
        return kError;
    }
    void give_int8(float, int) {}
    const char* kernels(const Int8TilePlan*) const { return ""; }
};
typedef NoInt8 Int8Conv;
typedef NoInt8 Int8Depthwise;
typedef NoInt8 Int8Matrix;
typedef NoInt8 Int8Sums;

inline int int16_parts(const Mat&, float, Mat*, Mat*, const Option&) { return kError; }
inline bool int8_sums_fit(const Mat&, int, bool = false) { return false; }

}  // namespace quoll

#endif
