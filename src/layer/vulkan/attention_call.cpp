#include "layer/vulkan/attention_call.h"

#include <algorithm>

#include "layer/vulkan/lines.h"
#include "layer/vulkan/product.h"

namespace quoll {

namespace {

// Values of a row in attention.comp: the most of a query that its groups keep, and the most that
// their invocations can add up.
const int kKeptValues = 512, kMostValues = 4096;
// attention_matrix.comp: queries of a group, and the number from which on it is used.
const int kQueries = 16, kFewQueries = 8;
// attention_wide.comp: subgroups with kQueries each, and how many subgroups share the keys of one
// of them. If that makes no more groups than there are processors, more and smaller ones are used.
struct WideGroup {
    int subgroups, shares;
    uint32_t rows() const { return (uint32_t)(kQueries * subgroups); }
};
const WideGroup kManyGroups = {4, 1}, kFewGroups = {2, 2};
// Invocations of a group of attention_row.comp, which is used for fewer than kFewQueries.
const uint32_t kRowThreads = 256;
// Queries from which on fp32 attention is two products of matrices with a softmax between them.
const int kManyQueries = 24;

}  // namespace

void AttentionCall::record(Recorder& r) const {
    if (fits_products(r))
        record_products(r);
    else if (fits_wide(r))
        record_wide(r);
    else
        record_whole(r);
}

void AttentionCall::record_wide(Recorder& r) const {
    const GpuFeatures& features = r.device().features();
    const auto groups = [&](const WideGroup& g) {
        return ((uint32_t)queries + g.rows() - 1) / g.rows();
    };
    const uint32_t items = (uint32_t)y.value->shape.n;
    const bool few = groups(kManyGroups) * (uint32_t)heads * items <= features.processors;
    const WideGroup& g = few ? kFewGroups : kManyGroups;
    const Words constants = {size, out_size,
                             (uint32_t)(g.subgroups * g.shares) * features.matrix.subgroup,
                             g.subgroups, g.shares};
    r.dispatch(
        Shader::attention_wide, constants,
        {r.read(*q.value), r.read(*k.value), r.read(*v.value), r.read(*q.value), r.write(*y.value)},
        push(q), groups(g), (uint32_t)heads, items);
}

bool AttentionCall::fits_wide(const Recorder& r) const {
    if (mask || queries <= kQueries || !fits_units(r)) return false;
    const uint32_t of_size = (uint32_t)size / 8, of_out = (uint32_t)out_size / 8;
    const uint32_t pitch = std::max({of_size, of_out, 8u}) + 1;
    const uint32_t vectors = 64 * (of_size + 1) + 64 * (of_out + 3) + kManyGroups.rows() * pitch;
    return 16 * vectors <= r.device().limits().maxComputeSharedMemorySize;
}

Words AttentionCall::push(const HeadSteps& seen) const {
    Words words = {queries, keys, size, out_size, heads_per_group};
    for (const HeadSteps* m : {&q, &k, &v, &y, &seen})
        words.insert(words.end(),
                     {m->value->first, m->row, m->column, m->head, m->value->item_step()});
    words.push_back(scale);
    return words;
}

void AttentionCall::record_whole(Recorder& r) const {
    HeadSteps seen = q;
    if (mask) {
        const bool each = mask->shape.dims == 3 && mask->shape.c > 1;
        const uint32_t row = (uint32_t)mask->shape.w;
        seen = {mask, row, columns ? (uint32_t)columns->shape.w : 1,
                each ? (uint32_t)queries * row : 0};
    }
    const Value& beside = columns ? *columns : *seen.value;
    const std::vector<Binding> bindings = {r.read(*q.value),    r.read(*k.value),  r.read(*v.value),
                                           r.read(*seen.value), r.write(*y.value), r.read(beside)};
    const int kind = (mask != nullptr) + (columns != nullptr);
    Words words = push(seen);
    words.push_back(beside.first);
    if (fits_rows(r)) {
        r.dispatch(Shader::attention_row, {kind, kRowThreads}, bindings, words, (uint32_t)queries,
                   (uint32_t)heads, (uint32_t)y.value->shape.n);
        return;
    }
    const bool units = fits_units(r);
    const Words constants =
        units ? Words{kind, size, out_size, 4 * r.device().features().matrix.subgroup}
              : Words{kind, (out_size + 63) / 64, size <= kKeptValues};
    r.dispatch(units ? Shader::attention_matrix : Shader::attention, constants, bindings, words,
               (uint32_t)(units ? (queries + kQueries - 1) / kQueries : queries), (uint32_t)heads,
               (uint32_t)y.value->shape.n);
}

bool AttentionCall::has_row_threads(const Recorder& r) {
    const VkPhysicalDeviceLimits& limits = r.device().limits();
    return r.storage() != Storage::f32 && limits.maxComputeWorkGroupInvocations >= kRowThreads &&
           limits.maxComputeWorkGroupSize[0] >= kRowThreads;
}

bool AttentionCall::fits_rows(const Recorder& r) const {
    if (!has_row_threads(r) || queries >= kFewQueries || size % 4 || out_size % 4 ||
        std::max(size, out_size) > kKeptValues)
        return false;
    for (const HeadSteps* m : {&k, &v}) {
        const uint32_t steps = m->value->first | m->row | m->head | m->value->item_step();
        if (m->column != 1 || steps % 4) return false;
    }
    return true;
}

bool AttentionCall::fits_units(const Recorder& r) const {
    const MatrixUnits& units = r.device().features().matrix;
    const bool edges = units.m == 16 && units.n == 16 && units.k == 16 && units.subgroup >= 32;
    if (!r.has_matrices() || !edges || queries < kFewQueries || size % 16 || out_size % 16)
        return false;
    for (const HeadSteps* m : {&q, &k, &v, &y}) {
        const uint32_t steps = m->value->first | m->row | m->head | m->value->item_step();
        if (m->column != 1 || steps % 8) return false;
    }
    const uint32_t of_size = size / 8 + 1, of_out = out_size / 8 + 1;
    const uint32_t vectors = (16 + 64) * of_size + 64 * of_out + 16 * (17 + 2 * 9) +
                             16 * ((uint32_t)out_size / 4 + 1) + 32;
    return 16 * vectors <= r.device().limits().maxComputeSharedMemorySize;
}

bool AttentionCall::fits_products(const Recorder& r) const {
    const int64_t matrices = (int64_t)heads * y.value->shape.n;
    const double bytes = (double)matrices * queries * keys * sizeof(float);
    return r.storage() == Storage::f32 && !mask && heads_per_group == 1 &&
           queries >= kManyQueries && MatrixProduct::fits(queries, matrices) &&
           bytes <= r.device().limits().maxStorageBufferRange;
}

void AttentionCall::record_products(Recorder& r) const {
    const auto steps_of = [](const HeadSteps& m) {
        return MatrixSteps{m.value->first, m.row, m.column, m.head, m.value->item_step()};
    };
    const auto across = [](const MatrixSteps& m) {
        return MatrixSteps{m.first, m.column, m.row, m.c, m.d};
    };
    Shape shape(keys, queries, heads);
    shape.n = y.value->shape.n;
    const Value scores = r.make(shape, Layout::kPlanar), weights = r.make(shape, Layout::kPlanar);
    const uint32_t row = (uint32_t)keys, head = row * (uint32_t)queries;
    MatrixProduct p;
    p.rows = queries, p.columns = keys, p.depth = size, p.c = heads, p.d = shape.n;
    p.alpha = scale;
    p.a = r.read(*q.value), p.a_steps = steps_of(q);
    p.b = r.read(*k.value), p.b_steps = across(steps_of(k));
    p.y = r.write(scores), p.y_steps = steps_of({&scores, row, 1, head});
    p.record(r);
    record_softmax(r, scores, weights, row, (uint32_t)(shape.h * shape.c * shape.n));
    p.columns = out_size, p.depth = keys, p.alpha = 1.f;
    p.a = r.read(weights), p.a_steps = steps_of({&weights, row, 1, head});
    p.b = r.read(*v.value), p.b_steps = steps_of(v);
    p.y = r.write(*y.value), p.y_steps = steps_of(y);
    p.record(r);
}

bool AttentionCall::fits(int queries, int heads, int size, int out_size) {
    return queries <= 65535 && heads <= 65535 && size <= kMostValues && out_size <= kMostValues;
}

}  // namespace quoll
