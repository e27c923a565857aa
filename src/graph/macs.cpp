// Costs of layers beyond what their operators say.
#include "graph/analysis.h"
#include "layer/common/schema.h"

namespace quoll {

namespace {

class WeightBytes : public WeightVisitor {
public:
    int64_t bytes = 0;
    void operator()(bool present, const char*, Mat& field, WeightSize size, WeightKind kind,
                    Doc) override {
        const int64_t count = size.w * size.h * size.d * size.c;
        const bool int8 = field.empty() ? kind == WeightKind::kInt8 : field.dtype == DType::s8;
        const bool stored = !field.empty() && !int8;
        if (present) bytes += count * (int8 ? 1 : stored ? (int64_t)dtype_size(field.dtype) : 4);
    }
};

}  // namespace

Cost cost_of(Layer& layer, const std::vector<Shape>& in, const std::vector<Shape>& out) {
    WeightBytes weights;
    layer.visit_weights(weights);
    Cost cost = {layer.macs(in, out), weights.bytes};
    for (const std::vector<Shape>* shapes : {&in, &out}) {
        for (const Shape& shape : *shapes) {
            if (shape.dims == 0) return {cost.macs, -1};
            cost.bytes += (int64_t)shape.total() * (int64_t)dtype_size(shape.dtype);
        }
    }
    return cost;
}

}  // namespace quoll
