// Resampling and boxes.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <algorithm>

#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

struct ResizePlan {
    std::vector<int> axes;  // of the tensor
    std::vector<float> scales;
    std::vector<int64_t> sizes;
    std::vector<float> roi;
    std::vector<Dim> shape;
};

int index_of(const std::string& name, std::initializer_list<const char*> names) {
    int i = 0;
    for (const char* n : names) {
        if (name == n) return i;
        i++;
    }
    return -1;
}

// Scales or sizes that are constants, and the output's sizes.
bool plan_resize(Op& op, Value* x, Value* scales, Value* sizes, ResizePlan* p) {
    const std::vector<int64_t> axes = op.attr_ints("axes");
    for (int64_t a : axes) {
        int axis = 0;
        if (!op.axis(a, x->rank(), &axis)) return false;
        p->axes.push_back(axis);
    }
    if (axes.empty())
        for (int a = 0; a < x->rank(); a++) p->axes.push_back(a);
    p->shape = x->shape;
    const size_t n = p->axes.size();
    if (sizes) {
        if (!sizes->has_content || !all_known(sizes->content))
            return op.fail("sizes are not constant");
        p->sizes = values_of(sizes->content);
        if (p->sizes.size() != n) return op.fail("%zu sizes for %zu axes", p->sizes.size(), n);
        for (size_t i = 0; i < n; i++) p->shape[p->axes[i]] = Dim(p->sizes[i]);
        return true;
    }
    if (!scales || !scales->is_constant()) return op.fail("scales are not constant");
    p->scales = scales->constant->floats();
    if (p->scales.size() != n) return op.fail("%zu scales for %zu axes", p->scales.size(), n);
    for (size_t i = 0; i < n; i++) {
        Dim& d = p->shape[p->axes[i]];
        const float scale = p->scales[i];
        if (!(scale > 0)) return op.fail("a scale of %g", scale);
        if (scale == 1) continue;
        // In f32, as the layer: 10 times 0.7 is 7 there, 6.99999988 in double. A roi changes what
        // is read, not how much is made.
        const float size = floorf((float)d.value * scale);
        if (!(scale < (float)INT_MAX) || (d.known() && !(size < (float)INT_MAX)))
            return op.fail("a scale of %g for a size of %s", scale, op.c.symbols.text(d).c_str());
        char text[32];
        snprintf(text, sizeof(text), "scale%.9g", scale);
        if (d.known())
            d = Dim((int64_t)size);
        else if (scale == floorf(scale))
            d = op.c.symbols.multiply(d, Dim((int64_t)scale));
        else
            d = op.c.symbols.function(text, d);
    }
    return true;
}

// The layer of ncnn where it means the same: images by whole factors or to given sizes.
bool fast_resize(Op& op, Value* x, const ResizePlan& p, const std::string& mode,
                 const std::string& transform, const std::string& nearest) {
    const bool bytes = x->type == ElementType::kInt8 && mode == "nearest";
    if (x->rank() != 4 || (!x->floats() && !bytes) || p.scales.size() != 4 || !p.roi.empty())
        return false;
    if (op.attr("antialias", 0) || op.attr("exclude_outside", 0)) return false;
    if (p.scales[0] != 1.f || p.scales[1] != 1.f) return false;
    const float h = p.scales[2], w = p.scales[3];
    if (h != floorf(h) || w != floorf(w)) return false;
    const bool near = mode == "nearest" && transform == "asymmetric" && nearest == "floor";
    const bool linear =
        mode == "linear" && (transform == "half_pixel" || transform == "pytorch_half_pixel");
    if (!near && !linear) return false;
    const std::string from = op.batched(x);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("Interp", {from});
    layer.set("resize_type", near ? 1 : 2);
    layer.set("height_scale", h);
    layer.set("width_scale", w);
    op.set(0, x->type, p.shape, Form::batched(4), layer.outputs[0]);
    return true;
}

