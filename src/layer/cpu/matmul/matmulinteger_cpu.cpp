// The fast implementation of MatMulInteger: sums on the kernels of int8.h, whatever the zero
// points, by
//     sum of (a - za) (b - zb) = sum of a b - za sum of b - zb (sum of a - k za).
#include "layer/nn/matmulinteger.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include <algorithm>

#include "layer/common/affine8.h"
#include "layer/common/scratch.h"
#include "layer/common/tensor.h"
#include "layer/common/zero_points.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/gemm/gemm_run.h"
#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/int8/int8_tiles.h"
#include "layer/cpu/int8/integer_rows.h"
#include "layer/cpu/matmul/packed_integers.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// k-groups of the activations that stay close to a core while all panels meet them.
const size_t kChunkKGroups = 128 * 1024;
// Values that a thread rounds at once.
const size_t kPiece = 4096;

// Whether units are expected to take less time for so many rows of a panel.
[[maybe_unused]] bool units_pay(size_t rows, size_t k_groups) {
    const double tiles = (double)((rows + kUnitRows - 1) / kUnitRows);
    const double steps = (double)((k_groups + kStepKGroups - 1) / kStepKGroups);
    const double step = host_costs().split1_step * split_slowness();
    // A panel is two tiles wide. A thread sets up its tiles once a panel.
    const double units = 2 * tiles * (steps * step + host_costs().int8_finish) + 200;
    // A row by itself waits for its sums.
    return units < std::max((double)rows, 2.5) * k_groups;
}

// A's rows as k-groups, and their sums.
struct PackedA {
    const int32_t* k_groups = nullptr;
    size_t row_k_groups = 0;
    int offset = 0;  // a + offset is what the k-groups hold
    Mat own;
    Mat sums;  // s32, one per row; empty if not asked for
};

// The most rows that are multiplied at once, on vectors or units.
constexpr size_t kMostRows = std::max<size_t>(kGemmMaxRows, kUnitTiles* kUnitRows);

class MatMulIntegerCpu : public MatMulInteger {
public:
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    // The operands of one run.
    struct Product {
        Operands mats;
        Operand a, b, a_zero, b_zero;
        PackedA left;
        PackedIntegers made;
        const PackedIntegers* right;
        Mat zeros;    // s32 [items][columns]: zero points of what is packed of B; empty: all 0
        Mat factors;  // f32 [2][columns]: of a ranged product
        int ranged_zero = 0;
        const Int8UnitKernels* units = nullptr;  // that multiply

        Product(const Operands& o)
            : mats(o),
              a(o.a, false),
              b(o.b, true),
              a_zero(o.a_zero, true),
              b_zero(o.b_zero, false) {}
        int items() const {
            return std::max(a.size[0], b.size[0]) * std::max(a.size[1], b.size[1]);
        }
        void item(int index, int* i, int* j) const {
            const int inner = std::max(a.size[1], b.size[1]);
            *i = index / inner, *j = index % inner;
        }
        // The number of an operand's matrix for an item.
        static int matrix(const Operand& o, int i, int j) {
            return (o.size[0] == 1 ? 0 : i) * o.size[1] + (o.size[1] == 1 ? 0 : j);
        }
    };
    // The part of a panel of B that all rows of an item are multiplied by.
    struct PanelRun {
        const PackedIntegers& right;
        const Int8UnitKernels* units;  // null: `tiles`
        int i, j, b_matrix;            // of the item
        size_t rows, n0, width, a_first;
        const Int8TileKernel* tiles;
        GemmBlock block = {0, 0};
        Int8Tile tile = {};
        alignas(64) int32_t sums[kMostRows * kGemmMaxRows * 4], init[kGemmMaxRows * 4] = {};

