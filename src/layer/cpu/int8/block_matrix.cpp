#include "layer/cpu/int8/block_matrix.h"

#include <math.h>
#include <string.h>

#include <algorithm>

#include "quoll/cpu.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Values of k that a k-group of the smallest weights has; a multiple of it fits all.
enum { kWord = 8 };
// From so many rows on unpacked weights are worth their memory.
enum { kManyRows = 9 };
// Columns whose unpacked weights meet all rows before the next ones are unpacked, on tile units: so
// many that laying out the rows again for each group hardly counts.
enum { kTileGroup = 512 };

// Eight values of 4 bits in order, as kernels have them: byte i holds value i and value i + 4.
uint32_t in_halves(uint32_t word) {
    uint32_t out = 0;
    for (int i = 0; i < 8; i++) out |= (word >> 4 * i & 15) << (i % 4 * 8 + i / 4 * 4);
    return out;
}

// Whether half floats say what blocks are multiplied by as well as the quotients that floats hold.
bool have_half_inverses(const float* scales, int64_t count) {
    return std::all_of(scales, scales + count, [](float scale) {
        const float x = 1.f / scale;
        return fabsf(float16_to_float32(float32_to_float16(x)) - x) <= fabsf(x) * 0x1p-22f;
    });
}

// bf16 values have 8 bits.
int digit_count(int rows, const Option& opt) { return opt.use_bf16_storage && rows == 1 ? 2 : 3; }

}  // namespace

int BlockMatrix::reserve(const Layer& layer, int n, int k, int64_t blocks, size_t scale_bytes) {
    int8_ = host_kernel_set().int8;
    n_ = n;
    inputs_count_ = k;
    k_ = (k + kWord - 1) / kWord * kWord;
    // An even number of panels, as block_row takes two.
    const int lanes = int8_->lanes, panels = (n + 2 * lanes - 1) / (2 * lanes) * 2;
    // Rows of a k-group's columns, as the number of k-groups may exceed an int.
    weights_.create(lanes, (int)(panels * (panel_k_groups() / lanes)));
    scales_.create(lanes, (int)(panels * blocks), scale_bytes);
    zeros_ = product_bias(host_kernel_set(), nullptr, n_);
    if (weights_.empty() || scales_.empty() || zeros_.empty()) {
        layer.fail("out of memory for %d x %d weights of %d bits", n, k, bits_);
        return kOutOfMemory;
    }
    weights_.fill(0);
    memset(scales_.data, 0, (size_t)scales_.total() * scale_bytes);
    return kOk;
}

int BlockMatrix::create(const Layer& layer, const BlockQuant& quant, const Mat& packed,
                        const Mat& scales, const Mat& zeros, const Mat& inputs, int n, int k) {
    bits_ = quant.kept_bits();
    form_ = bits_ / 8;
    block_ = quant.block;
    const bool halves = have_half_inverses(scales, n * quant.blocks(k));
    QUOLL_RETURN_IF_ERROR(reserve(layer, n, k, quant.blocks(k), halves ? 2 : 4));
    if (quant.input_scales) inputs_ = inputs;
    if (!zeros.empty()) {
        offsets_.create(scales_.w, scales_.h, (size_t)4u);
        if (offsets_.empty()) {
            layer.fail("out of memory for %d zero points", zeros.w);
            return kOutOfMemory;
        }
        offsets_.fill(0.f);
        const int count = (int)quant.blocks(k);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < count; i++)
                offsets_[scale_at(j, i)] =
                    -zeros[(size_t)j * count + i] * (1.f / scales[(size_t)j * count + i]);
    }
    for (int j = 0; j < n; j++) pack_column(quant, packed, scales, j, k);
    kernels_ = &host_kernel_set();
    return kOk;
}

