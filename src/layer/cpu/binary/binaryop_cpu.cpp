#include "layer/cpu/binary/binaryop_cpu.h"

#include <math.h>
#include <string.h>

#include <algorithm>

#include "layer/common/blocks.h"
#include "layer/common/scratch.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/chunks.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/unary/unary.h"
#include "runtime/thread_pool.h"

namespace quoll {

BinaryOpCpu::BinaryOpCpu() { support_packing = true; }

static const BinaryVariants* variants_of(int op_type, const BinaryKernels& k, bool* swapped) {
    *swapped = false;
    switch (op_type) {
        case BinaryOp::ADD:
            return &k.add;
        case BinaryOp::RSUB:
            *swapped = true;
            return &k.sub;
        case BinaryOp::SUB:
            return &k.sub;
        case BinaryOp::MUL:
            return &k.mul;
        case BinaryOp::RDIV:
            *swapped = true;
            return &k.div;
        case BinaryOp::DIV:
            return &k.div;
        case BinaryOp::MAX:
            return &k.max;
        case BinaryOp::MIN:
            return &k.min;
        case BinaryOp::RPOW:
            *swapped = true;
            return &k.pow;
        case BinaryOp::POW:
            return &k.pow;
        case BinaryOp::RATAN2:
            *swapped = true;
            return &k.atan2;
        case BinaryOp::ATAN2:
            return &k.atan2;
        case BinaryOp::LOGADDEXP:
            return &k.logaddexp;
        case BinaryOp::RFLOOR_DIVIDE:
            *swapped = true;
            return &k.floor_divide;
        case BinaryOp::FLOOR_DIVIDE:
            return &k.floor_divide;
        case BinaryOp::RFMOD:
            *swapped = true;
            return &k.fmod;
        case BinaryOp::FMOD:
            return &k.fmod;
        case BinaryOp::RREMAINDER:
            *swapped = true;
            return &k.remainder;
        case BinaryOp::REMAINDER:
            return &k.remainder;
    }
    return nullptr;
}

// Divisions by powers of two are multiplications, to the bit, and differences sums.
BinaryOpCpu::Scalar BinaryOpCpu::scalar_of(int op_type, float b) {
    const BinaryKernels& k = *host_kernel_set().binary;
    Scalar s = {nullptr, b, false};
    s.variants = variants_of(op_type, k, &s.swapped);
    int exponent;
    if (op_type == SUB) {
        s.variants = &k.add, s.value = -b;
    } else if (op_type == DIV && fabsf(frexpf(b, &exponent)) == .5f && fabsf(b) >= 0x1p-126f &&
               fabsf(b) <= 0x1p126f) {
        s.variants = &k.mul, s.value = 1.f / b;
    }
    return s;
}

int BinaryOpCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(BinaryOp::create_pipeline(opt));
    variants_ = variants_of(op_type, *host_kernel_set().binary, &swapped_);
#if defined(__x86_64__) || defined(__i386__)  // as kTakesRelu
    sum_relu_ = {host_kernel_set().binary->add_relu, nullptr, nullptr};
    if (relu) variants_ = &sum_relu_;
#endif
    num_scalars_ = 0;
    for (const BinaryOp* s = with_scalar && kLongestChain > 1 ? this : nullptr; s; s = s->then)
        scalars_[num_scalars_++] = scalar_of(s->op_type, s->b);
    support_fp16_storage = support_bf16_storage = variants_ != nullptr;
    return kOk;
}

static void set_pattern(const float* values, int count, float pattern[kPatternSize]) {
    if (count == 1) {  // one value per row: the divisions below would take longer than short rows
        std::fill_n(pattern, (int)kPatternSize, values[0]);
        return;
    }
    for (int i = 0, k = 0; i < kPatternSize; i++) {  // a remainder would take as long as a row
        pattern[i] = values[k];
        if (++k == count) k = 0;
    }
}

// Whether a pattern has whole elements: an application may pack its blobs by 3.
static bool has_pattern(int pack) { return kPatternSize % pack == 0; }