        PanelRun(const Product& p, int item, size_t panel) : right(*p.right), units(p.units) {
            p.item(item, &i, &j);
            b_matrix = Product::matrix(p.b, i, j);
            rows = p.a.size[2], n0 = panel * right.full(), width = right.width(panel);
            a_first = Product::matrix(p.a, i, j) * rows;
            const Int8Kernels& kernels = *right.kernels;
            tiles = width < right.full() ? kernels.tile_single : kernels.tile;
            tile.a_row = (ptrdiff_t)p.left.row_k_groups;
            tile.blocks = &block, tile.num_blocks = 1, tile.block_k = right.k_groups;
            tile.b = right.panel(b_matrix, panel);
            tile.init = init, tile.sums = sums;
        }
        PanelRun(const PanelRun&) = delete;
        // finish(m, count, sums) for all rows from `first` to last - 1, some at a time.
        template <class F>
        void make(const Product& p, size_t first, size_t last, F finish) {
            if constexpr (kHasRowUnits)
                if (units) return make_on_units(p, first, last, finish);
            for (size_t m = first, count; m < last; m += count) {
                count = std::min<size_t>(right.kernels->max_rows, last - m);
                tile.a = row(p, m);
                tiles[count - 1](tile);
                finish(m, count, sums);
            }
        }

    private:
        const int32_t* row(const Product& p, size_t m) const {
            return p.left.k_groups + (a_first + m) * p.left.row_k_groups;
        }
        // Tiles have equally many rows: the last one begins before those that are asked for.
        template <class F>
        void make_on_units(const Product& p, size_t first, size_t last, F finish) {
            const size_t tile_rows = std::min<size_t>(kUnitRows, rows), most = rows - tile_rows;
            const ptrdiff_t row_bytes = (ptrdiff_t)p.left.row_k_groups * 4;
            const size_t step = right.k_groups / right.steps;
            Scratch<ptrdiff_t> steps;
            for (size_t s = 0; s < right.steps; s++) steps->push_back((ptrdiff_t)(s * step * 4));
            Int8UnitTile t = {};
            t.a_row = row_bytes, t.tile_rows = (int)tile_rows;
            t.steps = steps->data(), t.num_steps = right.steps, t.step_k_groups = step;
            t.b = (const char*)tile.b, t.init = init, t.sums = sums;
            units->begin((int)tile_rows, (int)step * 4);
            for (size_t m = first; m < last; m += kUnitTiles * tile_rows) {
                const size_t count = last - m > tile_rows ? 2 : 1;
                const size_t from[2] = {std::min(m, most), std::min(m + tile_rows, most)};
                t.a = (const char*)row(p, from[0]);
                t.a_tile = (ptrdiff_t)(from[1] - from[0]) * row_bytes;
                units->sums[count - 1][width > kUnitColumns / 2](t);
                for (size_t i = 0; i < count; i++) {
                    const size_t at = m + i * tile_rows;
                    finish(at, std::min(tile_rows, last - at),
                           sums + (i * tile_rows + at - from[i]) * width);
                }
            }
            units->end();
        }
    };
    int quantise(const Mat& rows, Product* p, const Option& opt) const;
    int pack_a(Product* p, const Option& opt) const;
    int pack_b(Product* p, const Option& opt) const;
    int find_zeros(Product* p, const Option& opt) const;
    void run(const Product& p, int item, size_t first, size_t last, size_t panel, Mat& top) const;
    void run_int8(const Product& p, int item, size_t first, size_t last, size_t panel,
                  Mat& top) const;

    PackedIntegers weights_;
};

int MatMulIntegerCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(MatMulInteger::create_pipeline(opt));
    if (num_output == 0) return kOk;
    const int status = weights_.create(1, b_rows(), num_output, !b_unsigned, nullptr);
    if (status != kOk) {
        fail("out of memory for %d int8 weights", weight_data_size);
        return status;
    }
    weights_.pack(0, weight_data, num_output, b_rows());
    weight_data.release();
    return kOk;
}

