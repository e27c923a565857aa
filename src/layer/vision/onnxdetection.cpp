#include "layer/vision/onnxdetection.h"

#include <limits.h>
#include <math.h>

#include <algorithm>

#include "layer/common/detection.h"
#include "layer/common/scratch.h"

namespace quoll {

void NonMaxSuppression::params(NonMaxSuppression& s, ParamVisitor& v) {
    v(0, "center_point_box", s.center_point_box, 0,
      "0: boxes are y1 x1 y2 x2, 1: centre x, y, width, height", between(0, 1));
    v(1, "max_output_boxes", s.max_output_boxes, 0, "boxes a class to keep", at_least(0));
    v(2, "iou_threshold", s.iou_threshold, 0.f, "boxes that overlap more are dropped",
      between(0, 1));
    v(3, "score_threshold", s.score_threshold, -1e18f, "boxes with no larger score are dropped");
}

int NonMaxSuppression::shape(const NonMaxSuppression& s, const std::vector<Shape>& in,
                             std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 2, 5));
    const Shape &boxes = in[0], &scores = in[1];
    bool fits = boxes.dims == scores.dims && (boxes.dims == 2 || (boxes.dims == 3 && boxes.n == 1));
    fits =
        fits && boxes.c == scores.c && boxes.n == scores.n && boxes.w == 4 && boxes.h == scores.w;
    if (!fits)
        return s.fail("boxes %s and scores %s do not go together", shape_text(boxes).c_str(),
                      shape_text(scores).c_str());
    for (size_t i = 0; i < in.size(); i++) {
        QUOLL_RETURN_IF_ERROR(
            expect_dtype(s, "input", in[i].dtype, i == 2 ? DType::s32 : DType::f32));
        if (i >= 2 && in[i].total() != 1)
            return s.fail("input %zu: expected one value, got %s", i, shape_text(in[i]).c_str());
    }
    out.assign(1, Shape());
    return kOk;
}

static Detection detection_of(const float* box, bool center, float score, int index) {
    if (center) {
        const float w = box[2] / 2, h = box[3] / 2;
        return {box[0] - w, box[1] - h, box[0] + w, box[1] + h, score, index};
    }
    return {std::min(box[1], box[3]),
            std::min(box[0], box[2]),
            std::max(box[1], box[3]),
            std::max(box[0], box[2]),
            score,
            index};
}

int NonMaxSuppression::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                               const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat &boxes = bottoms[0], &scores = bottoms[1];
    const auto number = [&](size_t i, float def) {
        return bottoms.size() > i ? *(const float*)bottoms[i].data : def;
    };
    const int most = bottoms.size() > 2 ? *(const int32_t*)bottoms[2].data : max_output_boxes;
    const float overlap = number(3, iou_threshold), least = number(4, score_threshold);
    const bool batch_is_axis = boxes.dims == 3;
    const int items = batch_is_axis ? boxes.c : boxes.n;
    std::vector<int> rows;
    for (int b = 0; b < items && most > 0; b++) {
        const float* box =
            (const float*)boxes.data + b * (batch_is_axis ? boxes.cstep : boxes.nstep);
        const float* score =
            (const float*)scores.data + b * (batch_is_axis ? scores.cstep : scores.nstep);
        for (int label = 0; label < scores.h; label++, score += scores.w) {
            std::vector<Detection> found;
            for (int i = 0; i < scores.w; i++)
                if (score[i] > least)
                    found.push_back(detection_of(box + i * 4, center_point_box, score[i], i));
            sort_by_score(&found);
            suppress_overlaps(&found, overlap, (size_t)most);
            for (const Detection& d : found) rows.insert(rows.end(), {b, label, d.label});
        }
    }
    QUOLL_RETURN_IF_ERROR(
        create_tensor(Shape(3, (int)(rows.size() / 3), DType::s32), &tops[0], opt));
    std::copy(rows.begin(), rows.end(), (int32_t*)tops[0].data);
    return kOk;
}

