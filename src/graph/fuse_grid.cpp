#include <math.h>

#include "graph/passes.h"
#include "layer/elementwise/binaryop.h"
#include "layer/tensor/concat.h"
#include "layer/tensor/slice.h"
#include "layer/tensor/tensorshape.h"
#include "layer/vision/gridsample.h"

namespace quoll {

namespace {

// The layers that make one of a point's coordinates from a column of a blob, the last one first,
// and what they do: x * scale + offset.
struct Coordinate {
    std::vector<int> layers;
    double scale = 1, offset = 0;

    // What the layer does to x is done before the rest; false if it does something else.
    bool begin_with(const BinaryOp& op) {
        double factor = 1, term = 0;
        if (op.op_type == BinaryOp::ADD)
            term = op.b;
        else if (op.op_type == BinaryOp::SUB)
            term = -op.b;
        else if (op.op_type == BinaryOp::MUL)
            factor = op.b;
        else if (op.op_type == BinaryOp::DIV)
            factor = 1. / op.b;
        else if (op.op_type == BinaryOp::RSUB)
            factor = -1, term = op.b;
        else
            return false;
        offset += scale * term, scale *= factor;
        return isfinite((float)scale) && isfinite((float)offset);
    }
};

// Follows operations with scalars from `blob`, which `reader` alone reads, back to the blob that
// they begin with; -1 if others read one of them.
int follow_back(const LayerGraph& graph, int blob, int reader, Coordinate* c) {
    while (graph.readers(blob).size() == 1 && !graph.kept(blob)) {
        const int from = graph.producer(blob);
        const auto* op = as_built<BinaryOp>(graph, from);
        if (!op || !op->with_scalar || op->then || graph.only_reader(from) != reader) return blob;
        if (!c->begin_with(*op)) return -1;
        c->layers.push_back(from);
        reader = from, blob = op->bottoms[0];
    }
    return -1;
}

// Whether it cuts the last axis, of a grid with this one, into two columns, or joins these.
template <class T>
bool is_of_columns(const T* layer, int axis) {
    return layer && (layer->axis == axis || layer->axis == -1);
}

// Whether its first piece is one of two columns.
bool is_halved(const Slice& slice) {
    const bool ends = !slice.indices.empty();
    const Mat& sizes = ends ? slice.indices : slice.slices;
    if (slice.tops.size() != 2 || sizes.empty()) return false;
    const int first = ((const int*)sizes.data)[0];
    return first == 1 || first == (ends ? -1 : -233);
}

// A grid whose coordinates were taken apart, scaled and joined again.
int fuse_columns(LayerGraph& graph, int index, const LayerMaker& make) {
    const auto* sample = graph.as<GridSample>(index);
    const GridSample::Around& around = sample->around;
    if (sample->permute_fusion || around.scales()) return 0;
    const int last = around.grid_items ? 3 : 2, grid = sample->bottoms[1];
    const int join = graph.producer(grid);
    const auto* concat = as_built<Concat>(graph, join);
    if (!is_of_columns(concat, last) || concat->bottoms.size() != 2 ||
        graph.only_reader(join) != index)
        return 0;
    Coordinate found[2];
    int cut = -1;
    for (int i = 0; i < 2; i++) {
        const int column = follow_back(graph, concat->bottoms[i], join, &found[i]);
        const int from = column < 0 ? -1 : graph.producer(column);
        const auto* slice = as_built<Slice>(graph, from);
        if (!is_of_columns(slice, last) || !is_halved(*slice) || slice->tops[i] != column ||
            (i && from != cut))
            return 0;
        cut = from;
    }
    std::unique_ptr<Layer> made(make("GridSample"));
    GridSample* with = as<GridSample>(made.get());
    if (!with) return 0;
    with->take_fields(*sample);
    for (int i = 0; i < 2; i++) {
        with->around.scale[i] = (float)found[i].scale;
        with->around.offset[i] = (float)found[i].offset;
    }
    graph.replace(index, std::move(made), {sample->bottoms[0], graph.layer(cut)->bottoms[0]},
                  "scaled coordinates into GridSample");
    graph.remove(join);
    for (const Coordinate& c : found)
        for (int layer : c.layers) graph.remove(layer);
    graph.remove(cut);
    return 1;
}

}  // namespace

int fuse_grid(LayerGraph& graph, int index, const LayerMaker& make) {
    auto* sample = graph.as<GridSample>(index);
    // The reference takes one item.
    if (!sample || !sample->support_batch || sample->bottoms.size() != 2) return 0;
    GridSample::Around& around = sample->around;
    const int next = graph.only_reader(index);
    const auto* joins = graph.as<BatchAxis>(next);
    if (joins && joins->inverse && !around.joins_items) {
        around.joins_items = true;
        graph.absorb(index, next, false, "BatchAxis into GridSample");
        return 1;
    }
    const int before = graph.producer(sample->bottoms[1]);
    const auto* divides = graph.as<BatchAxis>(before);
    if (divides && !divides->inverse && !around.grid_items && graph.only_reader(before) == index &&
        graph.bypass(before, "BatchAxis into GridSample", LayerGraph::Output::gone)) {
        around.grid_items = true;
        return 1;
    }
    return fuse_columns(graph, index, make);
}

}  // namespace quoll
