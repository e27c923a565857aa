// The steps of a recurrent layer's direction, once the input's products are there.
#ifndef QUOLL_LAYER_RECURRENT_STEPS_H
#define QUOLL_LAYER_RECURRENT_STEPS_H

#include <stddef.h>

namespace quoll {

// Whether there are kernels that run all that a step does, for some processors of this kind.
#if defined(__x86_64__)
constexpr bool kMayRunWhole = true;
#else
constexpr bool kMayRunWhole = false;
#endif

// Distances count floats.
struct RecurrentSteps {
    int items;
    const int* lens;  // of each item: its steps
    bool reverse;     // step s of an item is at time lens[i] - 1 - s, else at time s
    // The gates' sums of the input, with biases; the first ones are those of this time.
    const float* x;
    int x_first;
    size_t x_time, x_item;
    float *hidden, *cell;  // [item][units]: the states, updated in place
    float* y;              // where the states of each time go besides
    size_t y_time, y_item;

    int time(int item, int step) const { return reverse ? lens[item] - 1 - step : step; }
    const float* input(int item, int step) const {
        return x + (size_t)(time(item, step) - x_first) * x_time + item * x_item;
    }
    float* output(int item, int step) const {
        return y + time(item, step) * y_time + item * y_item;
    }
};

}  // namespace quoll

#endif
