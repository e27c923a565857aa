// Products of quantised values are exact in integers.
#include "graph/passes.h"
#include "layer/nn/innerproduct.h"
#include "layer/nn/matmul.h"
#include "layer/nn/matmulinteger.h"
#include "layer/quantize/affine.h"
#include "layer/tensor/padding.h"

namespace quoll {

namespace {

int set_zero_point(Mat* to, int zero) {
    to->create(1);
    if (to->empty()) return kOutOfMemory;
    to->dtype = DType::s32;
    ((int*)to->data)[0] = zero;
    return kOk;
}

// Where a blob's values come from: an AffineDequantize, and layers behind it that only move them.
// All have a single reader; where no layer moves them, the AffineDequantize may have others.
struct Source {
    int layer = -1;
    std::vector<int> movers;

    Source(const LayerGraph& graph, int blob) {
        int at = graph.producer(blob);
        while (at >= 0 && !graph.is<AffineDequantize>(at)) {
            const Layer& mover = *graph.layer(at);
            // A border of 0 is not the int8 value 0 if there are zero points.
            const Padding* const border = graph.as<Padding>(at);
            if (border && border->type == Padding::kConstant) return;
            if (mover.typeindex < 0 || !has_trait(mover, kMovesValues) ||
                mover.bottoms.size() != 1 || graph.only_reader(at) < 0)
                return;
            movers.push_back(at);
            at = graph.producer(mover.bottoms[0]);
        }
        if (at < 0 || graph.kept(graph.layer(at)->tops[0])) return;
        if (movers.empty() || graph.only_reader(at) == movers.back()) layer = at;
    }
};

// The blob of the int8 values.
int take_int8(LayerGraph& graph, const Source& source) {
    const Layer& layer = *graph.layer(source.layer);
    graph.stop_following(layer.tops[0]);  // it may have other readers
    if (source.movers.empty()) return layer.bottoms[0];
    graph.bypass(source.layer, "int8 moved instead of f32", LayerGraph::Output::gone);
    for (int mover : source.movers) graph.change(graph.layer(mover)->tops[0]);
    return graph.layer(source.movers[0])->tops[0];
}

}  // namespace

int quantised_product(LayerGraph& graph, int index, const LayerMaker& make) {
    const auto* product = graph.as<MatMul>(index);
    const int next = product ? graph.only_reader(index) : -1;
    const auto* top = graph.as<AffineQuantize>(next);
    if (!top || product->transB || product->bottoms.size() != 2 || graph.back_ends) return 0;
    const Source sources[] = {Source(graph, product->bottoms[0]),
                              Source(graph, product->bottoms[1])};
    const auto *a = graph.as<AffineDequantize>(sources[0].layer),
               *b = graph.as<AffineDequantize>(sources[1].layer);
    if (!a || !b) return 0;
    std::unique_ptr<Layer> with(make("MatMulInteger"));
    auto* const to = as<MatMulInteger>(with.get());
    const float factor = a->scale * b->scale / top->scale;
    if (!to || !(factor > 1e-38f && factor < 1e38f)) return 0;
    to->top_factor = factor;
    to->top_zero_point = top->zero_point;
    QUOLL_RETURN_IF_ERROR(set_zero_point(&to->a_zero_points, a->zero_point));
    QUOLL_RETURN_IF_ERROR(set_zero_point(&to->b_zero_points, b->zero_point));
    std::vector<int> from;
    for (const Source& source : sources) from.push_back(take_int8(graph, source));
    graph.replace(next, std::move(with), from, "MatMul of int8 values in int8");
    graph.remove(index);
    for (const Source& source : sources) {
        const Layer* layer = graph.layer(source.layer);
        if (layer && graph.readers(layer->tops[0]).empty() && !graph.kept(layer->tops[0]))
            graph.remove(source.layer);
    }
    return 1;
}

int keep_int8_rows(LayerGraph& graph, int index, const LayerMaker&) {
    auto* product = graph.as<InnerProduct>(index);
    if (!product || !product->is_int8() || product->int8_affine != 1 || product->int8_output() ||
        graph.back_ends)
        return 0;
    const int next = graph.only_reader(index);
    const auto* top = graph.as<AffineQuantize>(next);
    if (!top) return 0;
    product->top_factor = 1.f / top->scale;
    product->top_zero_point = top->zero_point;
    graph.absorb(index, next, false, "int8 kept between layers");
    return 1;
}

}  // namespace quoll
