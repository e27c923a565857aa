#ifndef NCNN_BENCHMARK_H
#define NCNN_BENCHMARK_H

#include <chrono>

#include "layer.h"
#include "mat.h"
#include "platform.h"

namespace ncnn {

// Milliseconds since some point in the past.
inline double get_current_time() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

inline void sleep(unsigned long long int milliseconds = 1000) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

}  // namespace ncnn

#endif