// f32 rows as s8 of the scale and zero point of their range.
int MatMulIntegerCpu::quantise(const Mat& rows, Product* p, const Option& opt) const {
    const Int8Kernels& kernels = *host_kernel_set().int8;
    Shape shape = rows.logical_shape();
    shape.dtype = DType::s8;
    Mat quantized(shape, 1, opt.workspace_allocator);
    p->factors.create((int)weights_.columns, 2, (size_t)4u, opt.workspace_allocator);
    if (quantized.empty() || p->factors.empty()) return kOutOfMemory;
    const size_t plane = (size_t)rows.w * rows.h * rows.d, chunks = (plane + kPiece - 1) / kPiece;
    float limits[2] = {0.f, 0.f};
    for (int q = 0; q < rows.c; q++)
        kernels.range((const float*)rows.data + q * rows.cstep, plane, limits);
    const AffineRange range(limits[0], limits[1]);
    const int threads = threads_for(opt, (double)plane * rows.c);
    parallel_for((int64_t)chunks * rows.c, threads, [&](int64_t i) {
        const size_t q = i / chunks, at = i % chunks * kPiece;
        kernels.to_affine((const float*)rows.data + q * rows.cstep + at,
                          std::min(kPiece, plane - at), range.scale, range.zero_point,
                          (int8_t*)quantized.data + q * quantized.cstep + at);
    });
    p->mats.a = quantized;
    p->a = Operand(quantized, false);
    p->ranged_zero = range.zero_point;
    float *scale = p->factors.row(0), *bias = p->factors.row(1);
    for (int n = 0; n < num_output; n++) {
        scale[n] = weight_scales[n] * range.scale;
        bias[n] = bias_term ? bias_data[n] : 0.f;
    }
    return kOk;
}

int MatMulIntegerCpu::pack_a(Product* p, const Option& opt) const {
    const Operand& a = p->a;
    const Bytes values(p->mats.a, a_unsigned && !ranged);
    const Int8Kernels& kernels = *host_kernel_set().int8;
    const int k = a.size[3], k_group = kernels.k_group;
    const size_t rows = (size_t)a.size[0] * a.size[1] * a.size[2];
    PackedA& left = p->left;
    left.row_k_groups = p->right->k_groups;
    left.offset = k_group < 4 ? 0 : values.is_signed ? kernels.offset : kernels.offset - 128;
    if (rows > INT_MAX / 2) return kOutOfMemory;
    if (!p->zeros.empty()) {
        left.sums.create((int)rows, (size_t)4u, opt.workspace_allocator);
        if (left.sums.empty()) return kOutOfMemory;
    }
    const bool in_place = k_group == 4 && left.offset == 0 && k > 1 &&
                          (size_t)k == 4 * left.row_k_groups &&
                          (rows == 1 || (p->mats.a.dims < 3) ||
                           p->mats.a.cstep == (size_t)p->mats.a.w * p->mats.a.h * p->mats.a.d);
    left.k_groups = (const int32_t*)values.data;
    if (!in_place) {
        left.own.create((int)left.row_k_groups, (int)rows, (size_t)4u, opt.workspace_allocator);
        if (left.own.empty()) return kOutOfMemory;
        left.k_groups = (const int32_t*)left.own.data;
    }
    const int threads = threads_for(opt, (double)rows * k / 4);
    parallel_for((int64_t)rows, threads, [&](int64_t r) {
        const int m = (int)(r % a.size[2]), item = (int)(r / a.size[2]);
        const unsigned char* from = values.data + a.at(item / a.size[1], item % a.size[1], m, 0);
        if (!in_place) {
            int32_t* const to = (int32_t*)left.own.data + r * left.row_k_groups;
            const size_t whole = (size_t)k / k_group;
            std::fill(to + whole, to + left.row_k_groups, 0);
            if (k_group == 4) {
                flip_bytes(from, k, left.offset ? 0x80 : 0, (unsigned char*)to);
            } else if (values.is_signed) {
                for (int i = 0; i < k; i++) ((int16_t*)to)[i] = (signed char)from[i];
            } else {
                for (int i = 0; i < k; i++) ((int16_t*)to)[i] = from[i];
            }
        }
        if (left.sums.empty()) return;
        const uint32_t sum = values.is_signed ? sum_of_bytes(from, k, 0x80) - 128u * (uint32_t)k
                                              : sum_of_bytes(from, k, 0);
        ((int32_t*)left.sums.data)[r] = (int32_t)(sum + (uint32_t)left.offset * k);
    });
    return kOk;
}

