// A function of an int8 value has 256 results, which a table can hold.
#include "graph/passes.h"
#include "layer/activation/elu.h"
#include "layer/activation/hardsigmoid.h"
#include "layer/activation/tanh.h"
#include "layer/elementwise/binaryop.h"
#include "layer/elementwise/erf.h"
#include "layer/elementwise/unaryop.h"
#include "layer/quantize/affine.h"

namespace quoll {

namespace {

const char kReport[] = "functions of int8 values as tables";

// Whether each value of the output depends only on the value of the input at the same place.
bool maps_values(const LayerGraph& graph, int index) {
    const Layer* layer = graph.layer(index);
    if (!layer || layer->typeindex < 0 || layer->bottoms.size() != 1) return false;
    const auto* binary = graph.as<BinaryOp>(index);
    return layer->as_activation().type != kActivationNone || (binary && binary->with_scalar) ||
           graph.is<UnaryOp>(index) || graph.is<Erf>(index) || graph.is<TanH>(index) ||
           graph.is<HardSigmoid>(index) || graph.is<ELU>(index);
}

// All int8 values, in ascending order.
Mat all_values() {
    Mat values(Shape(AffineTable::kValues, DType::s8), 1, nullptr);
    for (int i = 0; i < values.w; i++) ((signed char*)values.data)[i] = (signed char)(i - 128);
    return values;
}

// The results of a table for all of them.
Mat values_of(const AffineTable& table) {
    Mat values = all_values();
    if (table.table.empty()) return values;
    for (int i = 0; i < values.w; i++)
        ((signed char*)values.data)[i] = (signed char)((const int*)table.table.data)[i];
    return values;
}

// Puts a layer that maps a blob's int8 values to `values` in the place of `index`.
int replace(LayerGraph& graph, int index, const LayerMaker& make, int blob, const Mat& values) {
    std::unique_ptr<Layer> with(make("AffineTable"));
    AffineTable* const to = as<AffineTable>(with.get());
    if (!to || values.dtype != DType::s8 || values.w != AffineTable::kValues) return 0;
    to->table.create(values.w);
    if (to->table.empty()) return kOutOfMemory;
    to->table.dtype = DType::s32;
    for (int i = 0; i < values.w; i++)
        ((int*)to->table.data)[i] = ((const signed char*)values.data)[i];
    graph.replace(index, std::move(with), {blob}, kReport);
    return 1;
}

void remove_unread(LayerGraph& graph, int index) {
    const int blob = graph.layer(index)->tops[0];
    if (graph.readers(blob).empty() && !graph.kept(blob)) graph.remove(index);
}

// Handles an AffineQuantize of what follows from an AffineDequantize.
int tabulate_chain(LayerGraph& graph, int index, const LayerMaker& make) {
    std::vector<int> chain(1, index);  // from the last layer to the first
    while (!graph.is<AffineDequantize>(chain.back())) {
        const int before = graph.producer(graph.layer(chain.back())->bottoms[0]);
        if (before < 0) return 0;
        const bool alone = maps_values(graph, before) && graph.only_reader(before) == chain.back();
        const bool ends =
            graph.is<AffineDequantize>(before) && !graph.kept(graph.layer(before)->tops[0]);
        if (!alone && !ends) return 0;
        chain.push_back(before);
    }
    Mat values = all_values();
    for (size_t i = chain.size(); i-- > 0;) {
        const Mat from = values;
        if (from.empty() || !compute(*graph.layer(chain[i]), make, {from}, &values)) return 0;
    }
    const int status = replace(graph, index, make, graph.layer(chain.back())->bottoms[0], values);
    for (size_t i = 1; i < chain.size() && status > 0; i++) {
        graph.stop_following(graph.layer(chain[i])->tops[0]);  // it may have other readers
        remove_unread(graph, chain[i]);
    }
    return status;
}

// Handles an AffineBinary, or AffineTable, of tables of one blob, or of a blob and a table of it.
int join_tables(LayerGraph& graph, int index, const LayerMaker& make) {
    const std::vector<int> from = graph.layer(index)->bottoms;
    std::vector<Mat> values;
    std::vector<int> tables;
    int blob = -1;
    for (int input : from) {
        const int before = graph.producer(input);
        const AffineTable* table = graph.kept(input) ? nullptr : graph.as<AffineTable>(before);
        const int source = table ? table->bottoms[0] : input;
        if (blob >= 0 && source != blob) return 0;
        blob = source;
        if (table) tables.push_back(before);
        values.push_back(table ? values_of(*table) : all_values());
        if (values.back().empty()) return 0;
    }
    Mat made;
    if (tables.empty() || !compute(*graph.layer(index), make, values, &made)) return 0;
    const int status = replace(graph, index, make, blob, made);
    for (size_t i = 0; i < tables.size() && status > 0; i++) {
        if (!graph.layer(tables[i])) continue;
        graph.stop_following(graph.layer(tables[i])->tops[0]);
        remove_unread(graph, tables[i]);
    }
    return status;
}

}  // namespace

int tabulate(LayerGraph& graph, int index, const LayerMaker& make) {
    if (graph.is<AffineQuantize>(index)) return tabulate_chain(graph, index, make);
    if (graph.is<AffineBinary>(index) || graph.is<AffineTable>(index))
        return join_tables(graph, index, make);
    return 0;
}

}  // namespace quoll
