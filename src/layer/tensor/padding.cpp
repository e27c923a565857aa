#include "layer/tensor/padding.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "layer/common/blocks.h"
#include "layer/common/tensor.h"

namespace quoll {

Padding::Padding() { support_fp16_storage = support_bf16_storage = true; }

void Padding::params(Padding& s, ParamVisitor& v) {
    v(0, "top", s.top, 0, "rows before, -233: see input 1", at_least(-234));
    v(1, "bottom", s.bottom, 0, "rows behind", at_least(-234));
    v(2, "left", s.left, 0, "columns before", at_least(-234));
    v(3, "right", s.right, 0, "columns behind", at_least(-234));
    v(4, "type", s.type, 0, "0: constant, 1: replicate, 2: reflect", between(0, 2));
    v(5, "value", s.value, 0.f, "value of a constant border");
    v(6, "per_channel_pad_data_size", s.per_channel_pad_data_size, 0, "values, one a channel",
      at_least(0));
    v(7, "front", s.front, 0, "channels (3 axes) or depths (4 axes) before", at_least(-234));
    v(8, "behind", s.behind, 0, "channels or depths behind", at_least(-234));
}

void Padding::weights(Padding& s, WeightVisitor& v) {
    v(s.per_channel_pad_data_size > 0, "per_channel_pad_data", s.per_channel_pad_data,
      s.per_channel_pad_data_size, WeightKind::kRaw, "[per_channel_pad_data_size]");
}

static bool from_input(int width) { return width == -233 || width == -234; }

bool Padding::dynamic() const {
    return from_input(top) && from_input(bottom) && from_input(left) && from_input(right);
}

int Padding::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (dynamic()) return kOk;
    for (int width : {top, bottom, left, right, front, behind})
        if (width < 0) return fail("a border of %d", width);
    return kOk;
}

int Padding::padded_shape(const Shape& in, const int* values, Widths* widths, Shape* out) const {
    const int fixed[] = {top, bottom, left, right, front, behind};
    const int* p = values ? values : fixed;
    *widths = Widths();
    *out = in;
    for (int i = 0; i < in.dims; i++) {
        const int inner = in.dims - 1 - i;  // 0: w, 1: h, 2: c of 3 axes or d of 4
        if (inner == 3) continue;
        static const int first[] = {2, 0, 4};
        const int before = p[first[inner]], behind = p[first[inner] + 1], size = in.size(i);
        if (before < 0 || behind < 0 || (int64_t)before + behind + size > INT_MAX)
            return fail("axis %d of size %d with borders of %d and %d", i, size, before, behind);
        if (type == kReflect && std::max(before, behind) > std::max(size - 1, 0))
            return fail("axis %d of size %d cannot be reflected to borders of %d and %d", i, size,
                        before, behind);
        if (type == kReplicate && size == 0 && before + behind > 0)
            return fail("axis %d is empty: no values to repeat in borders of %d and %d", i, before,
                        behind);
        widths->before[i] = before;
        widths->behind[i] = behind;
        out->set_size(i, before + size + behind);
    }
    if (per_channel_pad_data_size > 0 && type == kConstant && in.dims >= 3 &&
        per_channel_pad_data_size != out->c)
        return fail("%d pad values for %d channels", per_channel_pad_data_size, out->c);
    return kOk;
}

int Padding::shape(const Padding& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    const size_t expected = s.dynamic() ? 2 : 1;
    if (in.size() != expected) return s.fail("expected %zu inputs, got %zu", expected, in.size());
    out.assign(1, Shape());
    if (s.dynamic()) return kOk;  // known only when it runs
    Widths widths;
    return s.padded_shape(in[0], nullptr, &widths, &out[0]);
}

int Padding::widths_from(const std::vector<Mat>& bottoms, const int** values) const {
    const size_t expected = dynamic() ? 2 : 1;
    if (bottoms.size() != expected)
        return fail("expected %zu inputs, got %zu", expected, bottoms.size());
    *values = nullptr;
    if (!dynamic()) return kOk;
    const Shape shape = bottoms[1].logical_shape();
    if (shape.dims != 1 || shape.w < 6 || shape.dtype != DType::s32)
        return fail("input 1: expected 6 s32 values, got %s of %s", shape_text(shape).c_str(),
                    dtype_name(shape.dtype));
    *values = bottoms[1];
    return kOk;
}

