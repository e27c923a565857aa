#ifndef QUOLL_LAYER_NOOP_H
#define QUOLL_LAYER_NOOP_H

#include "layer/common/schema.h"

namespace quoll {

// Output i is input i, sharing its memory; there may be fewer outputs than inputs.
class Noop : public Operator<Noop> {
public:
    Noop();
    static void params(Noop& s, ParamVisitor& v);
    static void weights(Noop& s, WeightVisitor& v);
    static int shape(const Noop& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    unsigned traits() const override { return kSharesMemory; }
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
};

}  // namespace quoll

#endif
