#ifndef QUOLL_LAYER_CAST_H
#define QUOLL_LAYER_CAST_H

#include "layer/common/schema.h"

namespace quoll {

// The same values as another type. The input's type is the blob's; type_from only appears in files.
// For int8, values are rounded and clamped to [-127, 127].
class Cast : public Operator<Cast> {
public:
    enum ElementType { kAuto, kFloat32, kFloat16, kInt8, kBfloat16 };

    Cast();
    static void params(Cast& s, ParamVisitor& v);
    static void weights(Cast& s, WeightVisitor& v);
    static int shape(const Cast& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

    // f32 for kAuto.
    static DType dtype_of(int element_type);

    int type_from = 0;
    int type_to = 0;
};

// `in` as dtype `to` (f32, f16, bf16 or s8); shares the memory if it is that already. kOk or a
// negative code.
int cast_blob(const Layer& layer, const Mat& in, DType to, Mat* out, const Option& opt);

}  // namespace quoll

#endif
