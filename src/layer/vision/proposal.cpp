#include "layer/vision/proposal.h"

#include <math.h>

#include <algorithm>

namespace quoll {

static const int kAnchors = 9;

Proposal::Proposal() {}

void Proposal::params(Proposal& s, ParamVisitor& v) {
    v(0, "feat_stride", s.feat_stride, 16, "image pixels from one position to the next",
      at_least(1));
    v(1, "base_size", s.base_size, 16, "side of the anchor of scale 1", at_least(1));
    v(2, "pre_nms_topN", s.pre_nms_topN, 6000, "boxes before suppression, 0: all", at_least(0));
    v(3, "after_nms_topN", s.after_nms_topN, 300, "boxes in the end", at_least(1));
    v(4, "nms_thresh", s.nms_thresh, 0.7f, "greatest intersection over union");
    v(5, "min_size", s.min_size, 16, "least side of a box before the image was scaled");
}

void Proposal::weights(Proposal&, WeightVisitor&) {}

int Proposal::shape(const Proposal& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 3) return s.fail("expected 3 inputs, got %zu", in.size());
    for (const Shape& shape : in)
        if (shape.dtype != DType::f32)
            return s.fail("expected f32, got %s", dtype_name(shape.dtype));
    if (in[0].dims != 3 || in[0].c != 2 * kAnchors)
        return s.fail("scores: expected w x h x %d, got %s", 2 * kAnchors,
                      shape_text(in[0]).c_str());
    if (in[1].dims != 3 || in[1].c != 4 * kAnchors || in[1].w != in[0].w || in[1].h != in[0].h)
        return s.fail("moves: expected %d x %d x %d, got %s", in[0].w, in[0].h, 4 * kAnchors,
                      shape_text(in[1]).c_str());
    if (in[2].dims < 1 || (int64_t)in[2].w * in[2].h < 3)
        return s.fail("image: expected height, width and scale, got %s", shape_text(in[2]).c_str());
    out.assign(output_count(s, out), Shape());  // as many channels as there are boxes
    return kOk;
}

// As in ncnn, sides are rounded to whole pixels before they are scaled.
std::vector<Proposal::Anchor> Proposal::anchors() const {
    std::vector<Anchor> list;
    const float centre = base_size * 0.5f;
    for (float ratio : {0.5f, 1.f, 2.f}) {
        const float w = roundf(base_size / sqrtf(ratio)), h = roundf(w * ratio);
        for (float scale : {8.f, 16.f, 32.f})
            list.push_back(
                Anchor{centre - w * scale * 0.5f, centre - h * scale * 0.5f, w * scale, h * scale});
    }
    return list;
}

// moves: 4 channels of box deltas; image: height, width, scale.
void Proposal::boxes_of(const Anchor& anchor, const Mat& moves, const float* scores,
                        const float* image, std::vector<Detection>* boxes) const {
    const float right = image[1] - 1, bottom = image[0] - 1, least = min_size * image[2];
    const auto within = [](float x, float end) { return std::max(std::min(x, end), 0.f); };
    for (int y = 0; y < moves.h; y++)
        for (int x = 0; x < moves.w; x++) {
            const size_t i = (size_t)y * moves.w + x;
            const float* move = (const float*)moves.data + i;
            const float cx =
                anchor.x + (float)feat_stride * x + anchor.w * 0.5f + anchor.w * move[0];
            const float cy =
                anchor.y + (float)feat_stride * y + anchor.h * 0.5f + anchor.h * move[moves.cstep];
            const float half_w = anchor.w * expf(move[2 * moves.cstep]) * 0.5f;
            const float half_h = anchor.h * expf(move[3 * moves.cstep]) * 0.5f;
            const Detection box = {within(cx - half_w, right),
                                   within(cy - half_h, bottom),
                                   within(cx + half_w, right),
                                   within(cy + half_h, bottom),
                                   scores[i],
                                   0};
            const bool large = box.xmax - box.xmin + 1 >= least && box.ymax - box.ymin + 1 >= least;
            if (large && !isnan(box.score)) boxes->push_back(box);
        }
}

// One channel of w values per box.
static int boxes_to_blob(const std::vector<Detection>& boxes, int w, Mat* out, const Option& opt) {
    out->release();
    if (boxes.empty()) {
        out->dims = 3, out->w = w, out->h = out->d = 1, out->c = 0;
        out->elemsize = 4, out->elempack = 1;
        return kOk;
    }
    out->create(w, 1, (int)boxes.size(), 4u, opt.blob_allocator);
    if (out->empty()) return kOutOfMemory;
    for (int i = 0; i < out->c; i++) {
        const Detection& b = boxes[i];
        const float corners[] = {b.xmin, b.ymin, b.xmax, b.ymax};
        float* to = out->channel(i);
        std::copy(w == 1 ? &b.score : corners, (w == 1 ? &b.score : corners) + w, to);
    }
    return kOk;
}

int Proposal::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& top_blobs,
                      const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out(top_blobs.size());
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    if (out.size() > 2) return fail("expected 1 or 2 outputs, got %zu", out.size());
    const std::vector<Anchor> list = anchors();
    std::vector<Detection> boxes;
    for (int q = 0; q < kAnchors; q++)
        boxes_of(list[q], bottoms[1].channel_range(4 * q, 4), bottoms[0].channel(kAnchors + q),
                 bottoms[2], &boxes);
    sort_by_score(&boxes);
    keep_first(&boxes, pre_nms_topN > 0 ? pre_nms_topN : -1);
    suppress_overlaps(&boxes, nms_thresh);
    keep_first(&boxes, after_nms_topN);
    top_blobs.resize(out.size());
    QUOLL_RETURN_IF_ERROR(boxes_to_blob(boxes, 4, &top_blobs[0], opt));
    return top_blobs.size() == 2 ? boxes_to_blob(boxes, 1, &top_blobs[1], opt) : (int)kOk;
}

QUOLL_DEFINE_LAYER(Proposal)

}  // namespace quoll
