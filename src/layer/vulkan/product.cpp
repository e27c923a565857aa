#include "layer/vulkan/product.h"

#include <algorithm>

#include "layer/vulkan/conv_tiles.h"
#include "layer/vulkan/lines.h"

namespace quoll {

namespace {

// With fewer rows or columns most of a tile is empty.
const int kFewRows = 8;
// Invocations of a group of innerproduct.comp: for short rows; for long rows (all devices can run
// that many); and if there are few groups per processor.
const uint32_t kShortThreads = 64, kThreads = 128, kMostThreads = 256, kFewGroups = 4;
const int kLongRow = 1024;

uint32_t threads_of(const GpuDevice& device, int depth, uint32_t groups) {
    if (depth < kLongRow) return kShortThreads;
    const bool few = groups < kFewGroups * std::max(device.features().processors, 16u);
    const bool most = device.limits().maxComputeWorkGroupInvocations >= kMostThreads;
    return few && most ? kMostThreads : kThreads;
}

// Whether `count` contiguous values (`along`: the step between them) come in groups of `each`.
bool has_vectors(const MatrixSteps& m, uint32_t along, uint32_t across, int count, uint32_t each) {
    return along == 1 && (uint32_t)count % each == 0 && (m.first | across | m.c | m.d) % each == 0;
}

}  // namespace

int record_rounded(Recorder& r, const Value& from, int rows, int columns, bool together,
                   MatrixSteps* steps, Value* made) {
    const int kRounded = 7;  // of normalize.comp
    *made = r.make(from.shape, Layout::kPlanar);
    Lines lines;
    lines.within.push_back({(uint32_t)columns, steps->column, steps->column, 0});
    const LineAxis row = {(uint32_t)rows, steps->row, steps->row, 0};
    (together ? lines.within : lines.across).push_back(row);
    if (from.shape.n > 1)
        lines.across.push_back({(uint32_t)from.shape.n, from.item_step(), made->item_step(), 0});
    Binding table;
    QUOLL_RETURN_IF_ERROR(lines.table(r, &table));
    lines.dispatch(r, Shader::normalize, {kRounded, false, false, 0, false},
                   {r.read(from), r.write(*made), table, table, table},
                   {lines.count(), lines.length(), from.first, made->first, 0, 0, 0, 0, 0, 0, 0});
    steps->first = made->first, steps->c = made->item_step();
    return kOk;
}

void MatrixProduct::add_epilogue(const Recorder& r, const Fused& fused) {
    if (fused.f.type != kActivationNone) f = fused.f;
    makes_floats = fused.host_floats, softmax = fused.softmax;
    if (!fused.added) return;
    has_addend = true, beta = 1.f;
    addend = r.read(*fused.added), addend_steps = y_steps;
    addend_steps.first = fused.added->first;
}

bool MatrixProduct::fits_softmax(const GpuDevice& device, int columns) {
    return columns <= (int)kMostThreads * 4 &&
           device.limits().maxComputeWorkGroupInvocations >= kMostThreads;
}

bool MatrixProduct::fills_tiles() const { return rows >= kFewRows && columns >= kFewRows; }

bool MatrixProduct::fits_units(const Recorder& r) const {
    return r.has_matrices() && fills_tiles() && (int64_t)c * d <= 65535 / kMostSplits;
}

bool MatrixProduct::fits_vectors() const {
    const bool whole_a = a_steps.column == 1 && a_steps.row == (uint32_t)depth &&
                         a_steps.first % 4 == 0 && depth % 4 == 0;
    const bool whole_b = b_steps.row == 1 && b_steps.column == (uint32_t)depth && !b_steps.first;
    const bool whole_y = y_steps.column == 1 && y_steps.row == (uint32_t)columns;
    return rows < kFewRows && c * d == 1 && whole_a && whole_b && whole_y;
}

Shader MatrixProduct::form_of(const Recorder& r, Shader shader) const {
    return has_int8 || int8 ? shader : r.half_form(shader);
}

void MatrixProduct::record_vectors(Recorder& r) const {
    const uint32_t groups = ((uint32_t)columns + 3) / 4;
    const bool wide = depth % 8 == 0 && a_steps.first % 8 == 0;
    const uint32_t threads =
        softmax ? kMostThreads : threads_of(r.device(), depth, groups * (uint32_t)rows);
    Words constants = {f.type, has_bias, depth % 4 == 0, wide, threads, has_addend};
    constants.push_back(int8), constants.push_back(pooled != nullptr);
    constants.push_back(softmax), constants.push_back(makes_floats);
    const size_t bytes = (size_t)columns * sizeof(float);
    r.dispatch(form_of(r, Shader::innerproduct), constants,
               {a, b, has_bias ? bias : b, y, has_addend ? addend : b,
                pooled ? r.read_block(pooled->block) : b,
                softmax ? r.write_block(r.make_block(bytes)) : b, softmax ? r.counters(1) : b},
               {depth, columns, a_steps.first, y_steps.first, f.a, f.b, addend_steps.first,
                addend_steps.row, addend_steps.column, alpha, beta, pooled ? pooled->parts : 0,
                1.f / (float)(pooled ? pooled->pixels : 1)},
               groups, (uint32_t)rows);
}

MatrixProduct MatrixProduct::joined() const {
    const auto follow = [this](const MatrixSteps& m) { return m.c == (uint32_t)rows * m.row; };
    const bool added = !has_addend || follow(addend_steps);
    if (c == 1 || d > 1 || b_steps.c || !follow(a_steps) || !follow(y_steps) || !added ||
        !fits((int64_t)rows * c, 1))
        return *this;
    MatrixProduct all = *this;
    all.rows *= c, all.c = 1;
    return all;
}

void MatrixProduct::record(Recorder& r) const { joined().record_joined(r); }

void MatrixProduct::record_joined(Recorder& r) const {
    if (!fits_units(r) && fits_vectors()) {
        record_vectors(r);
        return;
    }
    Words push = {rows, columns, depth, d};
    for (const MatrixSteps* m : {&a_steps, &b_steps, &addend_steps, &y_steps})
        push.insert(push.end(), {m->first, m->row, m->column, m->c, m->d});
    for (float number : {alpha, beta, f.a, f.b}) push.push_back(number);
    if (fits_units(r))
        record_units(r, push);
    else
        record_tiles(r, push);
}

void MatrixProduct::record_tiles(Recorder& r, Words push) const {
    const Shader shader = form_of(r, Shader::product);
    // For a few rows the form does not depend on the sizes, since those of a decoder grow.
    ConvTiling tiling = {conv_tiles(false)[0], 1};
    if (rows >= kFewRows && (int64_t)c * d <= 65535 / kMostSplits)
        tiling = choose_tiling(r, shader, false, {rows, columns, depth, c * d});
    const ConvTile& t = tiling.tile;
    const uint32_t x = (uint32_t)((columns + t.columns - 1) / t.columns);
    const uint32_t y_groups = (uint32_t)((rows + t.rows - 1) / t.rows);
    const bool a_in = has_vectors(a_steps, a_steps.column, a_steps.row, depth, 4);
    const bool b_in = has_vectors(b_steps, b_steps.row, b_steps.column, depth, 4);
    std::vector<Binding> bindings = {a, b, has_addend ? addend : a, y, has_bias ? bias : a};
    add_split(r, tiling, x * y_groups * (uint32_t)(c * d), y, &bindings);
    push.push_back(tiling.splits);
    r.dispatch(shader, {has_addend, f.type, has_bias, a_in, b_in, t.m, t.n}, bindings, push, x,
               y_groups, (uint32_t)(c * d * tiling.splits));
}

void MatrixProduct::record_units(Recorder& r, Words push) const {
    const ConvTiling tiling =
        choose_tiling(r, Shader::product_matrix, true, {rows, columns, depth, c * d});
    const ConvTile& t = tiling.tile;
    const uint32_t x = (uint32_t)((columns + t.columns - 1) / t.columns);
    const uint32_t y_groups = (uint32_t)((rows + t.rows - 1) / t.rows);
    const auto a_in = [&](uint32_t each) {
        return has_vectors(a_steps, a_steps.column, a_steps.row, depth, each);
    };
    const auto b_in = [&](uint32_t each) {
        return has_vectors(b_steps, b_steps.row, b_steps.column, depth, each);
    };
    const MatrixSteps& added = has_addend ? addend_steps : y_steps;
    const bool out_vectors = has_vectors(y_steps, y_steps.column, y_steps.row, columns, 4) &&
                             has_vectors(added, added.column, added.row, columns, 4);
    Words constants = {has_addend, f.type, has_bias, a_in(4), b_in(4)};
    const Words shape = tile_constants(t, r.device().features().matrix);
    constants.insert(constants.end(), shape.begin(), shape.end());
    constants.insert(constants.end(), {a_in(8), b_in(8), out_vectors, tiling.splits > 1});
    std::vector<Binding> bindings = {a, b, has_addend ? addend : a, y, has_bias ? bias : a};
    add_split(r, tiling, x * y_groups * (uint32_t)(c * d), y, &bindings);
    push.push_back(tiling.splits);
    r.dispatch(Shader::product_matrix, constants, bindings, push, x, y_groups,
               (uint32_t)(c * d * tiling.splits));
}

}  // namespace quoll