int BlockMatrix::create(const Layer& layer, DType storage, const float* weights, size_t n_step,
                        size_t k_step, int n, int k) {
    bits_ = 16;
    form_ = storage == DType::bf16;
    block_ = std::max(k, 1);
    QUOLL_RETURN_IF_ERROR(reserve(layer, n, k, 1, 4));
    const size_t lanes = int8_->lanes;
    for (int j = 0; j < n; j++) {
        uint16_t* to =
            (uint16_t*)((int32_t*)weights_.data + j / lanes * panel_k_groups()) + j % lanes;
        for (int i = 0; i < k; i++) {
            const float w = weights[j * n_step + i * k_step];
            to[i * lanes] = form_ ? float32_to_bfloat16(w) : float32_to_float16(w);
        }
    }
    kernels_ = &host_kernel_set();
    return kOk;
}

void BlockMatrix::pack_column(const BlockQuant& quant, const Mat& packed, const Mat& scales, int j,
                              int k) {
    const int pair = 2 * int8_->lanes, each = 32 / bits_, blocks = (int)quant.blocks(k);
    const int64_t bytes = quant.row_bytes(k);
    const unsigned char* from = (const unsigned char*)packed.data + j * bytes;
    const float* scale = (const float*)scales.data + (int64_t)j * blocks;
    for (int i = 0; i < blocks; i++) {
        const size_t at = scale_at(j, i);
        if (scales_.elemsize == 2)
            ((uint16_t*)scales_.data)[at] = float32_to_float16(1.f / scale[i]);
        else
            scales_[at] = 1.f / scale[i];
    }
    uint32_t* k_group_bits = (uint32_t*)weights_.data + j / pair * 2 * panel_k_groups() + j % pair;
    const unsigned mask = (1u << quant.bits) - 1, sign = 1u << (quant.bits - 1);
    // Whole words of a k-group at once, unless values had fewer bits in the file.
    const int words = quant.bits == bits_ ? k / each : 0;
    for (int i = 0; i < words; i++) {
        uint32_t word;
        memcpy(&word, from + (size_t)i * sizeof(word), sizeof(word));
        k_group_bits[(size_t)i * pair] = bits_ == 4 ? in_halves(word) : word;
    }
    for (int i = words * each; i < k; i++) {
        const int64_t bit = (int64_t)i * quant.bits, at = bit / 8;
        unsigned value = from[at];
        if (at + 1 < bytes) value |= (unsigned)from[at + 1] << 8;
        value = ((value >> bit % 8 & mask) ^ sign) - sign;
        const int shift = bits_ == 4 ? i % 4 * 8 + i % 8 / 4 * 4 : i % each * bits_;
        k_group_bits[(size_t)(i / each) * pair] |= (value & ((1u << bits_) - 1)) << shift;
    }
}

// Of a block's value for column j.
size_t BlockMatrix::scale_at(int j, int block) const {
    const size_t pair = 2 * int8_->lanes;
    return (j / pair * blocks() + block) * pair + j % pair;
}

BlockTile BlockMatrix::panel(size_t p) const {
    const size_t lanes = int8_->lanes, first = scale_at((int)(p * lanes), 0);
    BlockTile tile = {};
    tile.b = (const int32_t*)weights_.data +
             (bits_ == 16 ? p * panel_k_groups() : p / 2 * 2 * panel_k_groups() + p % 2 * lanes);
    if (scales_.elemsize == 2)
        tile.half_scale = (const uint16_t*)scales_.data + first;
    else
        tile.scale = (const float*)scales_.data + first;
    tile.offset = offsets_.empty() ? nullptr : (const float*)offsets_.data + first;
    tile.k = k_, tile.block = block_;
    return tile;
}

