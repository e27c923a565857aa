#include "layer/sequence/ctcgreedydecoder.h"

#include <limits.h>

#include <algorithm>

namespace quoll {

CTCGreedyDecoder::CTCGreedyDecoder()
    : blank_index(-1), merge_repeated(1), sequence_lens(0), fill(-1) {}

void CTCGreedyDecoder::params(CTCGreedyDecoder& s, ParamVisitor& v) {
    v(0, "blank_index", s.blank_index, -1, "class that stands for nothing, -1: the last");
    v(1, "merge_repeated", s.merge_repeated, 1, "1: a class that stays counts once", between(0, 1));
    v(2, "sequence_lens", s.sequence_lens, 0, "1: input 1 has the steps of each sequence",
      between(0, 1));
    v(3, "fill", s.fill, -1, "value behind the labels");
}

void CTCGreedyDecoder::weights(CTCGreedyDecoder&, WeightVisitor&) {}

int CTCGreedyDecoder::shape(const CTCGreedyDecoder& s, const std::vector<Shape>& in,
                            std::vector<Shape>& out) {
    const size_t inputs = s.sequence_lens ? 2 : 1;
    if (in.size() != inputs) return s.fail("expected %zu inputs, got %zu", inputs, in.size());
    const Shape& x = in[0];
    if ((x.dims != 2 && x.dims != 3) || !accepts_float(s, x.dtype))
        return s.fail("expected scores of 2 or 3 axes of f32, got %s of %s", shape_text(x).c_str(),
                      dtype_name(x.dtype));
    const int64_t blank = s.blank_index < 0 ? (int64_t)x.w + s.blank_index : s.blank_index;
    if (blank < 0 || blank >= x.w)
        return s.fail("blank_index (0): expected %d to %d, got %d", -x.w, x.w - 1, s.blank_index);
    if (inputs == 2 && (in[1].dims != 1 || in[1].w != x.c ||
                        (in[1].dtype != DType::s32 && in[1].dtype != DType::f32)))
        return s.fail("input 1: expected %d lengths of s32 or f32, got %s of %s", x.c,
                      shape_text(in[1]).c_str(), dtype_name(in[1].dtype));
    const size_t outputs = output_count(s, out);
    if (outputs > 2) return s.fail("expected 1 or 2 outputs, got %zu", outputs);
    out.assign(outputs, Shape(x.c, DType::s32));
    out[0] = x.dims == 2 ? Shape(x.h, DType::s32) : Shape(x.h, x.c, DType::s32);
    for (Shape& shape : out) shape.n = x.n;
    return kOk;
}

// Writes the labels of a sequence and returns their number.
int CTCGreedyDecoder::decode(const float* scores, int steps, int classes, int* labels) const {
    const int blank = blank_index < 0 ? classes + blank_index : blank_index;
    int count = 0, before = -1;
    for (int t = 0; t < steps; t++, scores += classes) {
        const int best = (int)(std::max_element(scores, scores + classes) - scores);
        if (best != blank && !(merge_repeated && best == before)) labels[count++] = best;
        before = best;
    }
    return count;
}

int CTCGreedyDecoder::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                              const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottom_blobs, top_blobs, opt));
    const Mat& x = bottom_blobs[0];
    for (int b = 0; b < x.c; b++) {
        int steps = x.h;
        if (sequence_lens) {
            const Mat& lens = bottom_blobs[1];
            const double given = lens.dtype == DType::s32 ? ((const int*)lens.data)[b] : lens[b];
            if (!(given >= 0 && given <= x.h))
                return fail("length %d: expected 0 to %d, got %g", b, x.h, given);
            steps = (int)given;
        }
        int* labels = (int*)top_blobs[0].data + (size_t)b * x.h;
        const int count = decode((const float*)x.data + b * x.cstep, steps, x.w, labels);
        std::fill(labels + count, labels + x.h, fill);
        if (top_blobs.size() > 1) ((int*)top_blobs[1].data)[b] = count;
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(CTCGreedyDecoder)

}  // namespace quoll