// An image, boxes of four numbers and an index of a batch item for each; the output has one item a
// box.
static int boxes_shape(const Layer& layer, const std::vector<Shape>& in, int h, int w,
                       std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(layer, in, 3, 3));
    QUOLL_RETURN_IF_ERROR(expect_dtype(layer, "image", in[0].dtype, DType::f32));
    QUOLL_RETURN_IF_ERROR(expect_dtype(layer, "boxes", in[1].dtype, DType::f32));
    QUOLL_RETURN_IF_ERROR(expect_dtype(layer, "batch indices", in[2].dtype, DType::s32));
    if (in[0].dims != 3 || in[0].total() == 0)
        return layer.fail("image: expected c h w, got %s", shape_text(in[0]).c_str());
    if (in[1].dims != 2 || in[1].w != 4 || in[1].n != 1 || in[2].dims != 1 || in[2].n != 1 ||
        in[1].h != in[2].w)
        return layer.fail("expected rows of 4 and an index for each, got %s and %s",
                          shape_text(in[1]).c_str(), shape_text(in[2]).c_str());
    out.resize(1);
    QUOLL_RETURN_IF_ERROR(shape_of_sizes(layer, {in[0].c, h, w}, DType::f32, &out[0]));
    out[0].n = in[1].h;
    return out[0].total() <= INT_MAX ? (int)kOk : layer.fail("more than %d values", INT_MAX);
}

// The batch items that the indices name.
static int check_items(const Layer& layer, const Mat& indices, int items) {
    for (int i = 0; i < indices.w; i++) {
        const int item = ((const int32_t*)indices.data)[i];
        if (item < 0 || item >= items)
            return layer.fail("batch index %d, expected 0 to %d", item, items - 1);
    }
    return kOk;
}

void CropAndResize::params(CropAndResize& s, ParamVisitor& v) {
    v(0, "crop_h", s.crop_h, 1, "height of the output", at_least(1));
    v(1, "crop_w", s.crop_w, 1, "width of the output", at_least(1));
    v(2, "nearest", s.nearest, 0, "0: bilinear, 1: nearest", between(0, 1));
    v(3, "extrapolation_value", s.extrapolation_value, 0.f, "value outside of the image");
}

int CropAndResize::shape(const CropAndResize& s, const std::vector<Shape>& in,
                         std::vector<Shape>& out) {
    return boxes_shape(s, in, s.crop_h, s.crop_w, out);
}

// Where sample i of `count` between a and b (0 to 1 over `size` pixels) lies.
static float crop_position(float a, float b, int size, int i, int count) {
    if (count == 1) return 0.5f * (a + b) * (float)(size - 1);
    const float step = (b - a) * (float)(size - 1) / (float)(count - 1);
    return a * (float)(size - 1) + (float)i * step;
}

int CropAndResize::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                           const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& image = bottoms[0];
    Mat& top = tops[0];
    QUOLL_RETURN_IF_ERROR(check_items(*this, bottoms[2], image.n));
    for (int b = 0; b < top.n; b++) {
        const float* box = bottoms[1].row(b);
        const float* item =
            (const float*)image.data + ((const int32_t*)bottoms[2].data)[b] * image.nstep;
        for (int i = 0; i < crop_h * crop_w; i++) {
            const float y = crop_position(box[0], box[2], image.h, i / crop_w, crop_h);
            const float x = crop_position(box[1], box[3], image.w, i % crop_w, crop_w);
            const bool inside =
                y >= 0 && y <= (float)(image.h - 1) && x >= 0 && x <= (float)(image.w - 1);
            const int y0 = inside ? (int)y : 0, x0 = inside ? (int)x : 0;
            const int y1 = std::min(y0 + 1, image.h - 1), x1 = std::min(x0 + 1, image.w - 1);
            for (int q = 0; q < image.c; q++) {
                const float* p = item + q * image.cstep;
                const auto at = [&](int v, int u) { return p[(size_t)v * image.w + u]; };
                const float fy = y - (float)y0, fx = x - (float)x0;
                float value = extrapolation_value;
                if (inside && nearest)
                    value = at((int)roundf(y), (int)roundf(x));
                else if (inside)
                    value = (at(y0, x0) * (1 - fx) + at(y0, x1) * fx) * (1 - fy) +
                            (at(y1, x0) * (1 - fx) + at(y1, x1) * fx) * fy;
                ((float*)top.data)[b * top.nstep + q * top.cstep + i] = value;
            }
        }
    }
    return kOk;
}

