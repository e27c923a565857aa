// Convolutions of 1 to 3 axes with any groups, bias, activation and a blob that is added.
#include "layer/nn/convolution.h"

#include <algorithm>

#include "layer/vulkan/conv_tiles.h"
#include "layer/vulkan/conv_weights.h"
#include "layer/vulkan/fusion.h"
#include "layer/vulkan/vulkan_layer.h"
#include "layer/vulkan/winograd_vulkan.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

// The largest windows that conv_depthwise.comp unrolls.
const int kLargestSquare = 7;
// Groups per processor if a depthwise convolution adds up its pixels.
const uint32_t kSumGroups = 4;

enum class Form {
    kTiled,      // channels-last, groups of whole vec4s
    kMatrix,     // the same on matrix units
    kDepthwise,  // channels-last
    kDirect,     // any layout
};

// For conv_window.comp: the multiplications from which on rectangles are faster than
// conv_matrix.comp, on an H200, and rows end to end, on an H100.
const double kWindowMacs = 3e8, kFewWindowMacs = 5e7;
const int kWindowDepth = 64, kLargestWindow = 3;

// Rows of 16 pixels and channels of a tile, and the subgroups that divide them.
struct WindowTile {
    uint32_t rows, columns, m, n;
};
const WindowTile kLargeWindows = {8, 64, 4, 2}, kSmallWindows = {4, 32, 4, 1};
const WindowTile kFewWindows = {2, 32, 2, 2};

// How conv_window.comp computes a convolution.
struct WindowPlan {
    WindowTile tile;
    uint32_t row_pitch, taps;  // kRowPitch and kTapsOfStep
    uint32_t x, y, splits;     // groups
};

// The most input channels with which windows of planar blobs are read in place.
const int kMostPlanar = 4;
// Flags in the push constants of common/planar.glsl.
const int kLastScalar = 4, kNarrowed = 16;

// A bit of kInt8 in common/conv.glsl.
const int kRoundsInput = 2;

// Of common/conv.glsl.
struct ConvPush {
    Value in, out, residual;
    ConvGeometry g;
    int channels, steps;
    float pad_value;
    Activation f;
    int splits = 1;

    Words words() const;
};

// A 1-D blob is one pixel.
Words pixel_words(const Value& v) {
    const Shape& s = v.shape;
    if (s.dims == 1) return {1, 1, 1, (s.w + 3) / 4, s.w / 4, v.first / 4};
    return {s.w, s.h, s.d, (s.c + 3) / 4, v.pitch / 4, v.first / 4};
}

Words ConvPush::words() const {
    Words all = pixel_words(in);
    all[3] = (g.num_input / g.group + 3) / 4;
    Words made = pixel_words(out);
    made[3] = out.shape.dims == 1 ? out.shape.n : (int)(plane(out.shape) * out.shape.n);
    all.insert(all.end(), made.begin(), made.end());
    const Words added = pixel_words(residual);
    const Words rest = {channels,     steps,      g.x.kernel, g.y.kernel,   g.z.kernel,
                        g.x.stride,   g.y.stride, g.z.stride, g.x.dilation, g.y.dilation,
                        g.z.dilation, g.x.before, g.y.before, g.z.before,   added[4],
                        added[5],     pad_value,  f.a,        f.b,          splits};
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
}

class ConvolutionVulkan : public VulkanLayer {
public:
    ConvolutionVulkan(const Convolution& layer, bool has_matrices)
        : layer_(layer),
          f_(layer.activation_type, layer.activation_params),
          int8_(layer.int8_scale_term != 0) {
        num_input_ = layer.weight_data_size / layer.maxk() / (layer.num_output / layer.group);
        const bool whole = num_input_ / layer.group % 4 == 0 && outputs() % 4 == 0;
        if (layer.axes >= 2 && layer.depthwise())
            form_ = Form::kDepthwise;
        else if (layer.axes >= 2 && (layer.group == 1 || whole))
            form_ = has_matrices ? Form::kMatrix : Form::kTiled;
        const bool product = form_ == Form::kMatrix || form_ == Form::kTiled;
        planar_ = product && layer.axes == 2 && layer.group == 1 && num_input_ <= kMostPlanar &&
                  !int8_ && layer.pad_value == 0.f && layer.dilation_w == 1 &&
                  planar_row_groups(layer_) * num_input_ <= layer.kernel_w;
    }

