#ifndef QUOLL_LAYER_REORG_H
#define QUOLL_LAYER_REORG_H

#include "layer/common/schema.h"

namespace quoll {

// Each patch of stride x stride pixels of a plane becomes stride^2 channels. With mode 0 those of
// one input channel are neighbours, with mode 1 those of one position in the patch. Pixels beyond
// the last whole patch are left out.
class Reorg : public Operator<Reorg> {
public:
    Reorg();
    static void params(Reorg& s, ParamVisitor& v);
    static void weights(Reorg& s, WeightVisitor& v);
    static int shape(const Reorg& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    unsigned traits() const override { return kMovesValues; }

    int stride;
    int mode;
};

}  // namespace quoll

#endif