std::vector<int> Padding::source_indexes(int size, int before, int behind, int type) {
    std::vector<int> source(before + size + behind);
    for (int i = 0; i < (int)source.size(); i++) {
        const int at = i - before, last = size - 1;
        if (type == Padding::kReplicate)
            source[i] = std::min(std::max(at, 0), last);
        else if (type == Padding::kReflect)
            source[i] = last - abs(last - abs(at));
        else
            source[i] = at < 0 || at > last ? -1 : at;
    }
    return source;
}

void Padding::constant_of(int channel, const Shape& out, unsigned char bytes[4]) const {
    const bool own = per_channel_pad_data_size > 0 && type == kConstant && out.dims >= 3;
    const float v = own ? per_channel_pad_data[channel] : value;
    const DType dtype = out.dtype;
    const float limited = std::min(std::max(v, -2147483648.f), 2147483520.f);
    const int whole = limited == limited ? (int)limited : 0;
    if (dtype == DType::f32) memcpy(bytes, &v, 4);
    if (dtype == DType::s32) memcpy(bytes, &whole, 4);
    if (dtype == DType::s8) bytes[0] = (unsigned char)std::min(std::max(whole, -128), 127);
    if (dtype == DType::u8) bytes[0] = (unsigned char)std::min(std::max(whole, 0), 255);
    const unsigned short half =
        dtype == DType::f16 ? float32_to_float16(v) : float32_to_bfloat16(v);
    if (dtype == DType::f16 || dtype == DType::bf16) memcpy(bytes, &half, 2);
}

int Padding::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    const int* values;
    QUOLL_RETURN_IF_ERROR(widths_from(bottoms, &values));
    const Mat& in = bottoms[0];
    Widths widths;
    Shape shape;
    QUOLL_RETURN_IF_ERROR(padded_shape(in.logical_shape(), values, &widths, &shape));
    tops.resize(1);
    if (shape == in.logical_shape()) {
        tops[0] = in;
        return kOk;
    }
    Mat& out = tops[0];
    QUOLL_RETURN_IF_ERROR(create_tensor(shape, &out, opt));
    if (out.empty()) return kOk;
    const Axes4 from = axes_of(in), into = axes_of(out);
    std::vector<int> source[4];
    for (int i = 0; i < 4; i++) {
        const int axis = i - axis_of_four(0, in.dims);
        source[i] = source_indexes(from.size[i], axis < 0 ? 0 : widths.before[axis],
                                   axis < 0 ? 0 : widths.behind[axis], type);
    }
    // Columns first to last of a row are as in the input.
    const int before = widths.before[in.dims - 1];
    const int first = std::min(std::max(before, 0), into.size[3]);
    const int last = std::max(first, std::min(before + from.size[3], into.size[3]));
    const size_t es = in.elemsize;
    for (int i = 0; i < into.size[0]; i++) {
        for (int j = 0; j < into.size[1]; j++) {
            unsigned char constant[4] = {};
            constant_of(in.dims == 4 ? i : j, shape, constant);
            for (int k = 0; k < into.size[2]; k++) {
                const int a = source[0][i], b = source[1][j], c = source[2][k];
                const bool outside = a < 0 || b < 0 || c < 0;
                const char* row =
                    (const char*)in.data +
                    (outside ? 0 : a * from.step[0] + b * from.step[1] + c * from.step[2]) * es;
                char* to =
                    (char*)out.data + (i * into.step[0] + j * into.step[1] + k * into.step[2]) * es;
                const auto fill = [&](int begin, int end) {
                    for (int l = begin; l < end; l++) {
                        const int x = source[3][l];
                        const void* p = outside || x < 0 ? (const void*)constant : row + x * es;
                        memcpy(to + l * es, p, es);
                    }
                };
                fill(0, outside ? into.size[3] : first);
                if (outside) continue;
                if (last > first)
                    memcpy(to + first * es, row + (first - before) * es, (last - first) * es);
                fill(last, into.size[3]);
            }
        }
    }
    return kOk;
}

int Padding::forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                           const Option& opt) const {
    return Padding::forward(bottoms, tops, opt);
}

QUOLL_DEFINE_LAYER(Padding)

}  // namespace quoll
