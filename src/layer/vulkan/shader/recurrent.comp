// The steps of LSTM (4 gates i, f, o, g), GRU (3: r, u, n) and RNN (1), one after the other: a group
// for each direction and item, an invocation for every 128th value of the state.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "math.glsl"

layout(constant_id = 0) const int kGates = 4;
layout(constant_id = 1) const bool kHasStates = false;    // else they begin at 0
layout(constant_id = 2) const bool kMakesStates = false;  // as outputs
layout(constant_id = 3) const int kDirection = 0;         // 1: the first one is reversed
const uint kMost = 1024u, kGroup = 128u;
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) readonly buffer Sums { float sums[]; };  // of recurrent_input
READS(1, Weights, weights);  // [direction][state][row]
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };  // [direction][state], GRU's n
READS(3, Hidden, first_hidden);
READS(4, Cell, first_cell);
WRITES(5, Output, y);
WRITES(6, LastHidden, last_hidden);
WRITES(7, LastCell, last_cell);
layout(push_constant) uniform Push {
    uint size, steps, items;
    uint y_first, y_step, y_item, y_direction;
    uint hidden_first, cell_first, last_hidden_first, last_cell_first, state_item, state_direction;
};
shared float hidden[2][kMost];

void main() {
    const uint direction = gl_WorkGroupID.x, item = gl_WorkGroupID.y, begin = gl_LocalInvocationID.x;
    const uint rows = uint(kGates) * size, state = item * state_item + direction * state_direction;
    const bool reversed = kDirection == 1 || direction == 1u;
    float cell[kMost / kGroup];
    for (uint q = begin; q < size; q += kGroup) {
        hidden[0][q] = kHasStates ? float(first_hidden[hidden_first + state + q]) : 0.0;
        cell[q / kGroup] =
            kHasStates && kGates == 4 ? float(first_cell[cell_first + state + q]) : 0.0;
    }
    barrier();
    for (uint s = 0u; s < steps; s++) {
        const uint step = reversed ? steps - 1u - s : s, now = s & 1u;
        const uint from = ((direction * items + item) * steps + step) * rows;
        for (uint q = begin; q < size; q += kGroup) {
            float gate[4] = {0.0, 0.0, 0.0, 0.0};
            if (kGates == 3) gate[2] = bias[direction * size + q];
            uint at = direction * size * rows + q;
            for (uint k = 0u; k < size; k++, at += rows)
                for (uint g = 0u; g < uint(kGates); g++)
                    gate[g] += float(weights[at + g * size]) * hidden[now][k];
            float made;
            if (kGates == 4) {
                for (uint g = 0u; g < 4u; g++) gate[g] += sums[from + g * size + q];
                const float next = exact_sigmoid(gate[1]) * cell[q / kGroup] +
                                   exact_sigmoid(gate[0]) * exact_tanh(gate[3]);
                cell[q / kGroup] = next;
                made = exact_sigmoid(gate[2]) * exact_tanh(next);
            } else if (kGates == 3) {
                const float r = exact_sigmoid(gate[0] + sums[from + q]);
                const float u = exact_sigmoid(gate[1] + sums[from + size + q]);
                const float n = exact_tanh(sums[from + 2u * size + q] + r * gate[2]);
                made = (1.0 - u) * n + u * hidden[now][q];
            } else {
                made = exact_tanh(gate[0] + sums[from + q]);
            }
            hidden[1u - now][q] = made;
            y[y_first + item * y_item + step * y_step + direction * y_direction + q] = STORED(made);
        }
        barrier();
    }
    if (!kMakesStates) return;
    for (uint q = begin; q < size; q += kGroup) {
        last_hidden[last_hidden_first + state + q] = STORED(hidden[steps & 1u][q]);
        if (kGates == 4) last_cell[last_cell_first + state + q] = STORED(cell[q / kGroup]);
    }
}
