// Layers that move values and give blobs other shapes.
#include <algorithm>

#include "caffe/converter.h"
#include "layer/tensor/permute.h"

namespace quoll {

void set_sizes(CaffeLayer& l, ModelLayer& m, const std::vector<int64_t>& sizes) {
    static const char* const kNames[4][4] = {
        {"w"}, {"h", "w"}, {"c", "h", "w"}, {"c", "d", "h", "w"}};
    if (sizes.empty() || sizes.size() > 4)
        return l.fail("a blob of " + std::to_string(sizes.size()) +
                      " axes besides the batch; expected 1 to 4");
    for (size_t i = 0; i < sizes.size(); i++) {
        if (sizes[i] > 0x7fffffff || sizes[i] < -1) return l.fail("a size is out of range");
        m.set(kNames[sizes.size() - 1][i], (int)sizes[i]);
    }
}

void emit_reshape(CaffeLayer& l, const std::string& from, const std::string& to,
                  const std::string& suffix, const std::vector<int64_t>& sizes) {
    set_sizes(l, l.emit("Reshape", {from}, {to}, suffix), sizes);
}

namespace {

// The size of an input as Caffe has it, the batch in front; empty when it is not known.
std::vector<int64_t> caffe_shape(const Shape& s) {
    std::vector<int64_t> sizes;
    if (s.dims) sizes.push_back(s.n);
    for (int a = 0; a < s.dims; a++) sizes.push_back(s.size(a));
    return sizes;
}

void map_input(CaffeLayer& l) {
    const caffe::InputParameter& p = l.p.input_param();
    const int shapes = p.shape_size(), outputs = (int)l.out.size();
    if (shapes > 1 && shapes != outputs)
        return l.fail("expected 0, 1 or " + std::to_string(outputs) + " shapes");
    for (int i = 0; i < outputs; i++) {
        ModelLayer& m = l.emit("Input", {}, {l.out[i]}, i ? "_" + std::to_string(i) : "");
        if (!shapes) continue;
        const caffe::BlobShape& s = p.shape(shapes > 1 ? i : 0);
        std::vector<int64_t> sizes(s.dim().begin(), s.dim().end());
        const int64_t items = sizes.size() > 1 ? sizes[0] : 1;
        if (items < 1 || items > 0x7fffffff)
            return l.fail("shape: a batch of " + std::to_string(items));
        if (sizes.size() > 1) sizes.erase(sizes.begin());
        set_sizes(l, m, sizes);
        l.infer();
        Shape known = l.shape(l.out[i]);
        known.n = (int)items;
        l.set_shape(l.out[i], known);
    }
}

void map_concat(CaffeLayer& l) {
    const caffe::ConcatParameter& p = l.p.concat_param();
    const int axis = p.has_concat_dim() ? (int)p.concat_dim() : p.axis();
    if (l.is_batch(axis)) l.unpack_batch();
    l.emit("Concat").set("axis", l.axis(axis, l.shape(0).dims));
}

void map_slice(CaffeLayer& l) {
    const caffe::SliceParameter& p = l.p.slice_param();
    const int axis = p.has_slice_dim() ? (int)p.slice_dim() : p.axis();
    const int pieces = (int)l.out.size();
    if (l.is_batch(axis)) l.unpack_batch();
    if (p.slice_point_size() && p.slice_point_size() != pieces - 1)
        return l.fail("slice_point: expected " + std::to_string(pieces - 1) + " values");
    std::vector<int> sizes(pieces, -233);
    int begin = 0;
    for (int i = 0; i < p.slice_point_size(); i++) {
        sizes[i] = (int)p.slice_point(i) - begin;
        begin = (int)p.slice_point(i);
        if (sizes[i] <= 0) return l.fail("slice_point: expected rising values");
    }
    ModelLayer& m = l.emit("Slice");
    m.set("slices", sizes), m.set("axis", l.axis(axis, l.shape(0).dims));
}

void map_split(CaffeLayer& l) { l.emit("Split"); }

void map_flatten(CaffeLayer& l) {
    const caffe::FlattenParameter& p = l.p.flatten_param();
    const Shape s = l.shape(0);
    const bool to_end = p.end_axis() == -1 || (s.dims && p.end_axis() == s.dims);
    if (p.axis() == 1 && to_end) {
        l.emit("Flatten");
        return;
    }
    if (!s.dims) return l.fail("axis: it needs the size of the input");
    if (l.is_batch(p.axis())) l.unpack_batch();
    const Shape from = l.shape(0);
    const int first = l.axis(p.axis(), from.dims), last = l.axis(p.end_axis(), from.dims);
    if (!l.error.empty()) return;
    if (first > last) return l.fail("end_axis comes before axis");
    std::vector<int64_t> sizes;
    for (int a = 0; a < from.dims; a++) {
        if (a > first && a <= last)
            sizes.back() *= from.size(a);
        else
            sizes.push_back(from.size(a));
    }
    // A batch has at least one axis behind it.
    if (from.dims > s.dims && sizes.size() == 1) sizes.push_back(1);
    set_sizes(l, l.emit("Reshape"), sizes);
}

// The sizes that a Reshape asks for, batch first; empty after a failure. `shape` replaces the axes
// [axis, axis + num_axes) of `from`; 0 keeps the size at its place, -1 takes what is left.
std::vector<int64_t> wanted_sizes(CaffeLayer& l, const std::vector<int64_t>& from) {
    const caffe::ReshapeParameter& p = l.p.reshape_param();
    std::vector<int64_t> sizes(p.shape().dim().begin(), p.shape().dim().end());
    const int axes = (int)from.size();
    int first = 0;
    if (p.axis() != 0 || p.num_axes() != -1) {
        if (!axes) l.fail("axis: it needs the size of the input");
        first = p.axis() < 0 ? p.axis() + axes + 1 : p.axis();
        const int end = p.num_axes() < 0 ? axes : first + p.num_axes();
        if (first < 0 || first > axes || end < first || end > axes)
            l.fail("axis and num_axes do not fit");
        if (!l.error.empty()) return {};
        sizes.insert(sizes.begin(), from.begin(), from.begin() + first);
        sizes.insert(sizes.end(), from.begin() + end, from.end());
    }
    const int own = p.shape().dim_size();
    for (int i = first; i < first + own; i++) {
        if (sizes[i] == 0 && axes && i < axes) sizes[i] = from[i];
        if (sizes[i] == 0 && (axes || i > 0)) l.fail("shape: a 0 that stands for no axis");
        if (sizes[i] < -1) l.fail("shape: expected -1 or more");
    }
    if (sizes.empty()) l.fail("shape is missing");
    if (std::count(sizes.begin(), sizes.end(), -1) > 1) l.fail("shape: more than one -1");
    return l.error.empty() ? sizes : std::vector<int64_t>();
}

// The product, -1 left out; 0 where it is more than 2^31.
int64_t product_of(const std::vector<int64_t>& sizes) {
    int64_t product = 1;
    for (int64_t size : sizes)
        if (size >= 0) product = size && product > 0x7fffffff / size ? 0 : product * size;
    return product;
}

void map_reshape(CaffeLayer& l) {
    const std::vector<int64_t> from = caffe_shape(l.shape(0));
    std::vector<int64_t> sizes = wanted_sizes(l, from);
    if (!l.error.empty()) return;
    const int64_t known = product_of(sizes), total = product_of(from);
    const bool guess = std::count(sizes.begin(), sizes.end(), -1) > 0;
    if (!from.empty() && (known == 0 || (guess ? total % known : total - known) != 0))
        return l.fail("shape: it does not hold the " + std::to_string(total) + " values");
    if (from.empty() && sizes[0] == -1)
        return l.fail("shape: -1 for the batch needs the size of the input");
    const int64_t items = sizes[0] == -1 ? total / known : sizes[0];
    if (!from.empty() && items != from[0]) {
        l.unpack_batch();
        if (sizes.size() == 1) sizes.push_back(1);
        return set_sizes(l, l.emit("Reshape"), sizes);
    }
    sizes.erase(sizes.begin());
    if (sizes.empty()) sizes.push_back(-1);
    // Sizes that Caffe keeps, whatever they are, are kept here too where the format can say so.
    const caffe::ReshapeParameter& p = l.p.reshape_param();
    for (size_t i = 0; i < sizes.size() && p.axis() == 0 && p.num_axes() == -1; i++)
        if (sizes.size() + 1 == from.size() && (int)i + 1 < p.shape().dim_size() &&
            p.shape().dim((int)i + 1) == 0)
            sizes[i] = 0;
    set_sizes(l, l.emit("Reshape"), sizes);
}

void emit_permute(CaffeLayer& l, std::vector<int> order) {
    const int dims = l.shape(0).dims;
    // Axes that are not named follow in their order.
    for (int a = 0; a <= (dims ? dims : 3); a++)
        if (std::find(order.begin(), order.end(), a) == order.end()) order.push_back(a);
    if (order.size() < 2 || (dims && (int)order.size() != dims + 1))
        return l.fail("order: it does not fit the input");
    if (order[0] == 0) {
        order.erase(order.begin());
        for (int& a : order) a--;
    } else {
        if (dims == 0) return l.fail("order: it needs the size of the input");
        l.unpack_batch();
    }
    if (order.size() > 4) return l.fail("order: expected at most 4 axes that move");
    Permute engine;
    static const int kOrders[] = {0, 1, 2, 6, 24};
    for (int type = 0; type < kOrders[order.size()]; type++) {
        int source[4];
        engine.order_type = type;
        if (engine.axis_order((int)order.size(), source) == 0 &&
            std::equal(order.begin(), order.end(), source)) {
            l.emit("Permute").set("order_type", type);
            return;
        }
    }
    l.fail("order: expected each axis once");
}

void map_permute(CaffeLayer& l) {
    const auto& order = l.p.permute_param().order();
    emit_permute(l, std::vector<int>(order.begin(), order.end()));
}

void map_transpose(CaffeLayer& l) {
    const auto& dims = l.p.transpose_param().dim();
    if (l.shape(0).dims && dims.size() != l.shape(0).dims + 1)
        return l.fail("dim: expected one for each axis");
    emit_permute(l, std::vector<int>(dims.begin(), dims.end()));
}

void map_reverse(CaffeLayer& l) {
    const int axis = l.p.reverse_param().axis();
    if (l.is_batch(axis)) l.unpack_batch();
    l.emit("Flip").set("axes", std::vector<int>{l.axis(axis, l.shape(0).dims)});
}

// The sizes are those of the second input when the net runs, if it has as many items.
void map_crop(CaffeLayer& l) {
    const caffe::CropParameter& p = l.p.crop_param();
    if (l.in.size() != 2) return l.fail("expected 2 inputs");
    const Shape from = l.shape(0), to = l.shape(1);
    if (!from.dims && p.axis() < 1) return l.fail("axis: it needs the size of the input");
    const int dims = from.dims ? from.dims : 3;
    const int first = l.axis(p.axis(), dims), count = dims - first;
    if (!l.error.empty()) return;
    if (p.offset_size() > 1 && p.offset_size() != count)
        return l.fail("offset: expected 1 or " + std::to_string(count) + " values");
    static const char* const kNames[] = {"w", "hw", "chw", "cdhw"};
    std::string ends;
    std::vector<int> starts, axes;
    for (int a = first; a < dims; a++) {
        const int i = a - first;
        const int64_t at = p.offset_size() ? p.offset(p.offset_size() > 1 ? i : 0) : 0;
        if (at > kMostPositions ||
            (from.dims && to.dims == from.dims && at > from.size(a) - to.size(a)))
            return l.fail("offset: it leaves too few values along axis " + std::to_string(a + 1));
        starts.push_back((int)at), axes.push_back(a);
        ends += (i ? ",+(1" : "+(1") + std::string(1, kNames[dims - 1][a]) + "," +
                std::to_string(at) + ")";
    }
    // The engine pairs the items of its inputs, Caffe reads nothing but the sizes of the second
    // one.
    if (from.dims && to.dims == from.dims && from.n != to.n) {
        std::vector<int> stops;
        for (size_t i = 0; i < axes.size(); i++) stops.push_back(starts[i] + to.size(axes[i]));
        ModelLayer& m = l.emit("Crop", {l.in[0]}, l.out, "");
        m.set("starts", starts), m.set("ends", stops), m.set("axes", axes);
        return;
    }
    ModelLayer& m = l.emit("Crop");
    const auto list = [](const std::vector<int>& values) {
        std::string text;
        for (int v : values) text += (text.empty() ? "" : ",") + std::to_string(v);
        return text;
    };
    m.set("starts_expr", list(starts)), m.set("axes_expr", list(axes)), m.set("ends_expr", ends);
}

void map_tile(CaffeLayer& l) {
    if (l.is_batch(l.p.tile_param().axis())) l.unpack_batch();
    ModelLayer& m = l.emit("Tile");
    m.set("axis", l.axis(l.p.tile_param().axis(), l.shape(0).dims));
    m.set("tiles", l.p.tile_param().tiles());
}

void map_shuffle_channel(CaffeLayer& l) {
    l.emit("ShuffleChannel").set("group", (int)l.p.shuffle_channel_param().group());
}

// DeepLab's: bilinear, corners stay corners. Negative pads cut rows and columns off.
void map_interp(CaffeLayer& l) {
    const caffe::InterpParameter& p = l.p.interp_param();
    std::vector<std::string> in = l.in;
    if (p.pad_beg() > 0 || p.pad_end() > 0)
        return l.fail("pad_beg and pad_end: expected 0 or less");
    if (p.pad_beg() < -kMostPositions || p.pad_end() < -kMostPositions)
        return l.fail("pad_beg and pad_end: out of range");
    if (p.pad_beg() || p.pad_end()) {
        in[0] = l.between("cut");
        ModelLayer& m = l.emit("Crop", {l.in[0]}, {in[0]}, "_cut");
        m.set("starts", std::vector<int>{-p.pad_beg(), -p.pad_beg()});
        const int end = p.pad_end() ? p.pad_end() : -233;
        m.set("ends", std::vector<int>{end, end}), m.set("axes", std::vector<int>{1, 2});
    }
    const bool sized = p.has_height() && p.has_width();
    ModelLayer& m = l.emit("Interp", in, l.out, "");
    m.set("resize_type", 2), m.set("align_corner", 1);
    if (l.in.size() == 2) {
        m.set("dynamic_target_size", 1);
    } else if (sized && !p.has_zoom_factor() && !p.has_shrink_factor()) {
        if (p.height() < 1 || p.width() < 1) return l.fail("height and width: expected 1 or more");
        m.set("output_height", p.height()), m.set("output_width", p.width());
    } else {
        if (p.shrink_factor() < 1 || p.zoom_factor() < 1)
            return l.fail("zoom_factor and shrink_factor: expected 1 or more");
        const std::string tail = ",1)," + std::to_string(p.shrink_factor()) + ")," +
                                 std::to_string(p.zoom_factor()) + "),1)";
        m.set("size_expr", "+(*(//(-(0w" + tail + ",+(*(//(-(0h" + tail);
    }
}

// Each value back to the place of the maximum that it comes from (SegNet's).
void map_unpool(CaffeLayer& l, const caffe::UpsampleParameter& p) {
    const Shape s = l.shape(0);
    if (l.maker(1) != "WindowPool") return l.fail("expected the mask of a Pooling as second input");
    const int strides[2] = {p.has_scale_h() ? p.scale_h() : p.scale(),
                            p.has_scale_w() ? p.scale_w() : p.scale()};
    const int sizes[2] = {p.has_upsample_h() ? p.upsample_h() : 0,
                          p.has_upsample_w() ? p.upsample_w() : 0};
    const bool shorter[2] = {p.pad_out_h(), p.pad_out_w()};
    std::vector<int> stride, kernel;
    for (int a = 0; a < 2; a++) {
        if (strides[a] < 1 || strides[a] > 64) return l.fail("scale: expected 1 to 64");
        if (sizes[a] && s.dims != 3) return l.fail("it needs the size of the input");
        // The engine: (in - 1) * stride + kernel values.
        stride.push_back(strides[a]);
        kernel.push_back(sizes[a] ? sizes[a] - (s.size(a + 1) - 1) * strides[a]
                                  : strides[a] - (int)shorter[a]);
        if (kernel[a] < 1) return l.fail("upsample_h and upsample_w: too small for the input");
    }
    ModelLayer& m = l.emit("MaxUnpool");
    m.set("kernel", kernel), m.set("strides", stride);
}

// Each value `scale` times along both axes (YOLOv3's forks).
void map_upsample(CaffeLayer& l) {
    const caffe::UpsampleParameter& p = l.p.upsample_param();
    if (l.in.size() == 2) return map_unpool(l, p);
    if (p.has_scale_h() || p.has_scale_w() || p.has_upsample_h() || p.has_upsample_w() ||
        p.pad_out_h() || p.pad_out_w())
        return l.fail("all but scale and stride needs the mask of a Pooling as second input");
    const int scale = p.has_stride() ? p.stride() : p.scale();
    if (scale < 1 || scale > 4096) return l.fail("scale: expected 1 to 4096");
    ModelLayer& m = l.emit("Interp");
    m.set("resize_type", 1);
    m.set("height_scale", (float)scale), m.set("width_scale", (float)scale);
}

// One value per item, as numbers of a type of CastTo.
std::string emit_list(CaffeLayer& l, const std::string& from, int type) {
    emit_reshape(l, from, l.between("list"), "_list", {-1});
    l.emit("CastTo", {l.between("list")}, {l.between("numbers")}, "_numbers").set("to", type);
    return l.between("numbers");
}

// The items that the last input names with numbers.
void map_batch_reindex(CaffeLayer& l) {
    if (l.in.size() != 2) return l.fail("expected 2 inputs");
    l.unpack_batch();
    l.emit("Gather", {l.in[0], emit_list(l, l.in[1], 3)}, l.out, "");
}

// The items of all inputs for which the last one is not 0.
void map_filter(CaffeLayer& l) {
    if (l.in.size() != l.out.size() + 1)
        return l.fail("expected an input for each output, and the selector");
    l.unpack_batch();
    const std::string chosen = emit_list(l, l.in.back(), 6);
    for (size_t i = 0; i < l.out.size(); i++) {
        l.emit("Compress", {l.in[i], chosen}, {l.out[i]}, i ? "_" + std::to_string(i) : "")
            .set("axis", 0);
        l.set_shape(l.out[i], l.shape(i));  // so many items at most
    }
}

// A constant whose first axis is the batch.
void map_parameter(CaffeLayer& l) {
    const Mat data = l.blob(0);
    const std::vector<int64_t> sizes = l.blob_shape(0);
    if (!l.error.empty()) return;
    if (product_of(sizes) != data.w) return l.fail("weight 0: its shape does not fit its values");
    std::vector<int> item(sizes.begin(), sizes.end());
    if (item.size() < 2) item.resize(2, 1);
    const bool items = item[0] > 1;
    if (!items) item.erase(item.begin());
    const std::string blob = l.constant("values", item, data);
    l.emit(items ? "BatchAxis" : "Noop", {blob}, l.out, "");
}

}  // namespace

CaffeMapper find_shape_mapper(const std::string& type) {
    static const std::pair<const char*, CaffeMapper> kTable[] = {
        {"BatchReindex", map_batch_reindex},
        {"Concat", map_concat},
        {"Crop", map_crop},
        {"Filter", map_filter},
        {"Flatten", map_flatten},
        {"Input", map_input},
        {"Interp", map_interp},
        {"Parameter", map_parameter},
        {"Permute", map_permute},
        {"Reshape", map_reshape},
        {"Reverse", map_reverse},
        {"ShuffleChannel", map_shuffle_channel},
        {"Slice", map_slice},
        {"Split", map_split},
        {"Tile", map_tile},
        {"Transpose", map_transpose},
        {"Upsample", map_upsample},
    };
    return find_in(kTable, type);
}

}  // namespace quoll
