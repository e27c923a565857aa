// Products of which parts are cut out, as one product for each part.
#include <unordered_map>

#include "layer/nn/innerproduct.h"
#include "layer/tensor/slice.h"
#include "onnx/fuse_layers.h"
#include "runtime/turned_weight.h"
#include "runtime/weight_tags.h"

namespace quoll {
namespace onnx_tool {

namespace {

typedef std::unordered_map<std::string, std::vector<ModelLayer*>> Readers;

Readers readers_of(Model* model) {
    Readers readers;
    for (ModelLayer& layer : model->layers)
        for (const std::string& blob : layer.inputs) readers[blob].push_back(&layer);
    return readers;
}

// One in fp32, whose columns are rows of the weights.
bool is_product(const ModelLayer& layer) {
    const StoredWeight* weights = layer.find_weight("weight_data");
    return layer.is<InnerProduct>() && layer.outputs.size() == 1 && weights &&
           weights->data.elemsize == 4u && layer.params.get(0, 0) > 0 &&
           layer.params.get(8, 0) == 0;
}

// The pieces of a Slice of columns as a StridedSlice each.
std::vector<ModelLayer> cuts_of(const ModelLayer& slice) {
    std::vector<ModelLayer> cuts;
    const Mat sizes = slice.params.get_ints(0, Mat());
    if (slice.params.get(1, 0) != 1 || sizes.w != (int)slice.outputs.size()) return cuts;
    int begin = 0;
    for (int i = 0; i < sizes.w; i++) {
        const int size = ((const int*)sizes)[i];
        if (size < 1) return {};
        ModelLayer cut;
        cut.type = "StridedSlice", cut.name = slice.outputs[(size_t)i];
        cut.inputs = slice.inputs, cut.outputs = {slice.outputs[(size_t)i]};
        cut.set("starts", std::vector<int>{begin});
        cut.set("ends", std::vector<int>{begin + size});
        cut.set("axes", std::vector<int>{1});
        begin += size;
        cuts.push_back(std::move(cut));
    }
    return cuts;
}

void part_slices(Model* model) {
    std::unordered_map<const ModelLayer*, std::vector<ModelLayer>> parted;
    const Readers readers = readers_of(model);
    for (const ModelLayer& layer : model->layers) {
        if (!is_product(layer)) continue;
        const auto found = readers.find(layer.outputs[0]);
        if (found == readers.end() || found->second.size() != 1) continue;
        const ModelLayer* slice = found->second[0];
        if (slice->is<Slice>()) parted[slice] = cuts_of(*slice);
    }
    if (parted.empty()) return;
    std::deque<ModelLayer> all;
    for (ModelLayer& layer : model->layers) {
        const auto found = parted.find(&layer);
        if (found == parted.end() || found->second.empty())
            all.push_back(std::move(layer));
        else
            for (ModelLayer& cut : found->second) all.push_back(std::move(cut));
    }
    model->layers.swap(all);
}

// The columns of a product of rows that a layer cuts out; false if it does anything else.
bool range_of_columns(const ModelLayer& cut, int columns, Range* range) {
    return cut_along(cut, 1, range) && range->end <= columns;
}

// Of [inputs][outputs], in the same memory.
StoredWeight columns_of(const StoredWeight& weights, const Range& range) {
    const WeightByInputs from(weights.data);
    StoredWeight to = weights;
    to.data.data = (float*)to.data.data + range.begin;
    to.data.dims = 3, to.data.c = (int)from.inputs, to.data.h = 1;
    to.data.w = range.end - range.begin, to.data.cstep = from.step;
    return to;
}

// Makes the cut the product with those columns.
void take_columns(const ModelLayer& product, const Range& range, ModelLayer* cut) {
    const int columns = range.end - range.begin;
    const StoredWeight& weights = *product.find_weight("weight_data");
    const int inputs =
        (int)(weights.data.logical_shape().total() / (size_t)product.params.get(0, 0));
    const StoredWeight* bias = product.find_weight("bias_data");
    // Of a 1-D Mat; they share its memory.
    const auto part = [&](Mat all, int width) {
        all.data = (float*)all.data + (size_t)range.begin * (size_t)width;
        all.w = columns * width, all.cstep = all.nstep = (size_t)all.w;
        return all;
    };
    cut->type = "InnerProduct";
    cut->inputs = product.inputs;
    cut->params = product.params;
    cut->set("num_output", columns);
    cut->set("weight_data_size", columns * inputs);
    if (weights.tag == kTagByInputs)
        cut->weights.push_back({"weight_data", columns_of(weights, range)});
    else
        cut->set_weight("weight_data", part(weights.data, inputs));
    if (bias) cut->set_weight("bias_data", part(bias->data, 1));
}

}  // namespace

int split_products(Model* model) {
    part_slices(model);
    Readers readers = readers_of(model);
    int count = 0;
    for (ModelLayer& product : model->layers) {
        if (!is_product(product)) continue;
        const std::vector<ModelLayer*>& cuts = readers[product.outputs[0]];
        const int all = product.params.get(0, 0);
        std::vector<Range> ranges(cuts.size());
        int columns = 0;
        bool only = cuts.size() > 1;
        for (size_t i = 0; i < cuts.size() && only; i++) {
            only = range_of_columns(*cuts[i], all, &ranges[i]);
            columns += ranges[i].end - ranges[i].begin;
        }
        if (!only || columns > all) continue;
        for (size_t i = 0; i < cuts.size(); i++) take_columns(product, ranges[i], cuts[i]);
        count++;
    }
    return count;
}

}  // namespace onnx_tool
}  // namespace quoll
