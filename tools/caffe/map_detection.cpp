// Layers of detectors, most of them from Caffe's forks.
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "caffe/converter.h"

namespace quoll {

namespace {

void map_normalize(CaffeLayer& l) {
    const caffe::NormalizeParameter& p = l.p.norm_param();
    const Mat scale = l.blob(0);
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("Normalize");
    m.set("across_spatial", (int)p.across_spatial()), m.set("across_channel", 1);
    m.set("channel_shared", (int)p.channel_shared()), m.set("eps", p.eps());
    m.set("scale_data_size", scale.w);
    m.set_weight("scale_data", scale);
}

// Caffe leaves out ratios that it has already, 1 among them, and what flipping gives.
std::vector<float> distinct_ratios(const caffe::PriorBoxParameter& p) {
    std::vector<float> all = {1.f}, ratios;
    const auto known = [&](float v) {
        return std::any_of(all.begin(), all.end(), [=](float a) { return fabsf(a - v) < 1e-6f; });
    };
    for (float ratio : p.aspect_ratio()) {
        if (known(ratio)) continue;
        ratios.push_back(ratio);
        all.push_back(ratio);
        if (p.flip()) all.push_back(1.f / ratio);
    }
    return ratios;
}

void map_prior_box(CaffeLayer& l) {
    const caffe::PriorBoxParameter& p = l.p.prior_box_param();
    if (l.in.size() != 2) return l.fail("expected 2 inputs, a map and the image");
    if (p.min_size_size() == 0) return l.fail("min_size is missing");
    if (p.variance_size() > 1 && p.variance_size() != 4)
        return l.fail("variance: expected 0, 1 or 4 values");
    for (float ratio : p.aspect_ratio())
        if (!(ratio > 0.f)) return l.fail("aspect_ratio: expected positive values");
    ModelLayer& m = l.emit("PriorBox");
    m.set("min_sizes", std::vector<float>(p.min_size().begin(), p.min_size().end()));
    m.set("max_sizes", std::vector<float>(p.max_size().begin(), p.max_size().end()));
    m.set("aspect_ratios", distinct_ratios(p));
    for (int i = 0; i < 4; i++) {
        const float v = p.variance_size() ? p.variance(p.variance_size() > 1 ? i : 0) : 0.1f;
        m.set(("variances[" + std::to_string(i) + "]").c_str(), v);
    }
    m.set("flip", (int)p.flip()), m.set("clip", (int)p.clip());
    const int h = (int)(p.has_img_size() ? p.img_size() : p.img_h());
    const int w = (int)(p.has_img_size() ? p.img_size() : p.img_w());
    m.set("image_width", w ? w : -233), m.set("image_height", h ? h : -233);
    const float step_h = p.has_step() ? p.step() : p.step_h();
    const float step_w = p.has_step() ? p.step() : p.step_w();
    m.set("step_width", step_w > 0 ? step_w : -233.f);
    m.set("step_height", step_h > 0 ? step_h : -233.f);
    m.set("offset", p.offset());
}

void map_detection_output(CaffeLayer& l) {
    const caffe::DetectionOutputParameter& p = l.p.detection_output_param();
    if (l.in.size() < 3) return l.fail("expected 3 inputs: offsets, scores, prior boxes");
    if (!p.share_location()) return l.fail("share_location: expected true");
    if (p.background_label_id() != 0) return l.fail("background_label_id: expected 0");
    if (p.code_type() != caffe::PriorBoxParameter::CENTER_SIZE)
        return l.fail("code_type: expected CENTER_SIZE");
    if (p.variance_encoded_in_target()) return l.fail("variance_encoded_in_target: expected false");
    if (p.nms_param().eta() != 1.f) return l.fail("eta: expected 1");
    ModelLayer& m = l.emit("DetectionOutput");
    m.set("num_class", (int)p.num_classes());
    m.set("nms_threshold", p.nms_param().nms_threshold());
    m.set("nms_top_k", p.nms_param().has_top_k() ? p.nms_param().top_k() : -1);
    m.set("keep_top_k", p.keep_top_k());
    m.set("confidence_threshold",
          p.has_confidence_threshold() ? p.confidence_threshold() : -FLT_MAX);
    l.notes.push_back(
        "gives a row (label, score, xmin, ymin, xmax, ymax) for each box, without Caffe's image "
        "number");
}

void emit_proposal(CaffeLayer& l, const caffe::ProposalParameter& p) {
    if (l.in.size() != 3) return l.fail("expected 3 inputs: scores, offsets, size of the image");
    ModelLayer& m = l.emit("Proposal");
    m.set("feat_stride", (int)p.feat_stride()), m.set("base_size", (int)p.base_size());
    m.set("pre_nms_topN", (int)p.pre_nms_topn()), m.set("after_nms_topN", (int)p.post_nms_topn());
    m.set("nms_thresh", p.nms_thresh()), m.set("min_size", (int)p.min_size());
    // As many as there are; this many at most.
    for (size_t i = 0; i < l.out.size(); i++)
        l.set_shape(l.out[i], Shape(i ? 1 : 4, 1, (int)std::max(1u, p.post_nms_topn())));
    l.notes.push_back("gives a channel x1 y1 x2 y2 for each region, without the image's number");
}

// The engine's anchors are those of Faster R-CNN.
const std::vector<float> kRatios = {0.5f, 1.f, 2.f}, kScales = {8.f, 16.f, 32.f};
const char kAnchors[] = "anchors: expected ratios 0.5, 1, 2 and scales 8, 16, 32";

void map_proposal(CaffeLayer& l) {
    const caffe::ProposalParameter& p = l.p.proposal_param();
    const std::vector<float> ratios(p.ratio().begin(), p.ratio().end());
    const std::vector<float> scales(p.scale().begin(), p.scale().end());
    if ((!ratios.empty() && ratios != kRatios) || (!scales.empty() && scales != kScales))
        return l.fail(kAnchors);
    emit_proposal(l, p);
}

// The numbers of `key: [1, 2, 3]` in YAML, or of a list with a line for each; a tag such as
// !!python/tuple may come first.
std::vector<float> numbers_of(const std::string& text, const char* key) {
    std::vector<float> numbers;
    const size_t colon = text.find(':', text.find(key));
    const size_t at =
        colon == std::string::npos ? colon : text.find_first_of(".0123456789", colon + 1);
    const char* p = at == std::string::npos ? "" : text.c_str() + at;
    for (char* end;; p = end + strspn(end, " ,-\t\r\n")) {
        const float value = strtof(p, &end);
        if (end == p) return numbers;
        numbers.push_back(value);
    }
}

void map_python(CaffeLayer& l) {
    const caffe::PythonParameter& p = l.p.python_param();
    if (p.layer() != "ProposalLayer")
        return l.fail("Python code (" + p.layer() + ") cannot be run");
    const std::string& text = p.param_str();
    if ((text.find("scales") != std::string::npos && numbers_of(text, "scales") != kScales) ||
        (text.find("ratios") != std::string::npos && numbers_of(text, "ratios") != kRatios))
        return l.fail(kAnchors);
    caffe::ProposalParameter param;
    const size_t at = p.param_str().find("feat_stride");
    const size_t colon = at == std::string::npos ? at : p.param_str().find(':', at);
    if (colon != std::string::npos)
        param.set_feat_stride((uint32_t)atoi(p.param_str().c_str() + colon + 1));
    emit_proposal(l, param);
}

// The regions: one item of four values each, as the engine's layers want them.
std::string emit_regions(CaffeLayer& l) {
    if (l.in.size() != 2) {
        l.fail("expected 2 inputs, a map and regions");
        return "";
    }
    const std::string regions = l.between("regions");
    if (l.maker(1) == "Proposal") {  // a channel each
        l.emit("BatchAxis", {l.in[1]}, {regions}, "_regions");
        return regions;
    }
    const Shape s = l.shape(1);
    if (s.dims && s.total() / s.n == 4) return l.in[1];
    if (s.dims && s.total() / s.n != 5) l.fail("regions: expected 4 or 5 values each");
    // In front of the corners is the image's number: there is one.
    emit_reshape(l, l.in[1], l.between("numbered"), "_numbered", {-1});
    ModelLayer& m = l.emit("Crop", {l.between("numbered")}, {regions}, "_regions");
    m.set("starts", std::vector<int>{1}), m.set("ends", std::vector<int>{5});
    m.set("axes", std::vector<int>{0});
    return regions;
}

void map_roi_pooling(CaffeLayer& l) {
    const caffe::ROIPoolingParameter& p = l.p.roi_pooling_param();
    const std::string regions = emit_regions(l);
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("ROIPooling", {l.in[0], regions}, l.out, "");
    m.set("pooled_width", (int)p.pooled_w()), m.set("pooled_height", (int)p.pooled_h());
    m.set("spatial_scale", p.spatial_scale()), m.set("exact_bins", 1);
}

void map_psroi_pooling(CaffeLayer& l) {
    const caffe::PSROIPoolingParameter& p = l.p.psroi_pooling_param();
    const std::string regions = emit_regions(l);
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("PSROIPooling", {l.in[0], regions}, l.out, "");
    m.set("pooled_width", p.group_size()), m.set("pooled_height", p.group_size());
    m.set("spatial_scale", p.spatial_scale()), m.set("output_dim", p.output_dim());
}

template <class Param>
ModelLayer& emit_yolo(CaffeLayer& l, const char* type, const Param& p) {
    ModelLayer& m = l.emit(type);
    m.set("num_class", (int)p.num_classes()), m.set("num_box", (int)p.num_box());
    m.set("confidence_threshold", p.confidence_threshold());
    m.set("nms_threshold", p.nms_threshold());
    m.set("biases", std::vector<float>(p.biases().begin(), p.biases().end()));
    return m;
}

void map_yolo(CaffeLayer& l) {
    if (l.p.yolo_detection_output_param().coords() != 4) return l.fail("coords: expected 4");
    emit_yolo(l, "YoloDetectionOutput", l.p.yolo_detection_output_param());
}

void map_yolov3(CaffeLayer& l) {
    const caffe::Yolov3DetectionOutputParameter& p = l.p.yolov3_detection_output_param();
    ModelLayer& m = emit_yolo(l, "Yolov3DetectionOutput", p);
    m.set("mask", std::vector<float>(p.mask().begin(), p.mask().end()));
    m.set("anchors_scale", std::vector<float>(p.anchors_scale().begin(), p.anchors_scale().end()));
}

void map_reorg(CaffeLayer& l) {
    const caffe::ReorgParameter& p = l.p.reorg_param();
    if (p.reverse()) return l.fail("reverse: expected false");
    ModelLayer& m = l.emit("Reorg");
    m.set("stride", (int)p.stride()), m.set("mode", 1);
}

}  // namespace

CaffeMapper find_detection_mapper(const std::string& type) {
    static const std::pair<const char*, CaffeMapper> kTable[] = {
        {"DetectionOutput", map_detection_output},
        {"Normalize", map_normalize},
        {"PSROIPooling", map_psroi_pooling},
        {"PriorBox", map_prior_box},
        {"Proposal", map_proposal},
        {"Python", map_python},
        {"ROIPooling", map_roi_pooling},
        {"Reorg", map_reorg},
        {"YoloDetectionOutput", map_yolo},
        {"Yolov3DetectionOutput", map_yolov3},
    };
    return find_in(kTable, type);
}

}  // namespace quoll