// One value that serves a whole element becomes as many as it has lanes, once for all channels.
int BinaryOpCpu::expand_lanes(Operand* operand, int pack, const Option& opt) const {
    const Mat& m = operand->blob;
    Mat wide;
    wide.create((int)m.total(), (size_t)4 * pack, pack, opt.workspace_allocator);
    if (wide.empty()) return kOutOfMemory;
    const float* from = m;
    float* to = wide;
    for (size_t i = 0; i < m.total(); i++, to += pack)
        for (int k = 0; k < pack; k++) to[k] = from[i];
    operand->blob = wide;
    operand->lanes = pack;
    for (size_t& step : operand->step) step *= pack;
    return kOk;
}

int BinaryOpCpu::make_operand(const Mat& m, int first, const Shape& out, int pack,
                              const Option& opt, Operand* operand) const {
    const Shape shape = m.logical_shape();
    const bool outer = first == 0 && shape.size(0) == out.size(0);
    operand->lanes = outer ? pack : 1;
    // One axis lies in memory in the same order whatever its elempack is.
    if (outer && m.dims == 1) {
        operand->blob = m;
        operand->blob.w = shape.w / pack;
        operand->blob.elempack = pack, operand->blob.elemsize = (size_t)4 * pack;
    } else {
        QUOLL_RETURN_IF_ERROR(with_elempack(m, operand->lanes, opt, &operand->blob));
    }
    const Axes4 axes = axes_of(operand->blob);
    for (size_t& step : operand->step) step = 0;
    for (int i = 0; i < m.dims; i++) {
        const int at = axis_of_four(i, m.dims);
        if (shape.size(i) != 1)
            operand->step[axis_of_four(first + i, out.dims)] = axes.step[at] * operand->lanes;
    }
    const bool varies = operand->step[3] != 0 && operand->lanes != pack;
    return varies ? expand_lanes(operand, pack, opt) : kOk;
}

namespace {

// A run of values of an operand that follow one another (`vector`), or are those of one element.
struct Side {
    const void* data;
    int lanes;
    bool vector;
    bool stored;  // values of the storage type, otherwise floats
};

void apply(const BinaryVariants& f, const Side& a, const Side& b, float* out, size_t n) {
    float pattern[kPatternSize];
    if (a.vector && b.vector) return f.vectors((const float*)a.data, (const float*)b.data, out, n);
    if (BinaryOp::kTakesRelu && !f.vector_pattern) {  // a sum, and ReLU
        const float slope = 0.f;
        apply(host_kernel_set().binary->add, a, b, out, n);
        return host_kernel_set().unary->relu(out, out, n, &slope);
    }
    const Side& repeated = a.vector ? b : a;
    set_pattern((const float*)repeated.data, repeated.lanes, pattern);
    if (a.vector)
        f.vector_pattern((const float*)a.data, pattern, out, n);
    else
        f.pattern_vector(pattern, (const float*)b.data, out, n);
}

// The values from `at` on.
Side side_of(const Mat& m, size_t at, int lanes, bool vector) {
    const bool stored = m.dtype != DType::f32;
    return Side{(const char*)m.data + at * (stored ? 2 : 4), lanes, vector, stored};
}

// Values first to first + n - 1 of a side as floats.
Side chunk_of(const Side& side, size_t first, size_t n, const StorageKernels& storage,
              float* wide) {
    Side chunk = side;
    if (side.stored) {
        storage.widen((const uint16_t*)side.data + first, wide, n);
        chunk.data = wide;
    } else if (side.vector) {
        chunk.data = (const float*)side.data + first;
    }
    return chunk;
}

// False where the storage type has no such function for what the sides are.
bool apply_directly(const StoredBinary& f, const Side& a, const Side& b, uint16_t* out, size_t n) {
    const Side& vector = a.vector ? a : b;
    const Side& other = a.vector ? b : a;  // both functions commute
    if (!vector.vector || !vector.stored) return false;
    const uint16_t* values = (const uint16_t*)vector.data;
    if (other.vector) {
        if (other.stored) f.vectors(values, (const uint16_t*)other.data, out, n);
        return other.stored;
    }
    if (other.stored) return false;
    float pattern[kPatternSize];
    set_pattern((const float*)other.data, other.lanes, pattern);
    f.pattern(values, pattern, out, n);
    return true;
}

void apply_stored(const BinaryVariants& f, const Side& a, const Side& b,
                  const StorageKernels& storage, uint16_t* out, size_t n) {
    const BinaryKernels& all = *host_kernel_set().binary;
    if (&f == &all.add && apply_directly(storage.add, a, b, out, n)) return;
    if (&f == &all.mul && apply_directly(storage.mul, a, b, out, n)) return;
#if defined(__x86_64__) || defined(__i386__)  // as kTakesRelu
    const StoredBinary sum = {storage.add_relu, nullptr};
    if (f.vectors == all.add_relu && sum.vectors && a.vector && b.vector &&
        apply_directly(sum, a, b, out, n))
        return;
#endif
    float x[Chunks::kChunk], y[Chunks::kChunk];
    for (size_t first = 0; first < n; first += Chunks::kChunk) {
        const size_t count = std::min<size_t>(Chunks::kChunk, n - first);
        const Side pa = chunk_of(a, first, count, storage, x);
        const Side pb = chunk_of(b, first, count, storage, y);
        apply(f, pa, pb, x, count);
        storage.narrow(x, out + first, count);
    }
}

}  // namespace