    int load(VulkanContext& context) {
        most_groups_ = context.device.limits().maxComputeWorkGroupCount[0];
        std::vector<float> values;
        if (int8_)
            QUOLL_RETURN_IF_ERROR(load_int8(context, &values));
        else
            values = values_of(layer_.weight_data);
        if (planar_)
            QUOLL_RETURN_IF_ERROR(
                context.weights.add(planar_weights(layer_, values, form_ == Form::kMatrix),
                                    context.storage, &planar_weight_));
        if (form_ == Form::kTiled) values = tiled_weights(layer_, values);
        if (form_ == Form::kMatrix) values = matrix_weights(layer_, values);
        if (form_ == Form::kDepthwise) values = depthwise_weights(layer_, values);
        as_bytes_ = int8_ && form_ == Form::kMatrix && context.device.features().matrix.int8_k;
        QUOLL_RETURN_IF_ERROR(as_bytes_
                                  ? context.weights.add_words(words_of_bytes(values), &weight_)
                                  : context.weights.add(values, context.storage, &weight_));
        if (!layer_.bias_term || int8_) return kOk;
        return context.weights.add(values_of(layer_.bias_data), Storage::f32, &bias_);
    }

    bool takes_integers() const override { return int8_; }
    bool supports(const Shapes& of_types, const Shapes& made) const override {
        const Shapes in = as_floats(of_types), out = as_floats(made);
        const LogMute mute;
        ConvGeometry g;
        if (convolution_geometry(layer_, layer_, of_types, &g) != kOk) return false;
        if (layer_.add_input && !(in.back() == out[0] && made_by(g, in[0]) == out[0])) return false;
        if (!fits_groups(made[0])) return false;
        if (form_ == Form::kDirect || in[0].dims >= 3) return true;
        // Vec4s would reach beyond the end of a pixel.
        if (!is_flat_input(layer_, in[0])) return false;
        return num_input_ % 4 == 0 && (in[0].n == 1 || layer_.num_output % 4 == 0);
    }

    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        const bool planar = reads_upload(0, in_shapes) && (*in)[0] == Layout::kPlanar;
        if (form_ == Form::kDirect)
            follow_layout(0, in_shapes, out_shapes, in, out);
        else
            all_pixels(in_shapes, out_shapes, in, out);
        if (planar) (*in)[0] = Layout::kPlanar;
    }
    bool reads_upload(size_t index, const Shapes& in) const override {
        return planar_ && index == 0 && in[0].dims == 3 && !is_integer(in[0].dtype);
    }

    int record(Recorder& r, const Values& in, const Values& out) const override {
        return record_fused(r, in, out, Fused());
    }

    bool fuses(StepFusion fusion, const Shapes& in, const Shapes& out) const override {
        if (in[0].dims != 3 || out[0].dims != 3 || int8_) return false;
        if (fusion == StepFusion::kSums)
            return form_ == Form::kDepthwise ||
                   (form_ == Form::kMatrix && !planar_ && layer_.group == 1 && in[0].n == 1);
        // Shaders that read windows of planar blobs take no factors.
        const bool product =
            !planar_ && (form_ == Form::kMatrix || (form_ == Form::kTiled && in[0].n == 1));
        ConvGeometry g;
        return fusion == StepFusion::kGated && product && layer_.group == 1 &&
               convolution_geometry(layer_, layer_, in, &g) == kOk && is_pointwise(g);
    }

    // 1x1 of one pixel.
    bool dense(Dense* dense) const override {
        if (form_ != Form::kTiled && form_ != Form::kMatrix) return false;
        if (layer_.group != 1 || layer_.add_input || layer_.maxk() != 1 || int8_) return false;
        // With a stride the only pixel may belong to the padding.
        if (layer_.pad_left > 0 || layer_.pad_top > 0) return false;
        dense->weight = weight_, dense->bias = bias_, dense->has_bias = layer_.bias_term;
        dense->inputs = (uint32_t)num_input_, dense->outputs = (uint32_t)layer_.num_output;
        const bool rows = form_ == Form::kMatrix;
        dense->output_step = rows ? (dense->inputs + 63) / 64 * 64 : 1;
        dense->input_step = rows ? 1 : round4(dense->outputs);
        dense->f = f_;
        return true;
    }

    int record_fused(Recorder& r, const Values& taken, const Values& out,
                     const Fused& fused) const override {
        Values in = taken;
        if (are_words(in[0])) in[0] = floats_of(r, in[0]);
        if (!are_words(out[0])) return record_floats(r, in, out[0], fused);
        const Value made = r.make(as_floats({out[0].shape})[0], Layout::kPlanar);
        QUOLL_RETURN_IF_ERROR(record_floats(r, in, made, fused));
        r.copy(made, out[0]);
        return kOk;
    }

