#ifndef QUOLL_LAYER_REORG_H
#define QUOLL_LAYER_REORG_H

#include "layer/common/schema.h"

namespace quoll {

// Each stride x stride patch of a plane becomes as many channels. mode 0: those of one input
// channel lie together; mode 1: those of one place in the patch. What exceeds whole patches is left
// out.
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
