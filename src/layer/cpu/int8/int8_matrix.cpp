#include "layer/cpu/int8/int8_matrix.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

#include "layer/common/affine8.h"
#include "layer/common/conv_window.h"
#include "layer/common/int16_input.h"
#include "layer/common/scratch.h"
#include "layer/cpu/common/chunks.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Values that an input kernel takes at once.
const int kRun = 16;
// Of a pair of k-groups of four.
const int kPair = 8;
// Values that a thread rounds at once.
enum { kChunk = 4096 };

// Below so many rows reading the weights takes as long as all the rest.
enum { kManyRows = 8 };

// Of rows of so many values for the plan on tile units; 0: rows do not divide.
int row_pack(int inputs) {
    return inputs % 16 == 0 ? 16 : inputs % 8 == 0 ? 8 : inputs % 4 == 0 ? 4 : 0;
}

}  // namespace

int Int8Matrix::create(const Layer& layer, const Mat& weights, int outputs, float input_scale,
                       const Mat& weight_scales, const Mat& bias, const Activation& activation,
                       int zero) {
    inputs_ = weights.w / outputs;
    input_scale_ = input_scale;
    activation_ = FusedActivation(host_kernel_set(), activation);
    units_ = row_pack(inputs_) ? usable_int8_units() : nullptr;
    const size_t runs = (inputs_ + kRun - 1) / kRun;
    const size_t run_step = !units_      ? 1
                            : kInt8Lists ? runs
                                         : std::min<size_t>(runs, kUnitRowBytes / kRun);
    step_ = (int)run_step * kRun;
    std::vector<int> order((runs + run_step - 1) / run_step * step_, -1);
    for (int i = 0; i < inputs_; i++) order[i] = i;
    std::vector<float> scales(outputs);
    for (int p = 0; p < outputs; p++)
        scales[p] =
            dequantize_scale(input_scale, weight_scales[(int64_t)p * weight_scales.w / outputs]);
    created_ =
        weights_.create(int8_product_kernels(weights), weights, inputs_, order, outputs,
                        scales.data(), bias.empty() ? nullptr : (const float*)bias, zero) == kOk;
    if (created_) return kOk;
    layer.fail("out of memory for %d int8 weights", weights.w);
    return kOutOfMemory;
}

// Row y, or with kernels of pairs its pairs of k-groups, so that those of all rows lie beside each
// other.
void Int8Matrix::pack_a(const Mat& rows, int y, char* a) const {
    const Int8Kernels& kernels = weights_.kernels();
    const int run = kernels.pairs ? kPair : kRun;
    const size_t scalar = dtype_size(rows.dtype), whole = inputs_ / run, rest = inputs_ % run;
    const size_t element = 4 / kernels.k_group;
    const Int8InputKernel kernel =
        (rows.dtype == DType::s8 ? kernels.input_s8 : kernels.input_f32)[kernels.pairs ? 2 : 3];
    Int8Input input = {};
    input.src = rows.row<char>(y);
    input.src_pixel = run;
    input.dst_pixel = kernels.pairs ? (ptrdiff_t)rows.h * run : run;
    input.channels = input.dst_pack = run;
    input.pixels = whole;
    input.scale = input_scale_;
    input.dst = a + y * element * (kernels.pairs ? run : weights_.k_groups() * kernels.k_group);
    kernel(input);
    char* to = (char*)input.dst + whole * input.dst_pixel * element;
    if (rest) {
        char last[kRun * sizeof(float)] = {};
        memcpy(last, (const char*)input.src + whole * run * scalar, rest * scalar);
        input.src = last;
        input.pixels = 1;
        input.dst = to;
        kernel(input);
        to += input.dst_pixel * element;
    }
    // A whole run of weights may have one pair more.
    const size_t pairs = weights_.k_groups() / 2, done = whole + (rest != 0);
    for (size_t i = done; kernels.pairs && i < pairs; i++, to += input.dst_pixel * element)
        memset(to, 0, kPair);
}

int Int8Matrix::threads_of(int rows, const Option& opt) const {
    return threads_for(opt, (double)rows * inputs_ * weights_.n() / 4);
}

std::shared_ptr<const Int8TilePlan> Int8Matrix::plan(int rows, DType dtype,
                                                     const Option& opt) const {
    if (!units_ || rows < kManyRows) return nullptr;
    const int n = (int)weights_.n();
    TileShape shape = tile_shape(rows, n, inputs_, inputs_, n);
    shape.in_pack = kInt8Lists ? 4 : row_pack(inputs_);
    shape.in_block = shape.in_pack;
    shape.reduced_in = dtype == DType::s8;
    shape.reduced_out = top_factor_ != 0.f;
    if (!Int8TilePlan::is_supported(shape)) return nullptr;
    const std::shared_ptr<const Int8TilePlan> made =
        std::make_shared<const Int8TilePlan>(*units_, shape, step_, threads_of(rows, opt));
    return made->beats_vectors(rows, 1) ? made : nullptr;
}

int Int8Matrix::run_tiles(const Int8TilePlan& plan, const Mat& rows, const Int8Result& result,
                          const Option& opt) const {
    Mat workspace;
    if (plan.workspace() <= INT_MAX)
        workspace.create((int)plan.workspace(), 4u, opt.workspace_allocator);
    if (workspace.empty()) return kOutOfMemory;
    plan.run(result, rows.data, input_scale_, 0, workspace);
    return kOk;
}

