#include "layer/vision/priorbox.h"

#include <limits.h>
#include <math.h>

#include <algorithm>

namespace quoll {

// Of a size: the image's; of a step: the image's size by the map's.
static const int kFromInput = -233;

PriorBox::PriorBox() {
    support_packing = true;  // only sizes matter
    support_fp16_storage = support_bf16_storage = true;
}

void PriorBox::params(PriorBox& s, ParamVisitor& v) {
    v.floats(0, "min_sizes", s.min_sizes, "sizes of squares", at_least(0));
    v.floats(1, "max_sizes", s.max_sizes, "one a min size, or none", at_least(0));
    v.floats(2, "aspect_ratios", s.aspect_ratios, "width by height", at_least(1e-6));
    v(3, "variances[0]", s.variances[0], 0.1f, "factor of x");
    v(4, "variances[1]", s.variances[1], 0.1f, "factor of y");
    v(5, "variances[2]", s.variances[2], 0.2f, "factor of log w");
    v(6, "variances[3]", s.variances[3], 0.2f, "factor of log h");
    v(7, "flip", s.flip, 1, "1: aspect ratios also reciprocal", between(0, 1));
    v(8, "clip", s.clip, 0, "1: limit to the image", between(0, 1));
    v(9, "image_width", s.image_width, 0, "width of the image, -233: of input 1");
    v(10, "image_height", s.image_height, 0, "height of the image, -233: of input 1");
    v(11, "step_width", s.step_width, -233.f, "pixels a place, -233: image by map");
    v(12, "step_height", s.step_height, -233.f, "pixels a place, -233: image by map");
    v(13, "offset", s.offset, 0.f, "of the centre, in steps");
    v(14, "step_mmdetection", s.step_mmdetection, 0, "1: round steps up", between(0, 1));
    v(15, "center_mmdetection", s.center_mmdetection, 0, "1: centres at offset (step - 1)",
      between(0, 1));
}

void PriorBox::weights(PriorBox&, WeightVisitor&) {}

int PriorBox::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (min_sizes.empty()) return fail("min_sizes: expected at least one");
    if (!max_sizes.empty() && max_sizes.w != min_sizes.w)
        return fail("%d max_sizes for %d min_sizes", max_sizes.w, min_sizes.w);
    return kOk;
}

bool PriorBox::mxnet(size_t inputs) const {
    return inputs == 1 && image_width == kFromInput && image_height == kFromInput &&
           max_sizes.empty();
}

int PriorBox::shape(const PriorBox& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    const bool mxnet = s.mxnet(in.size());
    const bool needs_image = s.image_width == kFromInput || s.image_height == kFromInput;
    if (in.size() != 1 && in.size() != 2)
        return s.fail("expected 1 or 2 inputs, got %zu", in.size());
    if (!mxnet && needs_image && in.size() != 2) return s.fail("the image (input 1) is missing");
    if (!mxnet && ((s.image_width < 1 && s.image_width != kFromInput) ||
                   (s.image_height < 1 && s.image_height != kFromInput)))
        return s.fail("an image of %d x %d", s.image_width, s.image_height);
    const int64_t min_count = s.min_sizes.w, ratios = s.aspect_ratios.w;
    const int64_t priors = mxnet ? min_count + std::max<int64_t>(ratios - 1, 0)
                                 : min_count * (1 + ratios * (s.flip ? 2 : 1)) + s.max_sizes.w;
    const int64_t places = (int64_t)in[0].w * in[0].h;
    if (priors > INT_MAX / 4 || places > INT_MAX / (4 * priors))
        return s.fail("%lld priors on %s are too many", (long long)priors,
                      shape_text(in[0]).c_str());
    const int size = (int)(4 * places * priors);
    out.assign(1, mxnet ? Shape(size) : Shape(size, 2));
    return kOk;
}