int MatMulIntegerCpu::pack_b(Product* p, const Option& opt) const {
    p->right = &weights_;
    if (num_output > 0) return kOk;
    const Operand& b = p->b;
    const Bytes values(p->mats.b, b_unsigned);
    const int matrices = b.size[0] * b.size[1];
    p->right = &p->made;
    QUOLL_RETURN_IF_ERROR(
        p->made.create(matrices, b.size[2], b.size[3], values.is_signed, opt.workspace_allocator));
    const int threads = threads_for(opt, (double)matrices * b.size[2] * b.size[3]);
    run_tasks(matrices, threads, [&](int64_t i, int) {
        const size_t at = b.at((int)(i / b.size[1]), (int)(i % b.size[1]), 0, 0);
        p->made.pack((int)i, values.data + at, b.step[2], b.size[2]);
    });
    return kOk;
}

int MatMulIntegerCpu::find_zeros(Product* p, const Option& opt) const {
    const PackedIntegers& right = *p->right;
    const Mat& zero = p->mats.b_zero;
    if (zero.empty() && right.offset == 0) return kOk;
    const int items = p->items();
    Mat zeros((int)right.columns, items, (size_t)4u, opt.workspace_allocator);
    if (zeros.empty()) return kOutOfMemory;
    bool any = false;
    for (int index = 0; index < items; index++) {
        int i, j, *row = zeros.row<int>(index);
        p->item(index, &i, &j);
        for (int n = 0; n < (int)right.columns; n++) {
            const bool known = !zero.empty() && n < p->b.size[3];
            row[n] = (known ? integer_at(zero, p->b_zero.at(i, j, 0, n)) : 0) - right.offset;
            any = any || (n < p->b.size[3] && row[n] != 0);
        }
    }
    if (any) p->zeros = zeros;
    return kOk;
}

// Rows first to last - 1 of an item by one panel.
void MatMulIntegerCpu::run(const Product& p, int item, size_t first, size_t last, size_t panel,
                           Mat& top) const {
    PanelRun run(p, item, panel);
    const PackedIntegers& right = run.right;
    const Int8Kernels& kernels = *right.kernels;
    const size_t rows = run.rows, n0 = run.n0, width = run.width, a_first = run.a_first;
    Int8Terms terms = {};
    terms.n = std::min(width, right.n - n0);
    terms.x = right.sums_of(run.b_matrix) + n0;
    if (!p.zeros.empty()) terms.y = p.zeros.row<int>(item) + n0;
    if (ranged) terms.scale = p.factors.row(0) + n0, terms.bias = p.factors.row(1) + n0;
    const Flat flat(top);
    run.make(p, first, last, [&](size_t m, size_t count, int32_t* sums) {
        for (size_t r = 0; r < count; r++) {
            const int row = (int)(m + r);
            const int given = ranged ? p.ranged_zero
                              : p.mats.a_zero.empty()
                                  ? 0
                                  : integer_at(p.mats.a_zero, p.a_zero.at(run.i, run.j, row, 0));
            const uint32_t za = (uint32_t)(given + p.left.offset);
            terms.sums = sums + r * width;
            terms.a = (int32_t)(0 - za);
            if (terms.y)
                terms.b = (int32_t)(za * (uint32_t)p.a.size[3] -
                                    (uint32_t)((const int32_t*)p.left.sums.data)[a_first + row]);
            terms.out = (int32_t*)top.data + flat(((size_t)item * rows + row) * right.n + n0);
            kernels.terms(terms);
        }
    });
}