int BlockMatrix::sum_blocks(const Mat& a, const Option& opt, Mat* sums) const {
    if (offsets_.empty()) return kOk;
    // Kernels read those of whole tiles.
    sums->create(blocks(), a.h + int8_->byte_rows, (size_t)4u, opt.workspace_allocator);
    if (sums->empty()) return kOutOfMemory;
    sums->fill(0.f);
    for (int i = 0; i < a.h; i++) {
        for (int b = 0; b < blocks(); b++) {
            float sum = 0.f;
            for (int k = b * block_; k < std::min(k_, (b + 1) * block_); k++) sum += a.row(i)[k];
            sums->row(i)[b] = sum;
        }
    }
    return kOk;
}

// Left empty where no kernel takes them, and where a value is infinite or NaN.
int BlockMatrix::make_digits(const Mat& a, const Option& opt, Mat* memory,
                             std::vector<BlockDigits>* digits) const {
    if (bits_ == 16) return kOk;
    const int count = digit_count(a.h, opt);
    if (!(a.h == 1 ? int8_->block_row[count - 2] : int8_->block_dot[0])[form_]) return kOk;
    const size_t units = sizeof(BlockDigits::Block) * blocks(), row = units + count * (size_t)k_;
    memory->create((int)row, a.h, (size_t)1u, opt.workspace_allocator);
    if (memory->empty()) return kOutOfMemory;
    for (int i = 0; i < a.h; i++) {
        char* const at = (char*)memory->data + i * row;
        digits->push_back({(int8_t*)at + units, (BlockDigits::Block*)at});
        if (int8_->block_digits(a.row(i), k_, block_, bits_, count, digits->back())) continue;
        digits->clear();
        break;
    }
    return kOk;
}

// Panels 2 * pair and 2 * pair + 1.
void BlockMatrix::one_row(const Mat& sums, const BlockDigits& digits, int count, size_t pair,
                          float* c) const {
    const size_t lanes = int8_->lanes, n0 = 2 * pair * lanes;
    const size_t used = std::min(2 * lanes, (size_t)n_ - n0);
    float part[2 * 64];
    BlockTile tile = panel(2 * pair);
    tile.digits = &digits;
    if (tile.offset) tile.a_sum = sums;
    tile.out = used == 2 * lanes ? c + n0 : part;
    int8_->block_row[count - 2][form_](tile);
    if (tile.out == part) memcpy(c + n0, part, used * sizeof(float));
}

void BlockMatrix::few_rows(const Mat& a, const Mat& sums, const std::vector<BlockDigits>& digits,
                           int m, size_t p, float* c, size_t c_row) const {
    const size_t lanes = int8_->lanes, n0 = p * lanes, used = std::min(lanes, (size_t)n_ - n0);
    float part[kBlockRows * 64];
    BlockTile tile = panel(p);
    tile.a_row = a.w;
    for (int i = 0; i < m; i += kBlockRows) {
        const int rows = std::min<int>(kBlockRows, m - i);
        tile.a = a.row(i), tile.digits = digits.empty() ? nullptr : &digits[i];
        if (tile.offset) tile.a_sum = sums.row(i), tile.a_sum_row = sums.w;
        tile.out = used == lanes ? c + i * c_row + n0 : part;
        tile.out_row = used == lanes ? (ptrdiff_t)c_row : (ptrdiff_t)lanes;
        const auto& kernels = bits_ == 16   ? int8_->half_tile
                              : tile.digits ? int8_->block_dot
                                            : int8_->block_tile;
        kernels[rows - 1][form_](tile);
        for (int r = 0; used < lanes && r < rows; r++)
            memcpy(c + (i + r) * c_row + n0, part + r * lanes, used * sizeof(float));
    }
}