void OnnxROIAlign::params(OnnxROIAlign& s, ParamVisitor& v) {
    v(0, "mode", s.mode, 0, "0: mean of the samples, 1: the largest", between(0, 1));
    v(1, "output_h", s.output_h, 1, "bins along h", at_least(1));
    v(2, "output_w", s.output_w, 1, "bins along w", at_least(1));
    v(3, "sampling_ratio", s.sampling_ratio, 0, "samples along each side of a bin, 0: its size",
      between(0, 1024));
    v(4, "spatial_scale", s.spatial_scale, 1.f, "from coordinates to pixels");
    v(5, "half_pixel", s.half_pixel, 1, "1: half_pixel, 0: output_half_pixel", between(0, 1));
}

int OnnxROIAlign::shape(const OnnxROIAlign& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    return boxes_shape(s, in, s.output_h, s.output_w, out);
}

int OnnxROIAlign::region_of(const float* corners, const Mat& image, Region* region) const {
    const double offset = half_pixel ? 0.5 : 0.0, scale = spatial_scale;
    region->x = corners[0] * scale - offset;
    region->y = corners[1] * scale - offset;
    double w = corners[2] * scale - offset - region->x, h = corners[3] * scale - offset - region->y;
    if (!half_pixel) w = std::max(w, 1.0), h = std::max(h, 1.0);
    region->bin_w = w / output_w, region->bin_h = h / output_h;
    // A region many times as large as the image contains nothing useful, but would take for ever.
    const double most = 16.0 * std::max(image.w, image.h) + 16;
    if (!(fabs(region->bin_w) <= most && fabs(region->bin_h) <= most && fabs(region->x) < INT_MAX &&
          fabs(region->y) < INT_MAX))
        return fail("region %g %g %g %g is far larger than the image", corners[0], corners[1],
                    corners[2], corners[3]);
    region->grid_w = sampling_ratio ? sampling_ratio : (int)ceil(region->bin_w);
    region->grid_h = sampling_ratio ? sampling_ratio : (int)ceil(region->bin_h);
    return kOk;
}

// The four pixels around a point and their weights; none for a point more than a pixel outside.
struct Sample {
    size_t at[4];
    double weight[4];
    Sample(double y, double x, int h, int w) : at{0, 0, 0, 0}, weight{0, 0, 0, 0} {
        if (y < -1 || y > h || x < -1 || x > w) return;
        y = std::max(y, 0.0), x = std::max(x, 0.0);
        int y0 = (int)y, x0 = (int)x;
        if (y0 >= h - 1) y = y0 = h - 1;
        if (x0 >= w - 1) x = x0 = w - 1;
        const int y1 = std::min(y0 + 1, h - 1), x1 = std::min(x0 + 1, w - 1);
        const double fy = y - y0, fx = x - x0;
        at[0] = (size_t)y0 * w + x0, weight[0] = (1 - fy) * (1 - fx);
        at[1] = (size_t)y0 * w + x1, weight[1] = (1 - fy) * fx;
        at[2] = (size_t)y1 * w + x0, weight[2] = fy * (1 - fx);
        at[3] = (size_t)y1 * w + x1, weight[3] = fy * fx;
    }
};

void OnnxROIAlign::pool_bin(const float* item, const Mat& image, const Region& r, int y, int x,
                            float* out, size_t out_step) const {
    Scratch<Sample> samples;  // the same for all channels
    for (int i = 0; i < r.grid_h; i++)
        for (int j = 0; j < r.grid_w; j++)
            samples->push_back(Sample(r.y + y * r.bin_h + (i + 0.5) * r.bin_h / r.grid_h,
                                      r.x + x * r.bin_w + (j + 0.5) * r.bin_w / r.grid_w, image.h,
                                      image.w));
    const double count = std::max((double)samples->size(), 1.0);
    for (int q = 0; q < image.c; q++) {
        const float* plane = item + q * image.cstep;
        double sum = 0, most = samples->empty() ? 0 : -INFINITY;
        for (const Sample& s : *samples) {
            for (int k = 0; k < 4; k++) {
                const double value = s.weight[k] * plane[s.at[k]];
                sum += value;
                most = std::max(most, value);
            }
        }
        out[q * out_step] = (float)(mode == 1 ? most : sum / count);
    }
}