// All but integers, and operations without a vector form.
bool BinaryOpCpu::can_run(const Mat& m) const {
    return variants_ && (m.dtype == DType::f32 || storage_kernels(host_kernel_set(), m.dtype));
}

void BinaryOpCpu::run_scalars(float* in, float* out, size_t n) const {
    for (int i = 0; i < num_scalars_; i++) {
        const Scalar& s = scalars_[i];
        const Side number = {&s.value, 1, false, false}, values = {in, 1, true, false};
        apply(*s.variants, s.swapped ? number : values, s.swapped ? values : number, out, n);
        in = out;
    }
}

// Without chains.
void BinaryOpCpu::run_one_scalar(const Mat& in, Mat& out, const Option& opt) const {
    const Chunks chunks(in, out);
    const StorageKernels* storage = storage_kernels(host_kernel_set(), in.dtype);
    const Side number = {&b, 1, false, false};
    const int threads = threads_for(opt, (double)in.total() * in.elempack);
    parallel_for(chunks.count(), threads, [&](int64_t i) {
        const Chunk p = chunks[i];
        const void* const from = storage ? (void*)p.of<uint16_t>(in) : p.of(in);
        const Side values = {from, 1, true, storage != nullptr};
        const Side &first = swapped_ ? number : values, &second = swapped_ ? values : number;
        if (storage)
            apply_stored(*variants_, first, second, *storage, p.of<uint16_t>(out), p.count);
        else
            apply(*variants_, first, second, p.of(out), p.count);
    });
}