int BlockMatrix::make_bytes(const Mat& a, const Option& opt, int threads, Mat* memory,
                            std::vector<ByteRows>* bytes) const {
    const size_t rows = int8_->byte_rows, units = sizeof(ByteRows::Block) * blocks() * rows;
    const size_t tiles = (a.h + rows - 1) / rows;
    memory->create((int)(units + k_ * rows), (int)tiles, (size_t)1u, opt.workspace_allocator);
    if (memory->empty()) return kOutOfMemory;
    std::vector<char> finite(tiles);
    for (size_t i = 0; i < tiles; i++) {
        char* const at = (char*)memory->data + i * (units + k_ * rows);
        bytes->push_back({(int8_t*)at + units, (ByteRows::Block*)at, (size_t)int8_->bytes_beside});
    }
    parallel_for((int64_t)tiles, threads, [&](int64_t i, int) {
        const size_t first = (size_t)i * rows;
        finite[i] =
            int8_->block_byte_rows(a.row((int)first), a.w, std::min(rows, (size_t)a.h - first), k_,
                                   block_, bits_, (*bytes)[i]);
    });
    if (std::find(finite.begin(), finite.end(), 0) != finite.end()) bytes->clear();
    return kOk;
}

void BlockMatrix::byte_rows(const std::vector<ByteRows>& bytes, const Mat& sums, int m, size_t p,
                            float* c, size_t c_row) const {
    const size_t lanes = int8_->lanes, n0 = p * lanes, used = std::min(lanes, (size_t)n_ - n0);
    enum { kMostRows = 16, kMostLanes = 64 };
    float part[kMostRows * kMostLanes];
    BlockTile tile = panel(p);
    for (int i = 0; i < m; i += int8_->byte_rows) {
        const int rows = std::min(int8_->byte_rows, m - i);
        const bool whole = rows == int8_->byte_rows && used == lanes;
        tile.bytes = &bytes[i / int8_->byte_rows];
        if (tile.offset) tile.a_sum = sums.row(i), tile.a_sum_row = sums.w;
        tile.out = whole ? c + i * c_row + n0 : part;
        tile.out_row = whole ? (ptrdiff_t)c_row : (ptrdiff_t)lanes;
        int8_->block_bytes[form_](tile);
        for (int r = 0; !whole && r < rows; r++)
            memcpy(c + (i + r) * c_row + n0, part + r * lanes, used * sizeof(float));
    }
}

// Rows of k with `width` columns from n0 on; those beyond the last may hold anything.
void BlockMatrix::unpack(size_t n0, size_t width, float* out) const {
    const size_t lanes = int8_->lanes;
    for (size_t v = 0; v < width; v += lanes) {
        BlockTile tile = panel(std::min(n0 + v, (size_t)n_ - 1) / lanes);
        tile.out = out + v;
        tile.out_row = (ptrdiff_t)width;
        (bits_ == 16 ? int8_->half_unpack : int8_->block_unpack)[form_](tile);
    }
}

// plan: for the first group of columns.
int BlockMatrix::multiply_on_tiles(const GemmMatrix& matrix, const ProductPlan& plan, int threads,
                                   const Option& opt) const {
    Mat packed, workspace;
    Mat unpacked(kUnitColumns, k_, threads, (size_t)4u, opt.workspace_allocator);
    QUOLL_RETURN_IF_ERROR(product_memory(plan.packed_size(), 1, opt.workspace_allocator, &packed));
    if (unpacked.empty()) return kOutOfMemory;
    for (int n0 = 0; n0 < n_; n0 += kTileGroup) {
        GemmMatrix g = matrix;
        g.n = std::min<size_t>(kTileGroup, n_ - n0);
        const ProductPlan own(plan, g);
        const int panels = (int)(g.n + kUnitColumns - 1) / kUnitColumns;
        parallel_for(panels, threads, [&](int64_t p, int thread) {
            float* columns = unpacked.channel(thread);
            unpack((size_t)n0 + p * kUnitColumns, kUnitColumns, columns);
            own.pack_panel(columns, kUnitColumns, 1, p, packed);
        });
        QUOLL_RETURN_IF_ERROR(
            product_memory(own.workspace(), 1, opt.workspace_allocator, &workspace));
        g.b = packed, g.bias = zeros_;
        g.c = matrix.c + n0;
        own.run(g, workspace);
    }
    return kOk;
}