int OnnxROIAlign::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                          const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& image = bottoms[0];
    Mat& top = tops[0];
    QUOLL_RETURN_IF_ERROR(check_items(*this, bottoms[2], image.n));
    for (int b = 0; b < top.n; b++) {
        Region region;
        QUOLL_RETURN_IF_ERROR(region_of(bottoms[1].row(b), image, &region));
        const float* item =
            (const float*)image.data + ((const int32_t*)bottoms[2].data)[b] * image.nstep;
        for (int i = 0; i < output_h * output_w; i++)
            pool_bin(item, image, region, i / output_w, i % output_w,
                     (float*)top.data + b * top.nstep + i, top.cstep);
    }
    return kOk;
}

void AffineGrid::params(AffineGrid& s, ParamVisitor& v) {
    v.ints(0, "size", s.size, "n c h w or n c d h w of the output; n and c are not read",
           at_least(1));
    v(1, "align_corners", s.align_corners, 0, "1: -1 and 1 are the centres of the outermost pixels",
      between(0, 1));
}

int AffineGrid::grid(const Shape& theta, const std::vector<int>& sizes, Shape* out) const {
    const int axes = (int)sizes.size() - 2;
    if ((axes != 2 && axes != 3) || theta.dims != 2 || theta.w != axes + 1 || theta.h != axes)
        return fail("theta %s and %zu sizes do not go together", shape_text(theta).c_str(),
                    sizes.size());
    std::vector<int> all(sizes.begin() + 2, sizes.end());
    for (int size : all)
        if (size < 1) return fail("size: expected at least 1, got %d", size);
    all.push_back(axes);
    return shape_of_sizes(*this, all, DType::f32, out);
}

int AffineGrid::shape(const AffineGrid& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 2));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "theta", in[0].dtype, DType::f32));
    out.assign(1, Shape());
    if (s.size.empty() == (in.size() == 1))
        return s.fail("expected a size as parameter or as second input, one of them");
    if (in.size() == 1) return s.grid(in[0], ints_of_param(s.size), &out[0]);
    return expect_dtype(s, "size", in[1].dtype, DType::s32);
}

int AffineGrid::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    std::vector<int> sizes = ints_of_param(size);
    if (bottoms.size() == 2) QUOLL_RETURN_IF_ERROR(read_ints(*this, "size", bottoms[1], 5, &sizes));
    const Mat& theta = bottoms[0];
    Shape out;
    QUOLL_RETURN_IF_ERROR(grid(theta.logical_shape(), sizes, &out));
    QUOLL_RETURN_IF_ERROR(create_tensor(out, &tops[0], opt));
    const int axes = theta.h;
    // x, y and z are the output's axes from the second innermost on.
    const Axes4 over = axes_of(tops[0]);
    const auto position = [&](int i, int count) {
        if (align_corners) return count > 1 ? -1.0 + 2.0 * i / (count - 1) : -1.0;
        return (2.0 * i + 1) / count - 1;
    };
    int at[3];  // z, y, x
    for (at[0] = 0; at[0] < over.size[0]; at[0]++) {
        for (at[1] = 0; at[1] < over.size[1]; at[1]++) {
            for (at[2] = 0; at[2] < over.size[2]; at[2]++) {
                float* to = (float*)tops[0].data + at[0] * over.step[0] + at[1] * over.step[1] +
                            at[2] * over.step[2];
                for (int row = 0; row < axes; row++) {
                    const float* t = theta.row(row);
                    double sum = t[axes];
                    for (int k = 0; k < axes; k++)
                        sum += t[k] * position(at[2 - k], over.size[2 - k]);
                    to[row] = (float)sum;
                }
            }
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(NonMaxSuppression)
QUOLL_DEFINE_LAYER(CropAndResize)
QUOLL_DEFINE_LAYER(OnnxROIAlign)
QUOLL_DEFINE_LAYER(AffineGrid)

}  // namespace quoll
