// The right operand of products of 8-bit integers, packed into panels, with the sums of its
// columns.
#ifndef QUOLL_CPU_PACKED_INTEGERS_H
#define QUOLL_CPU_PACKED_INTEGERS_H

#include <algorithm>

#include "layer/cpu/int8/int8.h"
#include "layer/cpu/int8/int8_tiles.h"
#include "quoll/mat.h"

namespace quoll {

// Tile units that multiply rows in place, or null.
constexpr bool kHasRowUnits = kHasTileUnits && !kInt8Lists;
inline const Int8UnitKernels* row_units() {
    if constexpr (kHasRowUnits) return usable_int8_units();
    return nullptr;
}
// k-groups that a step of the units multiplies.
enum { kStepKGroups = kUnitRowBytes / 4 };

// Matrices of one size as panels of k-groups. Where k-groups hold four values, B's are s8, u8 ones
// less 128, and A's are u8, s8 ones plus 128; else both are as they are but u8 ones of B less 128.
struct PackedIntegers {
    const Int8Kernels* kernels = nullptr;
    size_t n = 0, columns = 0;       // of a matrix; columns: n rounded up to panels
    size_t k_groups = 0, steps = 0;  // of equal size, where there are units
    int offset = 0;                  // b - offset is what is packed
    Mat packed;                      // [matrices][columns / lanes * k-groups][lanes]
    Mat sums;                        // s32 [matrices][columns]

    size_t full() const { return (size_t)kernels->lanes * kernels->vectors; }
    size_t panels() const { return (columns + full() - 1) / full(); }
    size_t width(size_t panel) const { return std::min(full(), columns - panel * full()); }
    int32_t* panel(int matrix, size_t p) const {
        return (int32_t*)packed.data + (matrix * columns + p * full()) * k_groups;
    }
    const int32_t* sums_of(int matrix) const {
        return (const int32_t*)sums.data + matrix * columns;
    }

    int create(int matrices, int k, int n, bool is_signed, Allocator* allocator);
    // rows: k of them, row_step bytes apart.
    void pack(int matrix, const unsigned char* rows, size_t row_step, int k);

private:
    void pack_panel(int32_t* to, size_t p, const unsigned char* rows, size_t row_step, int k) const;
};

}  // namespace quoll

#endif
