#include "layer/cpu/matmul/packed_integers.h"

#include <limits.h>

#include "layer/common/scratch.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/int8/integer_rows.h"

namespace quoll {

int PackedIntegers::create(int matrices, int k, int n, bool is_signed, Allocator* allocator) {
    kernels = host_kernel_set().int8;
    this->n = n;
    k_groups = (k + kernels->k_group - 1) / kernels->k_group;
    if (row_units()) {
        steps = (k_groups + kStepKGroups - 1) / kStepKGroups;
        k_groups = (k_groups + steps - 1) / steps * steps;
    }
    offset = is_signed ? 0 : 128;
    const size_t lanes = kernels->lanes, rest = n % full();
    columns = n - rest + (rest == 0 ? 0 : rest <= lanes ? lanes : full());
    const double vectors = (double)columns / lanes * k_groups * matrices;
    if (vectors > INT_MAX || (double)columns * matrices > INT_MAX) return kOutOfMemory;
    packed.create((int)lanes, (int)vectors, (size_t)4u, allocator);
    sums.create((int)(columns * matrices), (size_t)4u, allocator);
    return packed.empty() || sums.empty() ? (int)kOutOfMemory : (int)kOk;
}

void PackedIntegers::pack_panel(int32_t* to, size_t p, const unsigned char* rows, size_t row_step,
                                int k) const {
    const size_t first = p * full(), count = std::min(n - first, width(p));
    signed char changed[2][kGemmMaxRows * 4];
    // The kernel adds the offset of activations to k-groups of four.
    const bool wide = kernels->k_group == 2,
               flips = !wide && (kernels->offset != 0) != (offset != 0);
    for (size_t w = 0; w < k_groups; w++, to += width(p)) {
        const size_t row = w * kernels->k_group;
        Int8Rows join = {};
        join.count = (int)std::min<size_t>(kernels->k_group, std::max<size_t>(k, row) - row);
        join.n = count, join.k_groups = to;
        for (int e = 0; e < join.count; e++) {
            join.rows[e] = (const int8_t*)rows + (row + e) * row_step + first;
            if (!wide || offset == 0) continue;
            for (size_t i = 0; i < count; i++) changed[e][i] = (int8_t)(join.rows[e][i] ^ 0x80);
            join.rows[e] = changed[e];
        }
        if (join.count == 0) {
            std::fill_n(to, width(p), 0);
            continue;
        }
        kernels->k_groups(join);
        if (flips) flip_words(to, (int)count, (int32_t)0x80808080);
        for (size_t i = count; i < width(p); i++) to[i] = 0;
    }
}

void PackedIntegers::pack(int matrix, const unsigned char* rows, size_t row_step, int k) {
    const int32_t zeros[kGemmMaxRows * 4] = {};
    // The sums of columns: a row of ones times the matrix.
    Scratch<int32_t> ones;
    ones->assign(k_groups, 0);
    for (int i = 0; i < k; i++) {
        if (kernels->k_group == 4)
            ((uint8_t*)ones->data())[i] = 1;
        else
            ((int16_t*)ones->data())[i] = 1;
    }
    const GemmBlock block = {0, 0};
    for (size_t p = 0; p < panels(); p++) {
        int32_t* to = panel(matrix, p);
        pack_panel(to, p, rows, row_step, k);
        Int8Tile tile = {};
        tile.a = ones->data(), tile.blocks = &block, tile.num_blocks = 1, tile.block_k = k_groups;
        tile.b = to, tile.init = zeros;
        tile.sums = (int32_t*)sums.data + matrix * columns + p * full();
        (width(p) < full() ? kernels->tile_single : kernels->tile)[0](tile);
    }
}

}  // namespace quoll
