// Common to the scalar references of elementwise operators.
#ifndef QUOLL_LAYER_ELEMENTWISE_H
#define QUOLL_LAYER_ELEMENTWISE_H

#include "layer/common/schema.h"

namespace quoll {

// One input, one output of the same shape, in place, whatever the packing and batch.
inline void set_elementwise(Layer& layer) {
    layer.one_blob_only = true;
    layer.support_inplace = true;
    layer.support_packing = true;
    layer.support_batch = true;
}

// blob[i] = f(blob[i]) for every value (of type T), gaps between channels left out.
template <class T = float, class F>
void for_each_value(Mat& blob, F f) {
    const size_t count = (size_t)blob.w * blob.h * blob.d * blob.elempack;
    for (int b = 0; b < blob.n; b++) {
        for (int q = 0; q < blob.c; q++) {
            T* p = (T*)blob.data + (b * blob.nstep + q * blob.cstep) * blob.elempack;
            for (size_t i = 0; i < count; i++) p[i] = f(p[i]);
        }
    }
}

// The shape rule of operators that compute in f32: same shapes, and inputs that are floats.
inline int same_f32_shapes(const Layer& layer, const std::vector<Shape>& in,
                           std::vector<Shape>& out) {
    for (const Shape& shape : in)
        if (!accepts_float(layer, shape.dtype))
            return layer.fail("expected f32, got %s", dtype_name(shape.dtype));
    return same_shapes(layer, in, out);
}

// Base of operators that map each f32 value by itself: `float T::value(float x) const` is the
// whole operator, params() apart. T hides params() when it has parameters.
template <class T>
class ElementwiseOperator : public Operator<T> {
public:
    ElementwiseOperator() { set_elementwise(*this); }
    static void params(T&, ParamVisitor&) {}
    static void weights(T&, WeightVisitor&) {}
    static int shape(const T& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
        return same_f32_shapes(s, in, out);
    }
    int forward_inplace(Mat& blob, const Option&) const override {
        if (blob.dtype != DType::f32)
            return this->fail("expected f32, got %s", dtype_name(blob.dtype));
        const T& self = static_cast<const T&>(*this);
        for_each_value(blob, [&self](float x) { return self.value(x); });
        return kOk;
    }
};

}  // namespace quoll

#endif
