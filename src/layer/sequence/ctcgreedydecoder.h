#ifndef QUOLL_LAYER_CTCGREEDYDECODER_H
#define QUOLL_LAYER_CTCGREEDYDECODER_H

#include "layer/common/schema.h"

namespace quoll {

// The best class of each time step, without repetitions and blanks: scores [T, classes] or [batch,
// T, classes] give s32 labels [T] or [batch, T], where the rest of a row is filled with `fill`. The
// second output, if there is one, has the number of labels of each sequence (s32). Among equal
// scores the first class wins.
class CTCGreedyDecoder : public Operator<CTCGreedyDecoder> {
public:
    CTCGreedyDecoder();
    static void params(CTCGreedyDecoder& s, ParamVisitor& v);
    static void weights(CTCGreedyDecoder& s, WeightVisitor& v);
    static int shape(const CTCGreedyDecoder& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;

    int blank_index;     // negative: from the end
    int merge_repeated;  // 1: equal classes of neighbouring steps are one
    int sequence_lens;   // 1: the second input has the steps of each sequence (s32 or f32)
    int fill;

private:
    int decode(const float* scores, int steps, int classes, int* labels) const;
};

}  // namespace quoll

#endif