std::vector<PriorBox::Size> PriorBox::sizes_caffe() const {
    std::vector<Size> sizes;
    for (int k = 0; k < min_sizes.w; k++) {
        const float size = min_sizes[k];
        sizes.push_back(Size{size, size});
        if (!max_sizes.empty()) {
            const float mean = sqrtf(size * max_sizes[k]);
            sizes.push_back(Size{mean, mean});
        }
        for (int i = 0; i < aspect_ratios.w; i++) {
            const float root = sqrtf(aspect_ratios[i]);
            sizes.push_back(Size{size * root, size / root});
            if (flip) sizes.push_back(Size{size / root, size * root});
        }
    }
    return sizes;
}

std::vector<PriorBox::Size> PriorBox::sizes_mxnet(const Shape& map) const {
    // The map has the image's proportions: sizes are fractions of its height.
    const float by_width = (float)map.h / map.w;
    std::vector<Size> sizes;
    for (int k = 0; k < min_sizes.w; k++)
        sizes.push_back(Size{min_sizes[k] * by_width, min_sizes[k]});
    for (int i = 1; i < aspect_ratios.w; i++) {
        const float root = sqrtf(aspect_ratios[i]);
        sizes.push_back(Size{min_sizes[0] * by_width * root, min_sizes[0] / root});
    }
    return sizes;
}

int PriorBox::forward_caffe(const std::vector<Shape>& in, Mat* top) const {
    const Shape& map = in[0];
    const float image_w = image_width == kFromInput ? in[1].w : image_width;
    const float image_h = image_height == kFromInput ? in[1].h : image_height;
    float step_w = step_width, step_h = step_height;
    if (step_w == kFromInput) step_w = step_mmdetection ? ceilf(image_w / map.w) : image_w / map.w;
    if (step_h == kFromInput) step_h = step_mmdetection ? ceilf(image_h / map.h) : image_h / map.h;
    const float first_x = offset * (center_mmdetection ? step_w - 1 : step_w);
    const float first_y = offset * (center_mmdetection ? step_h - 1 : step_h);
    const std::vector<Size> sizes = sizes_caffe();
    float* p = top->row(0);
    for (int i = 0; i < map.h; i++) {
        for (int j = 0; j < map.w; j++) {
            const float x = first_x + j * step_w, y = first_y + i * step_h;
            for (const Size& s : sizes) {
                *p++ = (x - s.w * 0.5f) / image_w;
                *p++ = (y - s.h * 0.5f) / image_h;
                *p++ = (x + s.w * 0.5f) / image_w;
                *p++ = (y + s.h * 0.5f) / image_h;
            }
        }
    }
    float* variance = top->row(1);
    for (int i = 0; i < top->w; i++) variance[i] = variances[i % 4];
    return kOk;
}

int PriorBox::forward_mxnet(const Shape& map, Mat* top) const {
    const float step_w = step_width == kFromInput ? 1.f / map.w : step_width;
    const float step_h = step_height == kFromInput ? 1.f / map.h : step_height;
    const std::vector<Size> sizes = sizes_mxnet(map);
    float* p = *top;
    for (int i = 0; i < map.h; i++) {
        for (int j = 0; j < map.w; j++) {
            const float x = (offset + j) * step_w, y = (offset + i) * step_h;
            for (const Size& s : sizes) {
                *p++ = x - s.w * 0.5f;
                *p++ = y - s.h * 0.5f;
                *p++ = x + s.w * 0.5f;
                *p++ = y + s.h * 0.5f;
            }
        }
    }
    return kOk;
}

int PriorBox::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    std::vector<Shape> in = shapes_of(bottoms);
    Mat& top = tops[0];
    QUOLL_RETURN_IF_ERROR(mxnet(in.size()) ? forward_mxnet(in[0], &top) : forward_caffe(in, &top));
    float* boxes = top.row(0);
    if (clip)
        for (int i = 0; i < top.w; i++) boxes[i] = std::min(std::max(boxes[i], 0.f), 1.f);
    return kOk;
}

void PriorBox::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>&, const Option&,
                            std::vector<BlobLayout>* out) const {
    (*out)[0].shape.dtype = DType::f32;
}

QUOLL_DEFINE_LAYER(PriorBox)

}  // namespace quoll