// Panel p of the gemm kernels, through memory for its columns.
void BlockMatrix::many_rows(const Mat& a, int m, size_t p, float* unpacked, float* c,
                            size_t c_row) const {
    const size_t lanes = int8_->lanes, full = lanes * kernels_->gemm->vectors;
    const size_t n0 = p * full, n = std::min(full, (size_t)n_ - n0);
    unpack(n0, gemm_panel_width(*kernels_->gemm, n), unpacked);
    GemmMatrix g = {};
    g.kernels = kernels_;
    g.a = a, g.a_row = a.w, g.a_k = 1;
    g.m = m, g.n = n, g.k = k_;
    g.b = unpacked, g.bias = zeros_;
    g.c = c + n0, g.c_row = (ptrdiff_t)c_row, g.c_pack = n;
    gemm_matrix(g, 1);
}

int BlockMatrix::multiply(const float* a, size_t a_row, int m, float* c, size_t c_row,
                          const Option& opt) const {
    // With whole k-groups, and times the factors of the inputs.
    Mat rows(k_, m, (size_t)4u, opt.workspace_allocator);
    if (rows.empty()) return kOutOfMemory;
    for (int i = 0; i < m; i++) {
        float* to = rows.row(i);
        std::copy_n(a + i * a_row, inputs_count_, to);
        std::fill(to + inputs_count_, to + k_, 0.f);
        for (int k = 0; k < inputs_.w; k++) to[k] *= inputs_[k];
    }
    const int threads = threads_for(opt, (double)m * n_ * k_);
    Mat unpacked, sums, memory;
    std::vector<BlockDigits> digits;
    std::vector<ByteRows> bytes;
    if (m >= kManyRows) {
        GemmMatrix g = {};
        g.kernels = kernels_;
        g.a = rows, g.a_row = rows.w, g.a_k = 1;
        g.m = m, g.n = std::min<size_t>(n_, kTileGroup), g.k = k_;
        g.c = c, g.c_row = (ptrdiff_t)c_row, g.c_pack = n_;
        const SplitGemmKernels* const split = split_kernels_for(opt);
        const ProductPlan plan(split, g, 1, threads);
        // Units multiply bf16 values faster than vectors do bytes, vectors do not.
        const bool on_units = plan.on_tiles() && !split->vector_macs;
        if (opt.use_fp32_split == 1 && !on_units && bits_ != 16 && int8_->block_bytes[form_])
            QUOLL_RETURN_IF_ERROR(make_bytes(rows, opt, threads, &memory, &bytes));
        if (bytes.empty() && plan.on_tiles()) return multiply_on_tiles(g, plan, threads, opt);
    }
    if (m < kManyRows || !bytes.empty()) QUOLL_RETURN_IF_ERROR(sum_blocks(rows, opt, &sums));
    if (m < kManyRows) QUOLL_RETURN_IF_ERROR(make_digits(rows, opt, &memory, &digits));
    const bool many = m >= kManyRows && bytes.empty(), one = m == 1 && !digits.empty();
    const size_t lanes = int8_->lanes, full = lanes * kernels_->gemm->vectors;
    const size_t width = many ? full : one ? 2 * lanes : lanes, panels = (n_ + width - 1) / width;
    if (many) {
        unpacked.create((int)full, k_, threads, (size_t)4u, opt.workspace_allocator);
        if (unpacked.empty()) return kOutOfMemory;
    }
    parallel_for((int64_t)panels, threads, [&](int64_t p, int thread) {
        if (many) {
            many_rows(rows, m, p, unpacked.channel(thread), c, c_row);
        } else if (one) {
            one_row(sums, digits[0], digit_count(m, opt), p, c);
        } else if (bytes.empty()) {
            few_rows(rows, sums, digits, m, p, c, c_row);
        } else {
            byte_rows(bytes, sums, m, p, c, c_row);
        }
    });
    return kOk;
}

}  // namespace quoll