// The same with s8 results, where all rows and columns share their zero points.
void MatMulIntegerCpu::run_int8(const Product& p, int item, size_t first, size_t last, size_t panel,
                                Mat& top) const {
    enum { kWidth = kGemmMaxRows * 4 };
    alignas(64) float scale[kWidth];
    const float bias[kWidth] = {};
    ptrdiff_t columns[kWidth];
    PanelRun run(p, item, panel);
    const PackedIntegers& right = run.right;
    const Int8Kernels& kernels = *right.kernels;
    const size_t rows = run.rows, n0 = run.n0, width = run.width, a_first = run.a_first;

    const int za = p.left.offset + (p.mats.a_zero.empty() ? 0 : integer_at(p.mats.a_zero, 0));
    const int zb = p.zeros.empty() ? 0 : p.zeros.row<int>(item)[0];
    const int32_t* const column_sums = right.sums_of(run.b_matrix) + n0;
    const uint32_t both = (uint32_t)za * (uint32_t)zb * (uint32_t)p.a.size[3];
    for (size_t n = 0; n < width; n++) {
        run.init[n] = (int32_t)(both - (uint32_t)za * (uint32_t)column_sums[n]);
        scale[n] = top_factor;
        columns[n] = (ptrdiff_t)n;
    }

    Int8Store store = {};
    store.width = width;
    store.scale = scale, store.bias = bias;
    store.low = -INFINITY, store.high = INFINITY, store.top_scale = 1.f;
    store.affine = true, store.top_zero = top_zero_point;
    store.c_row = (ptrdiff_t)right.n;
    store.columns = columns;
    const size_t used = std::min(width, right.n - n0), whole = used - used % kernels.lanes;
    const Flat flat(top);
    run.make(p, first, last, [&](size_t m, size_t count, int32_t* sums) {
        for (size_t r = 0; zb != 0 && r < count; r++) {
            const int32_t row = ((const int32_t*)p.left.sums.data)[a_first + m + r];
            const uint32_t less = (uint32_t)zb * (uint32_t)row;
            subtract_from_all(sums + r * width, (int)width, less);
        }
        store.rows = (int)count;
        int8_t* const c = (int8_t*)top.data + flat(((size_t)item * rows + m) * right.n + n0);
        const auto keep = [&](size_t from, size_t to, size_t run) {
            if (from == to) return;
            store.sums = sums + from, store.c = c + from;
            store.used = to - from, store.run = run;
            kernels.finish_s8(store);
        };
        keep(0, whole, kernels.lanes);
        keep(whole, used, 1);
    });
}

int MatMulIntegerCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                              const Option& opt) const {
    // Longer sums of s8 results do not fit 32 bits.
    if (gives_int8() && bottoms[0].w > INT32_MAX / (255 * 255))
        return MatMulInteger::forward(bottoms, tops, opt);
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    Product p(operands(bottoms));
    if (num_output > 0) p.b = Operand(Shape(num_output, b_rows()), 0, true);
    if (ranged) QUOLL_RETURN_IF_ERROR(quantise(bottoms[0], &p, opt));
    QUOLL_RETURN_IF_ERROR(pack_b(&p, opt));
    QUOLL_RETURN_IF_ERROR(find_zeros(&p, opt));
    QUOLL_RETURN_IF_ERROR(pack_a(&p, opt));
    const size_t rows = p.a.size[2], panels = p.right->panels(), items = p.items();
    if constexpr (kHasRowUnits)
        if (p.right->steps && units_pay(rows, p.right->k_groups)) p.units = row_units();
    const int threads = threads_for(opt, (double)rows * items * p.a.size[3] * p.right->n / 4);
    size_t chunks = (rows * p.left.row_k_groups + kChunkKGroups - 1) / kChunkKGroups;
    if (threads > 1) chunks = std::max(chunks, (size_t)threads * 2 / (panels * items));
    chunks = std::max<size_t>(1, std::min(chunks, rows));
    run_tasks((int64_t)(items * chunks * panels), threads, [&](int64_t task, int) {
        const size_t chunk = task / panels % chunks, first = partition_begin(rows, chunks, chunk);
        const size_t last = first + partition_length(rows, chunks, chunk);
        const int item = (int)(task / panels / chunks);
        if (gives_int8())
            run_int8(p, item, first, last, task % panels, tops[0]);
        else
            run(p, item, first, last, task % panels, tops[0]);
    });
    return kOk;
}

}  // namespace

Layer* create_MatMulInteger_fast_layer() { return new MatMulIntegerCpu; }

}  // namespace quoll