int Int8Matrix::run_vectors(const Mat& rows, const Int8Result& result, int threads,
                            const Option& opt) const {
    const Int8Kernels& kernels = weights_.kernels();
    const size_t k_groups = weights_.k_groups();
    Mat a((int)k_groups, rows.h, (size_t)4u, opt.workspace_allocator);
    if (a.empty()) return kOutOfMemory;
    parallel_for(rows.h, rows.h > 1 ? threads : 1,
                 [&](int64_t y) { pack_a(rows, (int)y, (char*)a.data); });

    // Kernels of pairs multiply two rows at a time: an odd number is left to the last tile.
    const int unit = kernels.pairs ? 2 : 1, units = (rows.h + unit - 1) / unit;
    const int most = kernels.max_rows / unit, chunks = (units + most - 1) / most;
    const ptrdiff_t a_row = kernels.pairs ? 2 : (ptrdiff_t)k_groups;
    Scratch<GemmRows> tiles;
    tiles->resize(chunks);
    for (int i = 0; i < chunks; i++) {
        const int first = (int)partition_begin(units, chunks, i) * unit;
        tiles[i].a = first * a_row;
        tiles[i].a_row = a_row;
        tiles[i].c = first * (ptrdiff_t)weights_.n();
        tiles[i].c_row = (ptrdiff_t)weights_.n();
        tiles[i].rows = std::min((int)partition_length(units, chunks, i) * unit, rows.h - first);
        tiles[i].table = 0;
    }
    gemm_find_alike(tiles->data(), tiles->size());
    const GemmBlock block = {0, 0};
    Int8Problem p = {};
    (Int8Result&)p = result;
    p.a = (const int32_t*)a.data;
    p.rows = tiles->data(), p.num_rows = tiles->size();
    p.blocks = &block, p.num_blocks = 1;
    p.block_k = k_groups;
    p.a_pair = kernels.pairs ? 2 * (ptrdiff_t)rows.h : 0;
    p.row_k_groups = k_groups * kernels.max_rows;
    int8_run(p, threads);
    return kOk;
}

int Int8Matrix::forward(const Int8TilePlan* tiles, const Mat& rows, Mat& top,
                        const Option& opt) const {
    return multiply(tiles, rows, nullptr, nullptr, nullptr, top, opt);
}

int Int8Matrix::forward_added(const Int8TilePlan* tiles, const Mat& rows, Mat& top,
                              const Option& opt) const {
    return multiply(tiles, rows, nullptr, nullptr, top, top, opt);
}

int Int8Matrix::forward_ranged(const Int8TilePlan* tiles, const Mat& rows, Mat& top,
                               const Option& opt) const {
    const Int8Kernels& kernels = weights_.kernels();
    const int columns = (int)weights_.columns();
    Mat quantized(Shape(rows.w, rows.h, DType::s8), 1, opt.workspace_allocator);
    Mat factors(columns, 2, (size_t)4u, opt.workspace_allocator);
    if (quantized.empty() || factors.empty()) return kOutOfMemory;
    const size_t count = (size_t)rows.w * rows.h, chunks = (count + kChunk - 1) / kChunk;
    const auto size = [&](size_t i) { return std::min<size_t>(kChunk, count - i * kChunk); };
    float limits[2] = {0.f, 0.f};
    for (size_t i = 0; i < chunks; i++)
        kernels.range((const float*)rows.data + i * kChunk, size(i), limits);
    const AffineRange range(limits[0], limits[1]);
    const int threads = threads_for(opt, (double)count);
    parallel_for((int64_t)chunks, threads, [&](int64_t i) {
        kernels.to_affine((const float*)rows.data + i * kChunk, size(i), range.scale,
                          range.zero_point, (int8_t*)quantized.data + i * kChunk);
    });
    weights_.rescale(range.zero_point, range.scale, factors.row<int32_t>(0), factors.row(1));
    return multiply(tiles, quantized, factors.row<int32_t>(0), factors.row(1), nullptr, top, opt);
}

int Int8Matrix::multiply(const Int8TilePlan* tiles, const Mat& rows, const int32_t* init,
                         const float* scale, const float* add, Mat& top, const Option& opt) const {
    Int8Result result = {};
    result.weights = &weights_;
    result.init = init, result.scale = scale;
    result.c = top.data;
    result.c_pack = weights_.n();
    result.to_s8 = result.affine = top_factor_ != 0.f;
    result.top_scale = top_factor_, result.top_zero = top_zero_;
    result.activation = &activation_;
    result.add = add;
    const bool planned = tiles && tiles->shape().y.out * tiles->shape().x.out == rows.h &&
                         tiles->shape().reduced_in == (rows.dtype == DType::s8);
    if (planned) return run_tiles(*tiles, rows, result, opt);
    return run_vectors(rows, result, threads_of(rows.h, opt), opt);
}

// Restricted pointers, and numbers that no byte can be part of, let compilers make vectors of it.
static void int16_bytes(const float* __restrict values, size_t count, float scale,
                        signed char* __restrict high, signed char* __restrict low) {
    for (size_t i = 0; i < count; i++) {
        const int q = int16_value(values[i], scale);
        high[i] = (signed char)int16_high(q), low[i] = (signed char)int16_low(q);
    }
}

int int16_parts(const Mat& values, float scale, Mat* high, Mat* low, const Option& opt) {
    Shape shape = values.logical_shape();
    shape.dtype = DType::s8;
    for (Mat* part : {high, low}) {
        part->create(shape, values.elempack, opt.workspace_allocator);
        if (part->empty()) return kOutOfMemory;
    }
    const Chunks chunks(values, *high);
    const int threads = threads_for(opt, (double)values.total() * values.elempack);
    parallel_for(chunks.count(), threads, [&](int64_t i) {
        const Chunk c = chunks[(int)i];
        int16_bytes(c.of(values), c.count, scale, c.of<signed char>(*high),
                    c.of<signed char>(*low));
    });
    return kOk;
}

}  // namespace quoll
