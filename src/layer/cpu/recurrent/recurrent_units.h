// Steps of recurrent layers on tile units, in nets with bf16 storage: products of the state by its
// weights, and what the cell makes of them and of the input's, which is done while further sums are
// made.
//
// The state is rounded to bf16. Up to kPreciseItems items have the remainders as rows of their own,
// which cost little there and give states of 16 bits.
#ifndef QUOLL_LAYER_CPU_RECURRENT_RECURRENT_UNITS_H
#define QUOLL_LAYER_CPU_RECURRENT_RECURRENT_UNITS_H

#include <stddef.h>
#include <stdint.h>

namespace quoll {

enum {
    kUnitItems = 16,  // rows of a tile
    kPreciseItems = 4,
    kCellColumns = 16,  // units of a tile
    kCellK = 32,        // values of the state of a tile
    kCellTileBytes = 1024,
    kMostGates = 4
};

// One step of up to kUnitItems items. Not aligned unless said.
struct RecurrentUnitStep {
    // The place for the operand that a call makes of the states: [k / 32][row][k % 16][k / 16 % 2]
    // of bf16 values, aligned to 64 bytes, zero before the first call. Row `items` + i has what is
    // left of row i, if there are twice as many rows as items.
    uint16_t* state;
    int items, rows;
    size_t n;  // units, a multiple of 16
    // Groups of 1 unit tile (RNN: 4): [group][k / 32][gate or unit tile] of tiles
    // [k % 16][unit][k / 16 % 2], zero from n on, aligned to 64 bytes.
    const uint16_t* weights;
    size_t first_group, end_group;
    size_t gate[kMostGates];     // where a gate's n sums begin in a row of x
    const float* last_bias;      // n values: of the state's sums of a GRU's last gate
    const float* const* x;       // of each item: sums of the input; null: the item has ended
    const float* const* before;  // of each item: the state
    float* const* y;             // of each item: the new one, of a group of units or all
    float* cell;                 // [item][n]
};
typedef void (*RecurrentUnitKernel)(const RecurrentUnitStep& step);

struct RecurrentUnitKernels {
    // Before steps with so many rows, and after them, on each thread.
    void (*begin)(int rows);
    void (*end)();
    RecurrentUnitKernel lstm;  // gates i, f, o, g: c = f c + i g, h = o tanh(c)
    RecurrentUnitKernel gru;   // r, u, n: h = (1 - u) tanh(x + r (h + last_bias)) + u h
    RecurrentUnitKernel rnn;   // h = tanh(x + h)
};

// Unit tiles of a group.
inline size_t cell_group_tiles(int gates) { return gates == 1 ? 4 : 1; }

}  // namespace quoll

#endif