private:
    int record_floats(Recorder& r, const Values& in, const Value& out, const Fused& fused) const {
        Shapes shapes;
        for (const Value& value : in) shapes.push_back(value.shape);
        ConvPush push;
        QUOLL_RETURN_IF_ERROR(convolution_geometry(layer_, layer_, shapes, &push.g));
        const int bits = int8_ ? int8_bits(is_integer(in[0].shape.dtype)) : 0;
        push.pad_value = int8_ ? (float)layer_.int8_padding() : layer_.pad_value;
        if (form_ == Form::kDirect) return record_direct(r, push.g, in, out, push.pad_value, bits);
        // There it is rounded with the inputs.
        if (form_ == Form::kMatrix && (bits & kRoundsInput)) push.pad_value /= input_scale_;
        push.in = in[0], push.out = out, push.residual = in.back();
        push.channels = form_ == Form::kDepthwise ? layer_.num_output : outputs();
        push.steps = push.g.maxk();
        push.f = f_;
        const bool pointwise = is_pointwise(push.g);
        const Words constants = {f_.type, layer_.bias_term, layer_.add_input, pointwise};
        const std::vector<Binding> bindings = {r.read(in[0]), weight_, bias_or_any(),
                                               r.read(in.back()), r.write(out)};
        Words words = push.words();
        if (form_ == Form::kDepthwise) {
            words[3] = 1;
            const bool square = !pointwise && push.g.x.kernel == push.g.y.kernel &&
                                push.g.x.kernel <= kLargestSquare && is_flat(push.g);
            Words special = constants;
            const uint32_t rows = (uint32_t)(push.g.y.out * in[0].shape.n);
            const uint32_t groups = row_groups(words);
            const bool by_rows = square && !fused.sums && std::max(rows, groups) <= kMostGroups;
            special.push_back(square ? push.g.x.kernel : 0);
            special.push_back(fused.sums != nullptr), special.push_back(by_rows);
            add_int8(bits, &special);
            record_depthwise(r, words, special, bindings, (uint32_t)in[0].shape.n,
                             by_rows ? rows : 0, fused.sums);
            return kOk;
        }
        words[13] = push.steps * (int)words[3].bits;
        const int items = in[0].shape.n;
        const bool plain = !fused.gate && !int8_ && in[0].shape.dims == 3 && layer_.axes == 2;
        const WinogradTiling tiling = plain ? choose_winograd(r, push.g, items) : WinogradTiling();
        if (tiling.out) {
            QUOLL_RETURN_IF_ERROR(record_winograd(r, push, tiling, bindings, items));
            if (fused.sums) *fused.sums = record_channel_sums(r, out);
            return kOk;
        }
        WindowPlan windows;
        if (!fused.gate && !int8_ && plan_windows(r.device(), push, words, &windows)) {
            record_windows(r, push, words, windows, bindings, fused.sums);
            return kOk;
        }
        if (reads_upload(0, shapes) && in[0].layout == Layout::kPlanar) {
            record_planar(r, in[0], words, {f_.type, layer_.bias_term, layer_.add_input, false},
                          bindings);  // a window of one pixel is one of rows and columns, too
            return kOk;
        }
        const bool summed = record_product(r, words, constants, bindings, fused, layer_.group,
                                           is_flat(push.g), bits);
        if (fused.sums && !summed) *fused.sums = record_channel_sums(r, out);
        return kOk;
    }

    void record_planar(Recorder& r, const Value& in, Words words, Words constants,
                       std::vector<Binding> bindings) const {
        const bool matrix = form_ == Form::kMatrix;
        const int units = num_input_ * layer_.kernel_h * planar_row_groups(layer_),
                  pixels = (int)words[9].bits;
        const ConvProduct product = {pixels, outputs(), units * 4, 1};
        const Shader shader = matrix                    ? Shader::conv_planar
                              : takes_lanes(r, product) ? Shader::conv_lanes_planar
                                                        : r.half_form(Shader::conv_tiled_planar);
        const ConvTiling tiling = choose_tiling(r, shader, matrix, product);
        const ConvTile& t = tiling.tile;
        const uint32_t x = (uint32_t)((pixels + t.rows - 1) / t.rows);
        const uint32_t y = (uint32_t)((outputs() + t.columns - 1) / t.columns);
        words[3] = num_input_, words[kLastScalar] = in.first + (uint32_t)in.shape.total() - 1;
        words[5] = in.first, words[13] = units, words[kNarrowed] = r.storage() != Storage::f32;
        words.back() = tiling.splits;
        bindings[1] = planar_weight_;
        add_split(r, tiling, x * y, planar_weight_, &bindings);
        if (matrix) {
            constants.push_back(false);
            const Words shape = tile_constants(t, r.device().features().matrix);
            constants.insert(constants.end(), shape.begin(), shape.end());
        } else {
            constants.push_back(t.m), constants.push_back(t.n);
        }
        constants.resize(17, 0);
        constants.insert(constants.end(), {true, false, tiling.splits > 1, 0,
                                           planar_row_groups(layer_), layer_.kernel_h});
        r.dispatch(shader, constants, bindings, words, x, y, (uint32_t)tiling.splits);
        if (in.is_staged && is_narrowed(in.staged_type, r.storage())) r.set_narrowed(kNarrowed);
    }

    // Loads weights as whole numbers, and what conv.glsl does with their sums.
    int load_int8(VulkanContext& context, std::vector<float>* values) {
        const Mat &from = layer_.weight_data, &scales = layer_.weight_data_int8_scales;
        const Mat bytes = from.dtype == DType::s8 ? from : quantize_weight(from, scales);
        if (bytes.empty()) return kOutOfMemory;
        const int n = layer_.num_output, each = layer_.weight_data_size / n;
        const signed char* const w = (const signed char*)bytes.data;
        values->assign(w, w + layer_.weight_data_size);
        std::vector<float> factors(4 + 4 * round4(n), 0.f);
        factors[0] = input_scale_ = layer_.bottom_blob_int8_scales[0],
        factors[1] = (float)layer_.top_zero_point;
        for (int p = 0; p < n; p++) {
            int sum = 0;
            for (int i = 0; i < each; i++) sum += w[p * each + i];
            const float scale = scales[(size_t)((int64_t)p * scales.w / n)];
            float* const to = &factors[4 + p / 4 * 16 + p % 4];
            to[0] = layer_.int8_affine ? (float)sum * (float)layer_.bottom_zero_point : 0.f;
            to[4] = dequantize_scale(factors[0], scale);
            to[8] = layer_.bias_term ? layer_.bias_data[(size_t)p] : 0.f;
            to[12] = layer_.int8_output() ? layer_.top_blob_int8_scales[0] : 1.f;
        }
        return context.weights.add(factors, Storage::f32, &bias_);
    }
    int int8_bits(bool from_int8) const {
        return 1 + (from_int8 ? 0 : kRoundsInput) + (layer_.int8_output() ? 4 : 0) +
               (layer_.int8_affine ? 8 : 0);
    }
    static void add_int8(int bits, Words* constants) {
        if (!bits) return;
        constants->resize(20, 0);
        constants->push_back(bits);
    }
    static Shapes as_floats(Shapes shapes) {
        for (Shape& shape : shapes) shape.dtype = DType::f32;
        return shapes;
    }
    // A value of the same numbers, stored as floats are; its type is still s8.
    static Value floats_of(Recorder& r, const Value& words) {
        Value made = r.make(as_floats({words.shape})[0], Layout::kPlanar);
        r.copy(words, made);
        made.shape.dtype = words.shape.dtype;
        return made;
    }
    // The shape of the output before something is added, which may have more values.
    Shape made_by(const ConvGeometry& g, const Shape& in) const {
        Shape made = conv_output_shape(layer_, g, in.dtype);
        if (is_flat_input(layer_, in)) made = Shape(g.num_output, in.dtype);
        made.n = in.n;
        return made;
    }
    // Products have a group for the pixels of each tile, 32 at least, along one axis.
    bool fits_groups(const Shape& made) const {
        const bool product = form_ == Form::kMatrix || form_ == Form::kTiled;
        const uint64_t pixels = made.dims < 3 ? 1 : plane(made);
        return !product || pixels * made.n <= (uint64_t)most_groups_ * 32;
    }
    int outputs() const { return layer_.num_output / layer_.group; }  // of a group
    Binding bias_or_any() const { return layer_.bias_term || int8_ ? bias_ : weight_; }

    static bool is_flat(const ConvGeometry& g) {
        return g.z.in == 1 && g.z.out == 1 && g.z.kernel == 1;
    }
    static bool is_pointwise(const ConvGeometry& g) {
        for (const WindowAxis* axis : {&g.x, &g.y, &g.z})
            if (axis->kernel != 1 || axis->stride != 1 || axis->before || axis->after) return false;
        return true;
    }

    // The groups of conv_depthwise.comp for a row of pixels.
    uint32_t row_groups(const Words& words) const {
        return (words[6].bits * (uint32_t)((layer_.num_output + 3) / 4) + 63) / 64;
    }

    // rows: of all items, if groups along y compute rows; 0: groups compute any pixels. sums: null,
    // or to be set.
    void record_depthwise(Recorder& r, Words words, const Words& constants,
                          std::vector<Binding> bindings, uint32_t items, uint32_t rows,
                          ChannelSums* sums) const {
        const uint32_t all = words[9].bits, vectors = ((uint32_t)layer_.num_output + 3) / 4;
        const Shader shader = int8_ ? Shader::conv_depthwise : r.half_form(Shader::conv_depthwise);
        if (rows > 0) {
            bindings.push_back(weight_);
            r.dispatch(shader, constants, bindings, words, row_groups(words), rows);
            return;
        }
        if (!sums) {
            bindings.push_back(weight_);
            r.dispatch_linear(shader, constants, bindings, words, all * vectors);
            return;
        }
        const uint32_t pixels = all / items;
        // A group has 8 rows of invocations.
        const uint32_t processors = std::max(r.device().features().processors, 16u);
        const uint32_t least = (pixels + 8 * kMostGroups - 1) / (8 * kMostGroups);
        const uint32_t each = std::max(
            least, std::min(4u, std::max(1u, all * vectors / (64 * kSumGroups * processors))));
        words.back() = each;
        sums->parts = (pixels + 8 * each - 1) / (8 * each);
        sums->pixels = pixels, sums->items = items;
        sums->block = r.make_block((size_t)items * sums->parts * vectors * 4 * sizeof(float));
        bindings.push_back(r.write_block(sums->block));
        r.dispatch(shader, constants, bindings, words, (vectors + 7) / 8, sums->parts, items);
    }

    // Binding 8 of common/pixel_sums.glsl. parts: of the pixels of the only item.
    void add_sums(Recorder& r, uint32_t parts, const Words& words, ChannelSums* sums,
                  std::vector<Binding>* bindings) const {
        bindings->resize(8, weight_);
        if (sums) {
            sums->parts = parts, sums->pixels = words[9].bits, sums->items = 1;
            sums->block = r.make_block((size_t)parts * round4(layer_.num_output) * sizeof(float));
        }
        bindings->push_back(sums ? r.write_block(sums->block) : (*bindings)[4]);
    }

    // Whether it adds up the pixels, as `fused` says.
    bool record_product(Recorder& r, Words words, Words constants, std::vector<Binding> bindings,
                        const Fused& fused, int group, bool flat, int bits) const {
        const Value* const gate = fused.gate;
        const bool matrix = form_ == Form::kMatrix;
        const GpuFeatures& features = r.device().features();
        const int pixels = (int)words[9].bits, steps = (int)words[13].bits;
        // Two bytes take the place of an f16 value.
        const ConvProduct product = {pixels, outputs(), as_bytes_ ? steps * 2 : steps * 4, group};
        const Shader shader = as_bytes_                 ? Shader::conv_matrix_int8
                              : matrix                  ? Shader::conv_matrix
                              : takes_lanes(r, product) ? Shader::conv_lanes
                              : int8_                   ? Shader::conv_tiled
                                                        : r.half_form(Shader::conv_tiled);
        const ConvTiling tiling = choose_tiling(r, shader, matrix, product);
        const ConvTile& t = tiling.tile;
        const uint32_t x = (uint32_t)((pixels + t.rows - 1) / t.rows);
        const uint32_t y = (uint32_t)((outputs() + t.columns - 1) / t.columns);
        words.back() = tiling.splits;
        add_split(r, tiling, x * y * (uint32_t)group, bindings[4], &bindings);
        bindings.push_back(gate ? r.read(*gate) : weight_);
        ChannelSums* const sums = stores_at_once(t) ? fused.sums : nullptr;
        if (matrix && !as_bytes_) add_sums(r, x, words, sums, &bindings);
        if (matrix) {
            // Groups of 8 channels wherever a group of inputs begins.
            const bool wide =
                words[3].bits % 2 == 0 && words[4].bits % 2 == 0 && words[5].bits % 2 == 0;
            constants.push_back(wide);
            const Words shape = tile_constants(t, features.matrix, as_bytes_);
            constants.insert(constants.end(), shape.begin(), shape.end());
        } else {
            constants.push_back(t.m), constants.push_back(t.n);
        }
        constants.push_back(!gate ? 0 : gate->shape.n == 1 ? 1 : 2);
        constants.resize(17, 0);
        constants.insert(constants.end(), {flat, sums != nullptr, tiling.splits > 1});
        add_int8(bits, &constants);
        r.dispatch(shader, constants, bindings, words, x, y, (uint32_t)(group * tiling.splits));
        return sums != nullptr;
    }

    // bindings: of the convolution.
    int record_winograd(Recorder& r, ConvPush push, WinogradTiling t,
                        const std::vector<Binding>& bindings, int items) const {
        const int points = t.points();
        const bool as_rows = form_ == Form::kMatrix;
        Binding weight;
        QUOLL_RETURN_IF_ERROR(prepare_winograd(r, push.g, t, as_rows, weight_, &weight));
        // What is made at a time alternates between two places, so that one part's inputs are
        // transformed while another's are multiplied.
        Value inputs[2], sums[2];
        for (int i = 0; i < (items > (int)t.items ? 2 : 1); i++) {
            inputs[i] =
                r.make(Shape((int)t.tiles(), 1, points * num_input_), Layout::kChannelsLast);
            sums[i] = r.make(Shape((int)t.tiles(), 1, points * outputs()), Layout::kChannelsLast);
        }
        ConvPush product;
        product.g = push.g, product.g.group = points;
        product.g.num_input = points * num_input_, product.g.num_output = points * outputs();
        product.g.x.kernel = product.g.y.kernel = 1;
        product.channels = outputs(), product.steps = 1, product.pad_value = 0.f;
        for (int first = 0; first < items; first += (int)t.items) {
            Value& from = inputs[first / (int)t.items % 2];
            Value& to = sums[first / (int)t.items % 2];
            t.items = std::min(t.items, (uint32_t)(items - first));
            push.in.shape.n = push.out.shape.n = push.residual.shape.n = (int)t.items;
            from.shape.w = to.shape.w = (int)t.tiles();
            record_transform(r, Shader::winograd_input, push, t,
                             {bindings[0], bindings[1], bindings[2], bindings[3], r.write(from)});
            product.in = from, product.out = product.residual = to;
            Words words = product.words();
            words[13] = words[3];
            record_product(r, words, {0, false, false, true},
                           {r.read(from), weight, weight, r.read(from), r.write(to)}, Fused(),
                           points, true, 0);
            record_transform(
                r, Shader::winograd_output, push, t,
                {bindings[0], bindings[1], bindings[2], bindings[3], bindings[4], r.read(to)});
            for (Value* value : {&push.in, &push.out, &push.residual})
                value->first += t.items * plane(value->shape) * value->pitch;
        }
        return kOk;
    }

    void record_transform(Recorder& r, Shader shader, const ConvPush& push, const WinogradTiling& t,
                          const std::vector<Binding>& bindings) const {
        const bool input = shader == Shader::winograd_input;
        Words constants = {f_.type, layer_.bias_term,       layer_.add_input,
                           false,   form_ == Form::kMatrix, t.out};
        if (input) constants[0] = constants[1] = constants[2] = constants[4] = 0;
        constants.resize(17, 0), constants.push_back(true);
        const int vectors = (input ? num_input_ : outputs()) / 4;
        r.dispatch_linear(shader, constants, bindings, push.words(), t.tiles() * (uint32_t)vectors);
    }

    // False if conv_window.comp does not compute it.
    bool plan_windows(const GpuDevice& device, const ConvPush& push, const Words& words,
                      WindowPlan* plan) const {
        const MatrixUnits& units = device.features().matrix;
        const bool whole = num_input_ / layer_.group % kWindowDepth == 0 &&
                           outputs() % (int)kSmallWindows.columns == 0 && words[4].bits % 2 == 0 &&
                           words[5].bits % 2 == 0;
        if (form_ != Form::kMatrix || !whole || units.m != 16 || units.n != 16 || units.k != 16)
            return false;
        if (is_pointwise(push.g) || !is_flat(push.g)) return false;
        for (const WindowAxis* axis : {&push.g.x, &push.g.y})
            if (axis->kernel > kLargestWindow || axis->stride != 1 || axis->dilation != 1)
                return false;
        const double macs = 4. * words[9].bits * words[13].bits * layer_.num_output;
        if (macs <= kWindowMacs)
            return macs > kFewWindowMacs && plan_few_windows(device, push, words, plan);
        plan_large_windows(device, words, plan);
        return true;
    }

    // Plans rectangles of pixels, whose depth is divided if they leave processors idle.
    void plan_large_windows(const GpuDevice& device, const Words& words, WindowPlan* plan) const {
        const uint32_t processors = std::max(device.features().processors, 16u);
        const uint32_t chunks = window_chunks(), across = (words[6].bits + 15) / 16;
        const uint32_t items = words[9].bits / (words[6].bits * words[7].bits);
        const auto divide = [&](const WindowTile& t, uint32_t groups) {
            const uint32_t x = across * ((words[7].bits + t.rows - 1) / t.rows) * items;
            const uint32_t y = (uint32_t)layer_.num_output / t.columns;
            const uint32_t most = std::min(chunks, (uint32_t)kMostSplits);
            *plan = {t, 0, 1, x, y, std::max(1u, std::min(most, groups * processors / (x * y)))};
        };
        if (outputs() % (int)kLargeWindows.columns) return divide(kSmallWindows, 4);
        divide(kLargeWindows, 2);
        // If groups would have one chunk of the channels each, smaller tiles are taken.
        if (plan->splits > 1 && plan->splits == chunks) divide(kSmallWindows, 4);
    }

    // Plans rows end to end, so that few pixels fill tiles. The weights of a row of taps are loaded
    // at once, since groups wait for their loads rather than multiply.
    bool plan_few_windows(const GpuDevice& device, const ConvPush& push, const Words& words,
                          WindowPlan* plan) const {
        const WindowAxis &w = push.g.x, &h = push.g.y;
        if (words[9].bits != (uint32_t)(w.out * h.out)) return false;  // several items
        const WindowTile& t = kFewWindows;
        // The padding before a row is that behind the last one.
        const uint32_t pitch = (uint32_t)(w.out + w.kernel - 1 - std::min(w.before, w.after));
        const uint32_t taps = (uint32_t)(w.kernel > 1 ? w.kernel : h.kernel), pixels = 16 * t.rows;
        const uint32_t x = ((uint32_t)h.out * pitch + pixels - 1) / pixels;
        const uint32_t y = (uint32_t)layer_.num_output / t.columns;
        const uint32_t rows = pixels + (h.kernel - 1) * pitch + w.kernel - 1 + 2 * taps * t.columns;
        const uint32_t bytes = rows * (kWindowDepth * 2 + 16) + 16;
        *plan = {t, pitch, taps, x, y, window_splits(device, x * y, window_chunks())};
        return bytes <= device.limits().maxComputeSharedMemorySize;
    }
    uint32_t window_chunks() const { return (uint32_t)(num_input_ / layer_.group / kWindowDepth); }

    void record_windows(Recorder& r, const ConvPush& push, Words words, const WindowPlan& plan,
                        std::vector<Binding> bindings, ChannelSums* sums) const {
        const WindowTile& t = plan.tile;
        words.back() = (int)plan.splits;
        Words constants = {f_.type, layer_.bias_term, layer_.add_input, false};
        const MatrixUnits& units = r.device().features().matrix;
        for (uint32_t word : {t.m * t.n * units.subgroup, t.rows, t.columns, t.m, t.n})
            constants.push_back(word);
        constants.push_back(push.g.x.kernel), constants.push_back(push.g.y.kernel);
        constants.push_back(plan.splits > 1);
        constants.push_back(plan.row_pitch), constants.push_back(plan.taps);
        const ConvTile tile = {(int)t.rows * 16, (int)t.columns, kWindowDepth, 1, 1, 1, 1};
        add_split(r, {tile, (int)plan.splits}, plan.x * plan.y, weight_, &bindings);
        add_sums(r, plan.x, words, sums, &bindings);
        constants.resize(18, 0), constants.push_back(sums != nullptr);
        r.dispatch(Shader::conv_window, constants, bindings, words, plan.x, plan.y, plan.splits);
    }

    // A blob for conv_direct.comp: the first scalar, and the steps of w, h, d, c, n of a
    // convolution.
    std::vector<uint32_t> direct_blob(const Value& value) const {
        const Strides s = value.strides();
        if (layer_.axes == 1) return {value.first, s.w, 0, 0, s.h, s.n};
        if (value.shape.dims == 1) return {value.first, 0, 0, 0, s.w, s.n};
        return {value.first, s.w, s.h, s.d, s.c, s.n};
    }

    int record_direct(Recorder& r, const ConvGeometry& g, const Values& in, const Value& out,
                      float pad_value, int bits) const {
        const bool last = out.layout == Layout::kChannelsLast;
        const uint32_t stored = last ? round4(g.num_output) : (uint32_t)g.num_output;
        std::vector<uint32_t> table;
        for (const Value* value : {&in[0], &out, &in.back()})
            for (uint32_t word : direct_blob(*value)) table.push_back(word);
        for (int WindowAxis::*field :
             {&WindowAxis::in, &WindowAxis::out, &WindowAxis::kernel, &WindowAxis::stride,
              &WindowAxis::dilation, &WindowAxis::before})
            for (const WindowAxis* axis : {&g.x, &g.y, &g.z})
                table.push_back((uint32_t)(axis->*field));
        for (int word : {g.num_output, (int)stored, g.num_input / g.group, outputs()})
            table.push_back((uint32_t)word);
        Binding sizes;
        QUOLL_RETURN_IF_ERROR(r.constants(table, &sizes));
        const uint32_t count = (uint32_t)(g.x.out * g.y.out * g.z.out * out.shape.n) * stored;
        Words constants = {f_.type, layer_.bias_term, layer_.add_input};
        add_int8(bits, &constants);
        r.dispatch_linear(
            Shader::conv_direct, constants,
            {r.read(in[0]), weight_, bias_or_any(), r.read(in.back()), r.write(out), sizes},
            {count, (int)last, pad_value, f_.a, f_.b}, count);
        return kOk;
    }

    const Convolution& layer_;
    const Activation f_;
    const bool int8_;
    bool as_bytes_ = false;    // multiplied as s8
    float input_scale_ = 1.f;  // with int8_
    int num_input_;
    Form form_ = Form::kDirect;
    uint32_t most_groups_ = 0;  // along an axis
    bool planar_ = false;       // reads uploads where they lie
    Binding weight_, planar_weight_, bias_;
};

}  // namespace

int make_convolution_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const Convolution* convolution = as<Convolution>(&layer);
    if (!convolution || convolution->dynamic_weight) return kOk;
    if (convolution->int8_scale_term ? convolution->int16_input()
                                     : convolution->weight_data.dtype != DType::f32)
        return kOk;
    std::unique_ptr<ConvolutionVulkan> form(
        new ConvolutionVulkan(*convolution, context.has_matrices()));
    QUOLL_RETURN_IF_ERROR(form->load(context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