void BinaryOpCpu::run_scalar(const Mat& in, Mat& out, const Option& opt) const {
    if constexpr (kLongestChain == 1) return run_one_scalar(in, out, opt);
    const Chunks chunks(in, out);
    const StorageKernels* storage = storage_kernels(host_kernel_set(), in.dtype);
    const int threads = threads_for(opt, (double)in.total() * in.elempack);
    const BinaryKernels& kernels = *host_kernel_set().binary;
    const Scalar& first = scalars_[0];
    // Values of the storage type that one call computes, if it has enough of them.
    const bool direct = num_scalars_ == 1 && chunks[0].count >= 32 &&
                        (first.variants == &kernels.add || first.variants == &kernels.mul);
    // Short runs are otherwise widened behind one another, so that fewer calls compute them.
    const int some = storage && !direct ? (int)(Chunks::kChunk / chunks[0].count) : 1;
    parallel_for((chunks.count() + some - 1) / some, threads, [&](int64_t task) {
        const int begin = (int)task * some, end = std::min(begin + some, chunks.count());
        Chunk p = chunks[begin];
        if (!storage) return run_scalars(p.of(in), p.of(out), p.count);
        if (direct) {
            const Side number = {&first.value, 1, false, false};
            const Side values = {p.of<uint16_t>(in), 1, true, true};
            apply_stored(*first.variants, first.swapped ? number : values,
                         first.swapped ? values : number, *storage, p.of<uint16_t>(out), p.count);
            return;
        }
        float values[Chunks::kChunk];
        size_t n = 0;
        for (int i = begin; i < end; i++, n += p.count) {
            p = chunks[i];
            storage->widen(p.of<uint16_t>(in), values + n, p.count);
        }
        run_scalars(values, values, n);
        n = 0;
        for (int i = begin; i < end; i++, n += p.count) {
            p = chunks[i];
            storage->narrow(values + n, p.of<uint16_t>(out), p.count);
        }
    });
}

int BinaryOpCpu::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    if (!can_run(bottom)) return Layer::forward(bottom, top, opt);
    top.create_like(bottom, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    run_scalar(bottom, top, opt);
    return kOk;
}

int BinaryOpCpu::forward_inplace(Mat& blob, const Option& opt) const {
    if (!can_run(blob)) return BinaryOp::forward_inplace(blob, opt);
    run_scalar(blob, blob, opt);
    return kOk;
}

namespace {

enum Layout { kDense, kConstant, kStrided };

// How an operand lies on the axes from `first` on, of these sizes.
Layout layout_of(const size_t step[4], const int size[4], int first, int pack) {
    size_t expected = pack;
    bool dense = true, constant = true;
    for (int axis = 3; axis >= first; axis--) {
        if (size[axis] == 1) continue;
        dense = dense && step[axis] == expected;
        constant = constant && step[axis] == 0;
        expected *= size[axis];
    }
    return constant ? kConstant : dense ? kDense : kStrided;
}

// The values of an operand that repeat on the axes from `first` on, if a pattern has whole periods
// of them; else 0.
int period_of(const size_t step[4], const int size[4], int first, int pack) {
    size_t values = pack;
    int axis = 3;
    for (; axis >= first && (size[axis] == 1 || step[axis] == values); axis--)
        if (size[axis] != 1) values *= size[axis];
    for (; axis >= first; axis--)
        if (size[axis] != 1 && step[axis] != 0) return 0;
    return values <= kPatternSize && kPatternSize % values == 0 ? (int)values : 0;
}

// Only one of the sides may repeat. Values of a storage type go in chunks, which must have whole
// periods.
bool repeats_beside(const size_t repeating[4], const size_t dense[4], const int size[4], int first,
                    int pack, bool in_chunks) {
    if (layout_of(repeating, size, first, pack) != kStrided ||
        layout_of(dense, size, first, pack) != kDense)
        return false;
    const int period = period_of(repeating, size, first, pack);
    return period && (!in_chunks || Chunks::kChunk % period == 0);
}

}  // namespace

// `row` has one row of the axes from `covered` on, of floats, for all of them; the others lie
// without gaps.
bool BinaryOpCpu::is_row_of(const Operand& row, const Operand& other, const Axes4& to,
                            int covered) {
    bool one = true, several = false;
    for (int axis = 0; axis < covered; axis++) {
        one = one && (to.size[axis] == 1 || row.step[axis] == 0);
        several = several || to.size[axis] > 1;
    }
    return one && several && row.blob.dtype == DType::f32 &&
           layout_of(row.step, to.size, covered, 1) == kDense &&
           layout_of(other.step, to.size, 0, 1) == kDense &&
           layout_of(to.step, to.size, 0, 1) == kDense;
}

