#ifndef QUOLL_LAYER_CONCAT_H
#define QUOLL_LAYER_CONCAT_H

#include "layer/common/schema.h"

namespace quoll {

// Joins the inputs along an axis. All have the same number of axes and the same sizes on the other
// axes; on the axis itself the size of some may be 0.
class Concat : public Operator<Concat> {
public:
    Concat();
    static void params(Concat& s, ParamVisitor& v);
    static void weights(Concat& s, WeightVisitor& v);
    static int shape(const Concat& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    unsigned traits() const override { return kMovesValues; }

    int axis = 0;

protected:
    // True if an input has no values: then the others alone have been joined, with *status.
    bool join_others(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt,
                     int* status) const;
};

}  // namespace quoll

#endif
