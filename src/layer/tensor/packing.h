#ifndef QUOLL_LAYER_PACKING_H
#define QUOLL_LAYER_PACKING_H

#include "layer/common/schema.h"

namespace quoll {

// The same values with another elempack. If the outermost axis is no multiple of out_elempack, the
// packing stays as it is, or, with use_padding, zeros are added up to the next multiple.
class Packing : public Operator<Packing> {
public:
    Packing();
    static void params(Packing& s, ParamVisitor& v);
    static void weights(Packing& s, WeightVisitor& v);
    static int shape(const Packing& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

    int out_elempack = 1;
    int use_padding = 0;
    int cast_type_from = 0, cast_type_to = 0, storage_type_from = 0, storage_type_to = 0;
};

}  // namespace quoll

#endif