// Short rows, some at a time: the one of the operand is written down so many times before. False
// where memory is short.
bool BinaryOpCpu::run_rows(const Operand& a, const Operand& b, bool a_row, size_t count,
                           size_t rows, Mat& out, const Option& opt) const {
    const size_t some = std::min<size_t>(rows, Chunks::kChunk / count);
    Mat repeated((int)(some * count), (size_t)4u, opt.workspace_allocator);
    if (repeated.empty()) return false;
    const float* const row = (a_row ? a : b).blob;
    for (size_t i = 0; i < some; i++) memcpy((float*)repeated + i * count, row, count * 4);
    const StorageKernels* storage = storage_kernels(host_kernel_set(), out.dtype);
    const int threads = threads_for(opt, (double)count * rows);
    parallel_for((int64_t)((rows + some - 1) / some), threads, [&](int64_t i) {
        const size_t at = i * some * count, n = std::min(some * count, rows * count - at);
        const Side sa = a_row ? side_of(repeated, 0, 1, true) : side_of(a.blob, at, 1, true);
        const Side sb = a_row ? side_of(b.blob, at, 1, true) : side_of(repeated, 0, 1, true);
        if (storage)
            apply_stored(*variants_, sa, sb, *storage, (uint16_t*)out.data + at, n);
        else
            apply(*variants_, sa, sb, (float*)out.data + at, n);
    });
    return true;
}

// Short rows of which an operand has one value each, as those of an outer sum: so many that their
// results are stored together. The axes from `covered` on are a row; what is behind the outermost
// one has no gaps.
void BinaryOpCpu::run_gathered(const Operand& a, const Operand& b, int covered, size_t count,
                               Mat& out, const Option& opt) const {
    const Axes4 to = axes_of(out);
    const StorageKernels* storage = storage_kernels(host_kernel_set(), out.dtype);
    const bool a_vector = layout_of(a.step, to.size, covered, 1) != kConstant;
    const Operand &vectors = a_vector ? a : b, &values = a_vector ? b : a;
    const bool stored = vectors.blob.dtype != DType::f32;
    const int last = covered - 1;
    size_t inner = 1;  // rows of a step of the outermost axis
    for (int axis = 1; axis < covered; axis++) inner *= to.size[axis];
    const size_t some = Chunks::kChunk / std::max<size_t>(count, kPatternSize);
    const size_t groups = (inner + some - 1) / some;
    const int threads = threads_for(opt, (double)count * inner * to.size[0]);
    parallel_for((int64_t)(to.size[0] * groups), threads, [&](int64_t task) {
        // Patterns come first: a register read from what was just stored in pieces would wait.
        float patterns[Chunks::kChunk], wide[Chunks::kChunk], results[Chunks::kChunk];
        const size_t outer = task / groups, first = task % groups * some;
        const size_t rows = std::min(some, inner - first);
        const size_t at = outer * to.step[0] + first * count;
        float* y = storage ? results : (float*)out.data + at;
        // Rows along the last of the axes at a time.
        for (size_t r = 0, run; r < rows; r += run) {
            size_t row = outer * vectors.step[0], value = outer * values.step[0], rest = first + r;
            run = std::min(rows - r, to.size[last] - rest % to.size[last]);
            for (int axis = last; axis >= 1; rest /= to.size[axis], axis--) {
                const size_t i = rest % to.size[axis];
                row += i * vectors.step[axis], value += i * values.step[axis];
            }
            for (size_t i = 0; i < run; i++)
                set_pattern((const float*)values.blob.data + value + i * values.step[last], 1,
                            patterns + i * kPatternSize);
            size_t step = vectors.step[last];
            const float* x = (const float*)vectors.blob.data + row;
            if (stored) {
                const size_t different = step ? run : 1;
                for (size_t i = 0; i < different; i++)
                    storage->widen((const uint16_t*)vectors.blob.data + row + i * step,
                                   wide + i * count, count);
                x = wide, step = step ? count : 0;
            }
            const float* pattern = patterns;
            for (size_t i = 0; i < run; i++, x += step, y += count, pattern += kPatternSize)
                if (a_vector)
                    variants_->vector_pattern(x, pattern, y, count);
                else
                    variants_->pattern_vector(pattern, x, y, count);
        }
        if (storage) storage->narrow(results, (uint16_t*)out.data + at, rows * count);
    });
}

