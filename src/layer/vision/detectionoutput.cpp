#include "layer/vision/detectionoutput.h"

#include <math.h>

#include "layer/common/detection.h"

namespace quoll {

static const int kMxnet = -233;

DetectionOutput::DetectionOutput() {}

void DetectionOutput::params(DetectionOutput& s, ParamVisitor& v) {
    v(0, "num_class", s.num_class, 0, "classes with background; -233: MXNet's form",
      at_least(kMxnet));
    v(1, "nms_threshold", s.nms_threshold, 0.05f, "greatest intersection over union");
    v(2, "nms_top_k", s.nms_top_k, 300, "boxes of a class before suppression, negative: all");
    v(3, "keep_top_k", s.keep_top_k, 100, "boxes in the end, negative: all");
    v(4, "confidence_threshold", s.confidence_threshold, 0.5f, "scores must be above");
    v(5, "variances[0]", s.variances[0], 0.1f, "factor of x (MXNet's form)");
    v(6, "variances[1]", s.variances[1], 0.1f, "factor of y");
    v(7, "variances[2]", s.variances[2], 0.2f, "factor of log w");
    v(8, "variances[3]", s.variances[3], 0.2f, "factor of log h");
}

void DetectionOutput::weights(DetectionOutput&, WeightVisitor&) {}

int DetectionOutput::shape(const DetectionOutput& s, const std::vector<Shape>& in,
                           std::vector<Shape>& out) {
    if (in.size() != 3) return s.fail("expected 3 inputs, got %zu", in.size());
    const Shape& priors = in[2];
    const bool mxnet = s.num_class == kMxnet;
    for (const Shape& shape : in)
        if (shape.dtype != DType::f32)
            return s.fail("expected f32, got %s", dtype_name(shape.dtype));
    if (priors.dims != 2 || (mxnet ? priors.w != 4 : priors.w % 4 != 0 || priors.h < 2))
        return s.fail("priors: expected %s, got %s", mxnet ? "4 x priors" : "4 priors x 2",
                      shape_text(priors).c_str());
    const size_t count = mxnet ? priors.h : priors.w / 4;
    const size_t classes = mxnet ? in[1].h : s.num_class;
    if (!mxnet && s.num_class < 0) return s.fail("num_class: got %d", s.num_class);
    if (in[0].total() < count * 4 || in[1].total() < count * classes)
        return s.fail("%zu priors of %zu classes need %zu locations and %zu scores, got %s and %s",
                      count, classes, count * 4, count * classes, shape_text(in[0]).c_str(),
                      shape_text(in[1]).c_str());
    out.assign(1, Shape());  // as many rows as there are boxes
    return kOk;
}

// The box of a prior (corners), moved by a location (centre, log size) in units of the prior's
// size.
static Detection decode(const float* prior, const float* location, const float* variance) {
    const float w = prior[2] - prior[0], h = prior[3] - prior[1];
    const float x = variance[0] * location[0] * w + (prior[0] + prior[2]) * 0.5f;
    const float y = variance[1] * location[1] * h + (prior[1] + prior[3]) * 0.5f;
    const float half_w = expf(variance[2] * location[2]) * w * 0.5f;
    const float half_h = expf(variance[3] * location[3]) * h * 0.5f;
    return Detection{x - half_w, y - half_h, x + half_w, y + half_h, 0.f, 0};
}

int DetectionOutput::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                             const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    const bool mxnet = num_class == kMxnet;
    const Mat& priors = bottoms[2];
    const int count = mxnet ? priors.h : priors.w / 4;
    const int classes = mxnet ? bottoms[1].h : num_class;
    const Mat locations = bottoms[0].reshape((int)in[0].total(), opt.workspace_allocator);
    const Mat scores = bottoms[1].reshape((int)in[1].total(), opt.workspace_allocator);
    if (locations.empty() || scores.empty()) return kOutOfMemory;
    std::vector<Detection> decoded;
    for (int i = 0; i < count; i++)
        decoded.push_back(decode(priors.row(mxnet ? i : 0) + (mxnet ? 0 : i * 4),
                                 (const float*)locations + i * 4,
                                 mxnet ? variances : priors.row(1) + i * 4));
    std::vector<Detection> all;
    for (int label = 1; label < classes; label++) {
        std::vector<Detection> boxes;
        for (int i = 0; i < count; i++) {
            const float score =
                scores[mxnet ? (size_t)label * count + i : (size_t)i * classes + label];
            if (!(score > confidence_threshold)) continue;
            boxes.push_back(decoded[i]);
            boxes.back().score = score;
            boxes.back().label = label;
        }
        sort_by_score(&boxes);
        keep_first(&boxes, nms_top_k);
        suppress_overlaps(&boxes, nms_threshold);
        all.insert(all.end(), boxes.begin(), boxes.end());
    }
    sort_by_score(&all);
    keep_first(&all, keep_top_k);
    tops.resize(1);
    return detections_to_blob(all, &tops[0], opt.blob_allocator);
}

QUOLL_DEFINE_LAYER(DetectionOutput)

}  // namespace quoll
