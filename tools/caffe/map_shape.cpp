// Layers that move values and give blobs other shapes.
#include <algorithm>

#include "caffe/converter.h"

namespace quoll {

namespace {

// The size of an input as Caffe has it, the batch of one in front; empty when it is not known.
std::vector<int64_t> caffe_shape(const Shape& s) {
    std::vector<int64_t> sizes;
    if (s.dims) sizes.push_back(1);
    for (int a = 0; a < s.dims; a++) sizes.push_back(s.size(a));
    return sizes;
}

// Sets w, h, d, c from sizes counted from the outermost axis.
void set_sizes(CaffeLayer& l, ModelLayer& m, const std::vector<int64_t>& sizes) {
    static const char* const kNames[4][4] = {
        {"w"}, {"h", "w"}, {"c", "h", "w"}, {"c", "d", "h", "w"}};
    if (sizes.empty() || sizes.size() > 4)
        return l.fail("expected 2 to 5 axes, the batch counted, got " +
                      std::to_string(sizes.size() + 1));
    for (size_t i = 0; i < sizes.size(); i++) {
        if (sizes[i] > 0x7fffffff || sizes[i] < -1) return l.fail("a size is out of range");
        m.set(kNames[sizes.size() - 1][i], (int)sizes[i]);
    }
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
        if (sizes.size() > 1) {
            if (sizes[0] > 1)
                l.notes.push_back("runs with one item, not the batch of the prototxt");
            sizes.erase(sizes.begin());
        }
        set_sizes(l, m, sizes);
    }
}

void map_concat(CaffeLayer& l) {
    const caffe::ConcatParameter& p = l.p.concat_param();
    const int axis = p.has_concat_dim() ? (int)p.concat_dim() : p.axis();
    l.emit("Concat").set("axis", l.axis(axis, l.shape(0).dims));
}

void map_slice(CaffeLayer& l) {
    const caffe::SliceParameter& p = l.p.slice_param();
    const int axis = p.has_slice_dim() ? (int)p.slice_dim() : p.axis();
    const int pieces = (int)l.out.size();
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
    const int first = l.axis(p.axis(), s.dims), last = l.axis(p.end_axis(), s.dims);
    if (!l.error.empty()) return;
    if (first > last) return l.fail("end_axis comes before axis");
    std::vector<int64_t> sizes;
    for (int a = 0; a < s.dims; a++) {
        if (a > first && a <= last)
            sizes.back() *= s.size(a);
        else
            sizes.push_back(s.size(a));
    }
    set_sizes(l, l.emit("Reshape"), sizes);
}

// `shape` replaces the axes [axis, axis + num_axes); 0 keeps the axis of the input at its place, -1
// takes what is left.
void map_reshape(CaffeLayer& l) {
    const caffe::ReshapeParameter& p = l.p.reshape_param();
    const std::vector<int64_t> from = caffe_shape(l.shape(0));
    std::vector<int64_t> sizes(p.shape().dim().begin(), p.shape().dim().end());
    const int axes = (int)from.size();
    if (p.axis() != 0 || p.num_axes() != -1) {
        if (!axes) return l.fail("axis: it needs the size of the input");
        const int first = p.axis() < 0 ? p.axis() + axes + 1 : p.axis();
        const int end = p.num_axes() < 0 ? axes : first + p.num_axes();
        if (first < 0 || first > axes || end > axes) return l.fail("axis and num_axes do not fit");
        for (size_t i = 0; i < sizes.size(); i++)
            if (sizes[i] == 0 && first + (int)i < axes) sizes[i] = from[first + i];
        sizes.insert(sizes.begin(), from.begin(), from.begin() + first);
        sizes.insert(sizes.end(), from.begin() + end, from.end());
    }
    if (sizes.empty()) return l.fail("shape is missing");
    int64_t known = 1, total = 1;
    int guess = -1;
    for (size_t i = 0; i < sizes.size(); i++) {
        if (sizes[i] == 0 && (int)i >= axes && axes)
            return l.fail("shape: 0 beyond the input's axes");
        if (sizes[i] == 0 && axes) sizes[i] = from[i];
        if (sizes[i] == 0 && i > 0) return l.fail("shape: 0 needs the size of the input");
        if (sizes[i] < 0) guess = (int)i;
        if (sizes[i] > 0) known *= sizes[i];
    }
    for (int64_t size : from) total *= size;
    if (guess == 0) {
        if (!axes) return l.fail("shape: -1 for the batch needs the size of the input");
        sizes[0] = known && total % known == 0 ? total / known : 0;
    }
    if (sizes[0] > 1) {
        // The batch of the prototxt, or something that only works with it.
        if (axes && guess != 0 && guess < 0 && known == total * sizes[0])
            l.notes.push_back("reshapes one item, not the batch of the prototxt");
        else if (axes && guess < 0 && known == total)
            return l.fail("shape: it moves values into the batch");
    }
    sizes.erase(sizes.begin());
    if (sizes.empty()) sizes.push_back(-1);
    set_sizes(l, l.emit("Reshape"), sizes);
}

void map_permute(CaffeLayer& l) {
    std::vector<int> order(l.p.permute_param().order().begin(), l.p.permute_param().order().end());
    const int dims = l.shape(0).dims;
    // Axes that are not named follow in their order.
    for (int a = 0; a <= (dims ? dims : 3); a++)
        if (std::find(order.begin(), order.end(), a) == order.end()) order.push_back(a);
    if (order[0] != 0) return l.fail("order: the batch must stay in front");
    if (order.size() < 2 || order.size() > 4 || (dims && (int)order.size() != dims + 1))
        return l.fail("order: it does not fit the input");
    for (int a : order)
        if (a >= (int)order.size()) return l.fail("order: axis " + std::to_string(a));
    // The engine numbers the orders of axes (c, h, w), here 1, 2, 3.
    static const int kOrders[6][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                      {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
    int type = 0;
    if (order.size() == 3) type = order[1] == 1 ? 0 : 1;
    if (order.size() == 4)
        for (int i = 0; i < 6; i++)
            if (std::equal(kOrders[i], kOrders[i] + 3, order.begin() + 1)) type = i;
    l.emit("Permute").set("order_type", type);
}

// The sizes come from the second input; they become numbers, since only some axes follow it.
void map_crop(CaffeLayer& l) {
    const caffe::CropParameter& p = l.p.crop_param();
    if (l.in.size() != 2) return l.fail("expected 2 inputs");
    const Shape from = l.shape(0), to = l.shape(1);
    if (!from.dims || from.dims != to.dims || from.dims > 3)
        return l.fail("the sizes of its inputs must be known, with equally many axes");
    const int first = l.axis(p.axis(), from.dims), count = from.dims - first;
    if (!l.error.empty()) return;
    if (p.offset_size() > 1 && p.offset_size() != count)
        return l.fail("offset: expected 1 or " + std::to_string(count) + " values");
    std::vector<int> starts, ends, axes;
    for (int a = first; a < from.dims; a++) {
        const int i = a - first;
        const int at = p.offset_size() ? (int)p.offset(p.offset_size() > 1 ? i : 0) : 0;
        if (at < 0 || at > from.size(a) - to.size(a))
            return l.fail("offset: it leaves too few values along axis " + std::to_string(a + 1));
        starts.push_back(at), ends.push_back(at + to.size(a)), axes.push_back(a);
    }
    ModelLayer& m = l.emit("Crop", {l.in[0]}, l.out, "");
    m.set("starts", starts), m.set("ends", ends), m.set("axes", axes);
}

void map_tile(CaffeLayer& l) {
    ModelLayer& m = l.emit("Tile");
    m.set("axis", l.axis(l.p.tile_param().axis(), l.shape(0).dims));
    m.set("tiles", l.p.tile_param().tiles());
}

void map_shuffle_channel(CaffeLayer& l) {
    l.emit("ShuffleChannel").set("group", (int)l.p.shuffle_channel_param().group());
}

// DeepLab's: bilinear, corners stay corners.
void map_interp(CaffeLayer& l) {
    const caffe::InterpParameter& p = l.p.interp_param();
    const Shape s = l.shape(0);
    if (p.pad_beg() || p.pad_end()) return l.fail("pad_beg and pad_end are not supported");
    int h = p.height(), w = p.width();
    const bool sized = p.has_height() || p.has_width() || l.in.size() == 2;
    if (!sized && s.dims != 3) return l.fail("zoom_factor needs the size of the input");
    if (!sized && (p.shrink_factor() < 1 || p.zoom_factor() < 1))
        return l.fail("zoom_factor and shrink_factor: expected 1 or more");
    if (!sized) {
        h = (s.h - 1) / p.shrink_factor() + 1, w = (s.w - 1) / p.shrink_factor() + 1;
        h += (h - 1) * (p.zoom_factor() - 1), w += (w - 1) * (p.zoom_factor() - 1);
    } else if (l.in.size() == 2) {
        h = l.shape(1).h, w = l.shape(1).w;
        if (l.shape(1).dims != 3) return l.fail("the size of its second input must be known");
    }
    ModelLayer& m = l.emit("Interp", {l.in[0]}, l.out, "");
    m.set("resize_type", 2), m.set("align_corner", 1);
    m.set("output_height", h), m.set("output_width", w);
}

// Each value `scale` times along both axes (YOLOv3's forks); SegNet's takes a mask.
void map_upsample(CaffeLayer& l) {
    const caffe::UpsampleParameter& p = l.p.upsample_param();
    if (l.in.size() != 1) return l.fail("places of a maximum (a second input) are not supported");
    const int scale = p.has_stride() ? p.stride() : p.scale();
    if (scale < 1) return l.fail("scale: expected 1 or more");
    ModelLayer& m = l.emit("Interp");
    m.set("resize_type", 1);
    m.set("height_scale", (float)scale), m.set("width_scale", (float)scale);
}

}  // namespace

CaffeMapper find_shape_mapper(const std::string& type) {
    static const std::pair<const char*, CaffeMapper> kTable[] = {
        {"Concat", map_concat},   {"Crop", map_crop},
        {"Flatten", map_flatten}, {"Input", map_input},
        {"Interp", map_interp},   {"Permute", map_permute},
        {"Reshape", map_reshape}, {"ShuffleChannel", map_shuffle_channel},
        {"Slice", map_slice},     {"Split", map_split},
        {"Tile", map_tile},       {"Upsample", map_upsample},
    };
    return find_in(kTable, type);
}

}  // namespace quoll