// Operands that lie as the output does, without gaps: one run, however short the rows are.
void BinaryOpCpu::run_flat(const Operand& a, const Operand& b, size_t count, Mat& out,
                           const Option& opt) const {
    const StorageKernels* storage = storage_kernels(host_kernel_set(), out.dtype);
    const size_t chunk = Chunks::kChunk;
    parallel_for((int64_t)((count + chunk - 1) / chunk), threads_for(opt, (double)count),
                 [&](int64_t i) {
                     const size_t at = i * chunk, n = std::min(chunk, count - at);
                     const Side sa = side_of(a.blob, at, a.lanes, true);
                     const Side sb = side_of(b.blob, at, b.lanes, true);
                     if (storage)
                         apply_stored(*variants_, sa, sb, *storage, (uint16_t*)out.data + at, n);
                     else
                         apply(*variants_, sa, sb, (float*)out.data + at, n);
                 });
}

void BinaryOpCpu::run(const Operand& a, const Operand& b, Mat& out, const Option& opt) const {
    const Axes4 to = axes_of(out);
    const int pack = out.elempack, outermost = axis_of_four(0, out.dims);
    if (a.lanes == pack && b.lanes == pack && layout_of(a.step, to.size, 0, pack) == kDense &&
        layout_of(b.step, to.size, 0, pack) == kDense &&
        layout_of(to.step, to.size, 0, 1) == kDense)
        return run_flat(a, b, out.total() * pack, out, opt);
    // The axes that one call covers: all behind the outermost one if both operands allow it.
    int covered = std::min(outermost + 1, 3);
    const StorageKernels* storage = storage_kernels(host_kernel_set(), out.dtype);
    const bool a_repeats =
        repeats_beside(a.step, b.step, to.size, covered, pack, storage != nullptr);
    const bool b_repeats =
        repeats_beside(b.step, a.step, to.size, covered, pack, storage != nullptr);
    while (covered < 3 && !a_repeats && !b_repeats &&
           (layout_of(a.step, to.size, covered, pack) == kStrided ||
            layout_of(b.step, to.size, covered, pack) == kStrided))
        covered++;
    size_t count = 1, outer_rows = 1;
    for (int axis = 0; axis < 4; axis++) (axis < covered ? outer_rows : count) *= to.size[axis];
    const bool a_row = is_row_of(a, b, to, covered), b_row = is_row_of(b, a, to, covered);
    if (pack == 1 && a_row != b_row && count * 2 <= (size_t)Chunks::kChunk &&
        run_rows(a, b, a_row, count, outer_rows, out, opt))
        return;
    const bool a_constant = layout_of(a.step, to.size, covered, pack) == kConstant;
    const bool b_constant = layout_of(b.step, to.size, covered, pack) == kConstant;
    if (!relu && pack == 1 && covered > 1 && a_constant != b_constant && count > 1 &&
        count <= 128 && outer_rows > (size_t)to.size[0] &&
        layout_of(to.step, to.size, 1, 1) == kDense)
        return run_gathered(a, b, covered, count, out, opt);
    const int threads = threads_for(opt, (double)count * outer_rows * pack);
    parallel_for((int)outer_rows, threads, [&](int64_t row) {
        size_t at_a = 0, at_b = 0, at = 0;
        for (int axis = covered - 1, rest = row; axis >= 0; rest /= to.size[axis], axis--) {
            const int i = rest % to.size[axis];
            at_a += i * a.step[axis], at_b += i * b.step[axis], at += i * to.step[axis] * pack;
        }
        Side sa = side_of(a.blob, at_a, a.lanes, !a_constant || (count == 1 && a.lanes == pack));
        Side sb = side_of(b.blob, at_b, b.lanes, !b_constant || (count == 1 && b.lanes == pack));
        if (a_repeats) sa.vector = false, sa.lanes = period_of(a.step, to.size, covered, pack);
        if (b_repeats) sb.vector = false, sb.lanes = period_of(b.step, to.size, covered, pack);
        if (storage)
            apply_stored(*variants_, sa, sb, *storage, (uint16_t*)out.data + at, count * pack);
        else
            apply(*variants_, sa, sb, (float*)out.data + at, count * pack);
    });
}

void BinaryOpCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                               std::vector<BlobLayout>* out) const {
    BlobLayout& top = (*out)[0];
    if (with_scalar) top.elempack = in[0].elempack;
    const DType type = in[0].shape.dtype;
    const bool stored = storage_kernels(host_kernel_set(), type) != nullptr;
    int first[2];
    Shape to;
    if (with_scalar || !variants_ || (type != DType::f32 && !stored) || top.shape.dims == 1 ||
        align(in[0].shape, in[1].shape, first, &to) != kOk)
        return;
    for (int i = 0; i < 2; i++)
        if (first[i] == 0 && in[i].shape.size(0) == top.shape.size(0) &&
            has_pattern(in[i].elempack))
            top.elempack = std::max(top.elempack, in[i].elempack);
}

int BinaryOpCpu::combine(const std::vector<Mat>& bottoms, bool inplace, Mat* top,
                         const Option& opt) const {
    const ShapeList in(bottoms);
    ShapeList out;
    QUOLL_RETURN_IF_ERROR(shape(*this, *in, *out));
    const bool stored = variants_ && storage_kernels(host_kernel_set(), in[0].dtype);
    if (!variants_ || (in[0].dtype != DType::f32 && !stored)) {
        std::vector<Mat> planar(2), tops;
        for (int i = 0; i < 2; i++)
            QUOLL_RETURN_IF_ERROR(with_elempack(bottoms[i], 1, opt, &planar[i]));
        QUOLL_RETURN_IF_ERROR(BinaryOp::forward(planar, tops, opt));
        *top = tops[0];
        return kOk;
    }
    int first[2];
    QUOLL_RETURN_IF_ERROR(align(in[0], in[1], first, &out[0]));
    int pack = 1;
    for (int i = 0; i < 2; i++)
        if (first[i] == 0 && in[i].size(0) == out[0].size(0) && has_pattern(bottoms[i].elempack))
            pack = std::max(pack, bottoms[i].elempack);
    // With one axis, elements and values lie in the same order: no need for lanes.
    if (out[0].dims == 1) pack = 1;
    Operand operands[2];
    for (int i = 0; i < 2; i++) {
        // What is spread over the output is small.
        Mat m = bottoms[i];
        if (in[i] != out[0] || m.elempack != pack || out[0].dims == 1)
            QUOLL_RETURN_IF_ERROR(widened(m, opt, &m));
        QUOLL_RETURN_IF_ERROR(make_operand(m, first[i], out[0], pack, opt, &operands[i]));
    }
    Mat result;
    for (int i = 0; i < 2 && inplace; i++)
        if (in[i] == out[0] && bottoms[i].elempack == pack) result = bottoms[i];
    if (result.empty()) {
        result = static_cast<Mat&&>(*top);
        result.create(out[0], pack, opt.blob_allocator);
    }
    if (result.empty()) return kOutOfMemory;
    run(operands[swapped_], operands[!swapped_], result, opt);
    *top = result;
    return kOk;
}

int BinaryOpCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                         const Option& opt) const {
    if (with_scalar) return Layer::forward(bottoms, tops, opt);
    tops.resize(1);
    return combine(bottoms, false, &tops[0], opt);
}

int BinaryOpCpu::forward_inplace(std::vector<Mat>& blobs, const Option& opt) const {
    if (with_scalar) return Layer::forward_inplace(blobs, opt);
    Mat top;
    QUOLL_RETURN_IF_ERROR(combine(blobs, true, &top, opt));
    blobs.assign(1, top);
    return kOk;
}

Layer* create_BinaryOp_fast_layer() { return new BinaryOpCpu; }

}  // namespace quoll