const std::initializer_list<const char*> kTransforms = {
    "half_pixel",         "pytorch_half_pixel",   "align_corners",       "asymmetric",
    "tf_crop_and_resize", "half_pixel_symmetric", "tf_half_pixel_for_nn"};

void set_modes(Op& op, const std::string& mode, const std::string& transform,
               const std::string& nearest, ModelLayer* layer) {
    const std::string policy = op.attr_string("keep_aspect_ratio_policy", "stretch");
    layer->set("mode", index_of(mode, {"nearest", "linear", "cubic"}));
    layer->set("transform", index_of(transform, kTransforms));
    layer->set("nearest_mode",
               index_of(nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
    layer->set("cubic_coeff_a", op.attr_float("cubic_coeff_a", -0.75f));
    layer->set("exclude_outside", (int)op.attr("exclude_outside", 0));
    layer->set("extrapolation_value", op.attr_float("extrapolation_value", 0.f));
    layer->set("antialias", (int)op.attr("antialias", 0));
    layer->set("keep_aspect_ratio_policy",
               std::max(0, index_of(policy, {"stretch", "not_larger", "not_smaller"})));
}

// Integers are interpolated as floats and cut, as ONNX Runtime does.
std::string resized(Op& op, const ModelLayer& layer, ElementType type, const std::string& mode) {
    const std::string out = layer.outputs[0];
    return mode == "nearest" ? out : op.from_f32(out, type);
}

bool emit_resize(Op& op, Value* x, const ResizePlan& p, const std::string& mode,
                 const std::string& transform, const std::string& nearest) {
    if (fast_resize(op, x, p, mode, transform, nearest)) return true;
    // Axis 0 stays as it is in most cases: then the items are images.
    bool batch = x->form.batch && x->rank() <= 5 && p.roi.empty();
    // The one scale of all axes may be that of an axis which stays as it is.
    const bool one_scale =
        !p.sizes.empty() && op.attr_string("keep_aspect_ratio_policy", "stretch") != "stretch";
    std::vector<int> axes;
    std::vector<size_t> used;
    for (size_t i = 0; i < p.axes.size(); i++) {
        const bool changes = p.scales.empty() ? !p.shape[p.axes[i]].known() ||
                                                    !same(p.shape[p.axes[i]], x->shape[p.axes[i]])
                                              : p.scales[i] != 1.f;
        if (p.axes[i] == 0 && (changes || one_scale)) batch = false;
        if (p.axes[i] == 0 && !changes && !one_scale && p.roi.empty()) continue;
        used.push_back(i);
    }
    if (x->rank() > 4 && !batch) return op.fail("rank %d", x->rank());
    const Form form = batch ? Form::batched(x->rank()) : Form::plain(x->rank());
    std::vector<float> scales, roi, ends;
    std::vector<int> sizes;
    for (size_t i : used) {
        axes.push_back(p.axes[i] - (batch ? 1 : 0));
        if (batch && p.axes[i] == 0) return op.fail("a roi of the batch");
        if (!p.scales.empty()) scales.push_back(p.scales[i]);
        if (!p.sizes.empty()) sizes.push_back((int)p.sizes[i]);
        if (!p.roi.empty()) roi.push_back(p.roi[i]), ends.push_back(p.roi[i + p.axes.size()]);
    }
    if (axes.empty()) {
        op.alias(0, x);
        return true;
    }
    roi.insert(roi.end(), ends.begin(), ends.end());
    std::string from = op.blob(x, form);
    if (from.empty()) return false;
    if (mode != "nearest") from = op.as_f32(from, x->type);
    ModelLayer& layer = op.emit("Resize", {from});
    set_modes(op, mode, transform, nearest, &layer);
    layer.set("axes", axes);
    if (!scales.empty()) layer.set("scales", scales);
    if (!sizes.empty()) layer.set("sizes", sizes);
    if (!roi.empty()) layer.set("roi", roi);
    op.set(0, x->type, p.shape, form, resized(op, layer, x->type, mode));
    return true;
}

// Scales or sizes that are known only at run time: inputs of the layer, for all its axes.
bool resize_at_run_time(Op& op, Value* x, Value* scales, Value* sizes, const std::string& mode,
                        const std::string& transform, const std::string& nearest) {
    if (transform == "tf_crop_and_resize" && op.has(1) && !op.in(1)->is_constant())
        return op.fail("roi is not constant");
    std::vector<int> axes = to_ints(op.attr_ints("axes"));
    std::vector<std::string> from = {op.plain(x), op.plain(sizes ? sizes : scales)};
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    if (mode != "nearest") from[0] = op.as_f32(from[0], x->type);
    std::vector<Dim> shape = x->shape;
    for (int a = 0; a < x->rank(); a++)
        if (axes.empty() || std::count(axes.begin(), axes.end(), a) ||
            std::count(axes.begin(), axes.end(), a - x->rank()))
            shape[a] = Dim();
    const bool stretch = op.attr_string("keep_aspect_ratio_policy", "stretch") == "stretch";
    if (sizes && sizes->has_content && axes.empty() && stretch &&
        sizes->content.size() == shape.size())
        shape = sizes->content;
    ModelLayer& layer = op.emit("Resize", from);
    set_modes(op, mode, transform, nearest, &layer);
    layer.set("inputs", sizes ? 4 : 2);
    if (!axes.empty()) layer.set("axes", axes);
    if (transform == "tf_crop_and_resize" && op.has(1))
        layer.set("roi", op.in(1)->constant->floats());
    op.set(0, x->type, shape, Form::plain(x->rank()), resized(op, layer, x->type, mode));
    return true;
}

// not_larger and not_smaller: one scale for all axes.
void keep_aspect(Op& op, const Value* x, ResizePlan* p) {
    const std::string policy = op.attr_string("keep_aspect_ratio_policy", "stretch");
    if (p->sizes.empty() || policy == "stretch") return;
    double scale = 0;
    bool known = true;
    for (size_t i = 0; i < p->axes.size(); i++) {
        known = known && x->shape[p->axes[i]].known();
        const double s = (double)p->sizes[i] / (double)x->shape[p->axes[i]].value;
        if (i == 0) scale = s;
        scale = policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
    }
    for (int a : p->axes)
        p->shape[a] = known ? Dim((int64_t)floor(scale * (double)x->shape[a].value + 0.5)) : Dim();
}

bool resize(Op& op) {
    Value* x = op.in(0);
    ResizePlan p;
    std::string transform = op.attr_string("coordinate_transformation_mode", "half_pixel");
    std::string nearest = op.attr_string("nearest_mode", "round_prefer_floor");
    std::string mode = op.attr_string("mode", "nearest");
    if (op.opset < 11) {
        transform = "asymmetric", nearest = "floor";
        if (!op.in(1)->is_constant())
            return resize_at_run_time(op, x, op.in(1), nullptr, mode, transform, nearest);
        if (!plan_resize(op, x, op.in(1), nullptr, &p)) return false;
        return emit_resize(op, x, p, mode, transform, nearest);
    }
    Value* scales = op.in(2);
    if (scales && scales->is_constant() && scales->constant->count() == 0) scales = nullptr;
    if (op.has(1) && transform == "tf_crop_and_resize") {
        if (!op.in(1)->is_constant()) return op.fail("roi is not constant");
        p.roi = op.in(1)->constant->floats();
    }
    if (index_of(transform, kTransforms) < 0)
        return op.fail("coordinate_transformation_mode %s", transform.c_str());
    Value* sizes = op.in(3);
    if ((scales && !scales->is_constant()) ||
        (sizes && !(sizes->has_content && all_known(sizes->content))))
        return resize_at_run_time(op, x, scales, sizes, mode, transform, nearest);
    if (!plan_resize(op, x, scales, sizes, &p)) return false;
    if (!p.roi.empty() && p.roi.size() != 2 * p.axes.size())
        return op.fail("a roi of %zu values", p.roi.size());
    keep_aspect(op, x, &p);
    return emit_resize(op, x, p, mode, transform, nearest);
}

bool upsample(Op& op) {
    Value *x = op.in(0), *scales = op.in(1);
    if (op.opset < 9) {
        const std::vector<float> given = op.attr_floats("scales");
        Tensor t(ElementType::kFloat, {(int64_t)given.size()});
        for (size_t i = 0; i < given.size(); i++) t.set_float(i, given[i]);
        scales = op.c.add_constant(op.c.unique_value("scales"), t);
    }
    if (!scales->is_constant())
        return resize_at_run_time(op, x, scales, nullptr, op.attr_string("mode", "nearest"),
                                  "asymmetric", "floor");
    ResizePlan p;
    if (!plan_resize(op, x, scales, nullptr, &p)) return false;
    return emit_resize(op, x, p, op.attr_string("mode", "nearest"), "asymmetric", "floor");
}

bool grid_sample(Op& op) {
    Value *x = op.in(0), *grid = op.in(1);
    const std::string mode = op.attr_string("mode", "linear"),
                      pads = op.attr_string("padding_mode", "zeros");
    const int type = mode == "nearest" ? 2 : mode == "cubic" || mode == "bicubic" ? 3 : 1;
    if (x->rank() < 4 || x->rank() > 5 || grid->rank() != x->rank())
        return op.fail("rank %d", x->rank());
    if (x->rank() == 5 && type == 3) return op.fail("cubic in three dimensions");
    const std::string image = op.batched(x), at = op.batched(grid);
    if (image.empty() || at.empty()) return false;
    ModelLayer& layer = op.emit("GridSample", {image, at});
    layer.set("sample_type", type);
    layer.set("padding_mode", pads == "border" ? 2 : pads == "reflection" ? 3 : 1);
    layer.set("align_corner", (int)op.attr("align_corners", 0));
    // Where it says something: ncnn has no such parameter.
    if (type == 2 || pads == "reflection") layer.set("exact", 1);
    std::vector<Dim> shape = {x->shape[0], x->shape[1]};
    shape.insert(shape.end(), grid->shape.begin() + 1, grid->shape.end() - 1);
    op.set(0, x->type, shape, Form::batched(x->rank()), layer.outputs[0]);
    return true;
}

bool affine_grid(Op& op) {
    Value* theta = op.in(0);
    std::vector<int64_t> size;
    if (!op.ints(1, "size", &size)) return false;
    if (size.size() < 4 || size.size() > 5) return op.fail("a size of %zu axes", size.size());
    const std::string from = op.batched(theta);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("AffineGrid", {from});
    layer.set("size", to_ints(size));
    layer.set("align_corners", (int)op.attr("align_corners", 0));
    std::vector<Dim> shape = {Dim(size[0])};
    for (size_t i = 2; i < size.size(); i++) shape.push_back(Dim(size[i]));
    shape.push_back(Dim((int64_t)size.size() - 2));
    op.set(0, theta->type, shape, Form::batched((int)shape.size()), layer.outputs[0]);
    return true;
}

bool roi_align(Op& op) {
    Value *x = op.in(0), *rois = op.in(1), *batch = op.in(2);
    if (x->rank() != 4 || rois->rank() != 2) return op.fail("rank %d", x->rank());
    const std::string image = op.batched(x), boxes = op.plain(rois), items = op.plain(batch);
    if (image.empty() || boxes.empty() || items.empty()) return false;
    const std::string mode = op.attr_string("coordinate_transformation_mode", "half_pixel");
    ModelLayer& layer = op.emit("OnnxROIAlign", {image, boxes, items});
    layer.set("mode", op.attr_string("mode", "avg") == "max" ? 1 : 0);
    layer.set("output_h", (int)op.attr("output_height", 1));
    layer.set("output_w", (int)op.attr("output_width", 1));
    layer.set("sampling_ratio", (int)op.attr("sampling_ratio", 0));
    layer.set("spatial_scale", op.attr_float("spatial_scale", 1.f));
    layer.set("half_pixel", op.opset >= 16 && mode == "half_pixel" ? 1 : 0);
    op.set(0, x->type,
           {rois->shape[0], x->shape[1], Dim(op.attr("output_height", 1)),
            Dim(op.attr("output_width", 1))},
           Form::batched(4), layer.outputs[0]);
    return true;
}

bool non_max_suppression(Op& op) {
    std::vector<std::string> from = {op.plain(op.in(0)), op.plain(op.in(1))};
    float limit[3] = {0.f, 0.f, -1e18f};
    bool constant = true;
    for (int i = 2; i < 5; i++)
        if (op.has(i)) constant &= uniform(op.in(i), &limit[i - 2]);
    if (!constant) {
        for (int i = 2; i < 5; i++) {
            Value* v = op.in(i);
            if (!v) {
                Tensor t =
                    i == 2 ? Tensor::of_ints({0}) : Tensor::of_float(limit[i - 2]).reshaped({1});
                v = op.c.add_constant(op.c.unique_value("limit"), t);
            }
            from.push_back(op.plain(v));
        }
    }
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    ModelLayer& layer = op.emit("NonMaxSuppression", from);
    layer.set("center_point_box", (int)op.attr("center_point_box", 0));
    if (constant) {
        layer.set("max_output_boxes", (int)std::min(limit[0], 2147483520.f));
        layer.set("iou_threshold", limit[1]);
        layer.set("score_threshold", limit[2]);
    }
    op.set(0, ElementType::kInt64, {Dim(), Dim(3)}, Form::plain(2), layer.outputs[0]);
    return true;
}

bool col_to_im(Op& op) {
    Value* x = op.in(0);
    std::vector<int64_t> image, block;
    if (!op.ints(1, "image_shape", &image) || !op.ints(2, "block_shape", &block)) return false;
    const size_t n = image.size();
    if (x->rank() != 3 || n < 1 || n > 3 || block.size() != n) return op.fail("rank %d", x->rank());
    const std::string from = op.batched(x);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("Col2Im", {from});
    layer.set("image", to_ints(image));
    layer.set("kernel", to_ints(block));
    if (op.has_attr("strides")) layer.set("strides", to_ints(op.attr_ints("strides")));
    if (op.has_attr("pads")) layer.set("pads", to_ints(op.attr_ints("pads")));
    if (op.has_attr("dilations")) layer.set("dilations", to_ints(op.attr_ints("dilations")));
    int64_t taps = 1;
    for (int64_t b : block) taps *= std::max<int64_t>(1, b);
    std::vector<Dim> shape = {x->shape[0], op.c.symbols.divide(x->shape[1], Dim(taps))};
    for (int64_t d : image) shape.push_back(Dim(d));
    op.set(0, x->type, shape, Form::batched((int)shape.size()), layer.outputs[0]);
    return true;
}

}  // namespace

OpTable image_ops() {
    return {
        {"", "Resize", 10, 0, resize,
         "constant roi; rank of at most 4 when scales or sizes are not constant",
         RequiredInputs(2, 10, 10)},
        {"", "Upsample", 7, 9, upsample, "rank of at most 4 when scales are not constant",
         RequiredInputs(2, 9)},
        {"", "GridSample", 16, 0, grid_sample, "rank 4, or 5 without cubic", 2},
        {"com.microsoft", "GridSample", 1, 0, grid_sample, "rank 4", 2},
        {"", "AffineGrid", 20, 0, affine_grid, "constant size", 2},
        {"", "RoiAlign", 10, 0, roi_align, "", 3},
        {"", "NonMaxSuppression", 10, 0, non_max_suppression, "", 2},
        {"", "Col2Im", 18, 0, col_to_im, "constant shapes", 3},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
