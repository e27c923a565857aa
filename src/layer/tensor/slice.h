#ifndef QUOLL_LAYER_SLICE_H
#define QUOLL_LAYER_SLICE_H

#include "layer/common/schema.h"

namespace quoll {

// Cuts the input along an axis into as many pieces as there are outputs.
class Slice : public Operator<Slice> {
public:
    Slice();
    static void params(Slice& s, ParamVisitor& v);
    static void weights(Slice& s, WeightVisitor& v);
    static int shape(const Slice& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    unsigned traits() const override { return kMovesValues; }

    // Sizes of the pieces; -233: an equal share of what is left.
    Mat slices;
    int axis = 0;
    // If there are any, they are used in place of slices: where each piece ends (negative: counted
    // from the end); the last piece takes the rest.
    Mat indices;
    // The pieces must be all of the axis, and equal shares equal: an error otherwise.
    int exact = 0;

private:
    int piece_size(int i, int count, int size, int done) const;
};

}  // namespace quoll

#endif
