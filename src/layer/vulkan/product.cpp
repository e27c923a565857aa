#include "layer/vulkan/product.h"

#include "layer/vulkan/conv_tiles.h"

namespace quoll {

namespace {

// Fewer rows leave most of a tile empty.
const int kFewRows = 8;

// Whether values side by side along the depth (`along`: the step between them) come in vec4s.
bool has_vectors(const MatrixSteps& m, uint32_t along, uint32_t across, int depth) {
    return along == 1 && depth % 4 == 0 && (m.first | across | m.c | m.d) % 4 == 0;
}

}  // namespace

bool MatrixProduct::fits_units(const Recorder& r) const {
    return r.has_matrices() && rows >= kFewRows && columns >= kFewRows &&
           (int64_t)c * d <= 65535 / kMostSplits;
}

void MatrixProduct::record(Recorder& r) const {
    Words push = {rows, columns, depth, d};
    for (const MatrixSteps* m : {&a_steps, &b_steps, &addend_steps, &y_steps})
        push.insert(push.end(), {m->first, m->row, m->column, m->c, m->d});
    push.push_back(alpha), push.push_back(beta);
    if (fits_units(r))
        record_units(r, push);
    else
        record_tiles(r, push);
}

void MatrixProduct::record_tiles(Recorder& r, const Words& push) const {
    r.dispatch(Shader::product, {has_addend}, {a, b, has_addend ? addend : a, y}, push,
               (uint32_t)(columns + 31) / 32, (uint32_t)(rows + 31) / 32, (uint32_t)(c * d));
}

void MatrixProduct::record_units(Recorder& r, Words push) const {
    const ConvTiling tiling =
        choose_tiling(r, Shader::product_matrix, true, {rows, columns, depth, c * d});
    const ConvTile& t = tiling.tile;
    const uint32_t x = (uint32_t)((columns + t.columns - 1) / t.columns);
    const uint32_t y_groups = (uint32_t)((rows + t.rows - 1) / t.rows);
    Words constants = {has_addend, f.type, has_bias,
                       has_vectors(a_steps, a_steps.column, a_steps.row, depth),
                       has_vectors(b_steps, b_steps.row, b_steps.column, depth)};
    const Words shape = tile_constants(t, r.device().features().matrix);
    constants.insert(constants.end(), shape.begin(), shape.end());
    std::vector<Binding> bindings = {a, b, has_addend ? addend : a, y, has_bias ? bias : a};
    add_split(r, tiling, x * y_groups * (uint32_t)(c * d), a, &bindings);
    push.push_back(f.a), push.push_back(f.b), push.push_back(tiling.splits);
    r.dispatch(Shader::product_matrix, constants, bindings, push, x, y_groups,
               (uint32_t)(c * d * tiling.splits));
}

}  // namespace quoll
