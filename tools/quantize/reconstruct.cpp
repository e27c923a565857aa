#include "quantize/reconstruct.h"

#include <math.h>

#include <algorithm>
#include <mutex>

#include "layer/nn/convolution.h"
#include "layer/nn/innerproduct.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

const int kWidest = 4608;         // 3x3 convolutions of 512 channels
const int kPlaces = 256;          // of an output that are looked at, of each sample
const size_t kMost = 96u << 20u;  // moments that are held at a time, in floats

// Sums over rows x of x x^T, by group.
struct Moments {
    int groups = 1, width = 0;
    std::vector<float> sums;
    const float* of(int group) const { return &sums[(size_t)group * width * width]; }
    float* of(int group) { return &sums[(size_t)group * width * width]; }
};

// rows^T rows, on the engine's own product.
class GramNet {
public:
    int load() {
        Model model;
        model.add("Input", "a", {}, {"a"});
        model.add("Input", "b", {}, {"b"});
        model.add("Gemm", "product", {"a", "b"}, {"c"}).set("transA", 1);
        return make_quantize_net(model, 1, false, &net_);
    }
    int add(const Mat& rows, float* sums) const {
        Extractor ex = net_.create_extractor();
        Mat product;
        QUOLL_RETURN_IF_ERROR(ex.input("a", rows));
        QUOLL_RETURN_IF_ERROR(ex.input("b", rows));
        QUOLL_RETURN_IF_ERROR(ex.extract("c", product));
        for (int y = 0; y < product.h; y++)
            for (int x = 0; x < product.w; x++)
                sums[(size_t)y * product.w + x] += product.row(y)[x];
        return kOk;
    }

private:
    Net net_;
};

// What a layer multiplies by a row of weights: patches of a convolution's input, rows of an inner
// product's.
class Patches {
public:
    explicit Patches(const ModelLayer& layer) : op_(layer.make_operator()) {}

    int count(const Mat& input) {
        const Convolution* conv = as<Convolution>(op_.get());
        if (!conv) return input.dims == 2 ? input.h : 1;
        std::vector<Shape> out;
        if (op_->infer_shapes({input.logical_shape()}, out)) return 0;
        if (conv->axes == 1) return width_ = out[0].w;
        if (out[0].dims < 3) return 1;
        width_ = out[0].w, height_ = out[0].h;
        return (int)(out[0].total() / out[0].c);
    }
    void read(const Mat& input, int place, int group, int width, float* to) const {
        const Convolution* conv = as<Convolution>(op_.get());
        if (conv && (conv->axes != 2 || input.dims == 3))
            return patch(*conv, conv_channels(*conv, input), place, group, width, to);
        if (input.dims <= 2) {
            const float* row = input.dims == 2 && !conv ? input.row(place) : (const float*)input;
            std::copy(row + group * width, row + (group + 1) * width, to);
            return;
        }
        const int each = input.w * input.h * input.d;
        for (int q = 0; q < input.c && (q + 1) * each <= width; q++)
            std::copy((const float*)input.channel(q), (const float*)input.channel(q) + each,
                      to + q * each);
    }

private:
    // Padding of the word SAME counts as none: other places are looked at then.
    void patch(const Convolution& s, const Mat& input, int place, int group, int width,
               float* to) const {
        const int left = place % width_ * s.stride_w - std::max(0, s.pad_left);
        const int top = place / width_ % height_ * s.stride_h - std::max(0, s.pad_top);
        const int front = place / width_ / height_ * s.stride_d - std::max(0, s.pad_front);
        const int channels = width / s.maxk();
        for (int q = 0; q < channels; q++) {
            const Mat m = input.channel(group * channels + q);
            for (int k = 0; k < s.kernel_d * s.kernel_h; k++) {
                const int z = front + k / s.kernel_h * s.dilation_d;
                const int y = top + k % s.kernel_h * s.dilation_h;
                const bool row = z >= 0 && z < input.d && y >= 0 && y < input.h;
                for (int kx = 0; kx < s.kernel_w; kx++) {
                    const int x = left + kx * s.dilation_w;
                    *to++ = row && x >= 0 && x < input.w ? m.depth(z).row(y)[x] : 0.f;
                }
            }
        }
    }

    std::unique_ptr<Layer> op_;
    int width_ = 1, height_ = 1;  // of the output
};

int add_moments(const GramNet& gram, const ModelLayer& layer, const Mat& input, Moments* moments) {
    Patches patches(layer);
    const int count = patches.count(input), taken = std::min(count, kPlaces);
    if (taken == 0) return kOk;
    Mat rows(moments->width, taken);
    if (rows.empty()) return kOutOfMemory;
    for (int g = 0; g < moments->groups; g++) {
        for (int i = 0; i < taken; i++)
            patches.read(input, (int)((int64_t)i * count / taken), g, moments->width, rows.row(i));
        if (moments->width > 32) {
            QUOLL_RETURN_IF_ERROR(gram.add(rows, moments->of(g)));
            continue;
        }
        float* sums = moments->of(g);
        for (int i = 0; i < taken; i++)
            for (int y = 0; y < rows.w; y++)
                for (int x = 0; x < rows.w; x++)
                    sums[y * rows.w + x] += rows.row(i)[y] * rows.row(i)[x];
    }
    return kOk;
}

// Values that are never seen, or always together, must not wander.
void dampen(Moments* moments) {
    for (int g = 0; g < moments->groups; g++) {
        float* sums = moments->of(g);
        double mean = 0;
        for (int i = 0; i < moments->width; i++) mean += sums[(size_t)i * (moments->width + 1)];
        const float added = (float)(0.01 * mean / moments->width + 1e-20);
        for (int i = 0; i < moments->width; i++) sums[(size_t)i * (moments->width + 1)] += added;
    }
}

// Coordinate descent on r^T H r, r = weights less what their integers stand for.
void round_row(const WeightGrid& grid, int row, const float* moments, signed char* q) {
    const int width = grid.width;
    const float* w = (const float*)grid.weight + (size_t)row * width;
    std::vector<float> lost((size_t)width), slope((size_t)width, 0.f);
    for (int i = 0; i < width; i++) {
        q[i] = (signed char)grid.nearest(row, i, w[i]);
        lost[(size_t)i] = w[i] - grid.value(row, i, q[i]);
    }
    const auto follow = [&](int i, float by) {
        const float* h = moments + (size_t)i * width;
        for (int j = 0; j < width; j++) slope[(size_t)j] += by * h[j];
    };
    for (int i = 0; i < width; i++) follow(i, lost[(size_t)i]);
    const int kSweeps = 4;
    for (int sweep = 0; sweep < kSweeps; sweep++) {
        bool changed = false;
        for (int i = 0; i < width; i++) {
            const float scale = grid.scale_of(row, i);
            const float best = slope[(size_t)i] / moments[(size_t)i * (width + 1)] * scale;
            const float to = grid.clamp(q[i] + roundf(best));
            const float step = to - q[i];
            if (step == 0.f || !std::isfinite(step)) continue;
            q[i] = (signed char)to;
            follow(i, -step / scale);
            changed = true;
        }
        if (!changed) break;
    }
}

// The squared error of the outputs from rounding each weight to the nearest, of some rows, as if
// inputs had nothing to do with each other. inputs: as of RoundedLayer.
double rounding_cost(const WeightGrid& grid, const Moments& moments,
                     const std::vector<float>& inputs) {
    double cost = 0;
    for (int row = 0; row < grid.rows; row++) {
        const float* w = (const float*)grid.weight + (size_t)row * grid.width;
        for (int i = 0; i < grid.width; i++) {
            const float lost = w[i] - grid.value(row, i, grid.nearest(row, i, w[i]));
            const double out = (double)lost * inputs[(size_t)i];
            cost += out * out * moments.sums[(size_t)i * (grid.width + 1)];
        }
    }
    return cost;
}

// `rows` of the grid's, spread evenly, with weights divided by `inputs`.
WeightGrid divided(const WeightGrid& grid, int rows, const std::vector<float>& inputs) {
    WeightGrid part = grid;
    part.rows = rows;
    part.weight = Mat(rows * grid.width);
    for (int row = 0; row < rows && !part.weight.empty(); row++) {
        const size_t from = (size_t)((int64_t)row * grid.rows / rows) * grid.width;
        for (int i = 0; i < grid.width; i++)
            part.weight[(size_t)row * grid.width + i] = grid.weight[from + i] / inputs[(size_t)i];
    }
    if (!part.weight.empty()) grid.fit(&part);
    return part;
}

// Factors of inputs, and the grid and moments as they are with them. None if they gain nothing.
std::vector<float> scale_inputs(WeightGrid* grid, Moments* moments) {
    const int width = grid->width, some = std::min(grid->rows, 64);
    std::vector<double> sizes;
    double mean = 0;
    for (int i = 0; i < width; i++) {
        sizes.push_back(0.5 * log((double)moments->sums[(size_t)i * (width + 1)]));
        mean += sizes.back() / width;
    }
    std::vector<float> best, none((size_t)width, 1.f);
    const WeightGrid plain = divided(*grid, some, none);
    if (plain.weight.empty()) return {};
    double least = rounding_cost(plain, *moments, none) * 0.99;
    for (double power : {0.15, 0.3, 0.45, 0.6, 0.8}) {
        std::vector<float> inputs;
        for (double size : sizes) inputs.push_back((float)exp(-power * (size - mean)));
        const WeightGrid part = divided(*grid, some, inputs);
        const double cost = part.weight.empty() ? INFINITY : rounding_cost(part, *moments, inputs);
        if (cost < least) least = cost, best = inputs;
    }
    if (best.empty()) return {};
    const WeightGrid all = divided(*grid, grid->rows, best);
    if (all.weight.empty()) return {};
    *grid = all;
    for (int i = 0; i < width; i++)
        for (int j = 0; j < width; j++)
            moments->sums[(size_t)i * width + j] *= best[(size_t)i] * best[(size_t)j];
    return best;
}

class Reconstruction {
public:
    Reconstruction(const Model& model, const std::map<int, WeightGrid>& grids, int threads)
        : model_(model), grids_(grids), threads_(threads) {}

    int run(const SampleSource& samples, const ProgressSink& progress, RoundedWeights* rounded) {
        QUOLL_RETURN_IF_ERROR(make_quantize_net(model_, threads_, false, &net_));
        QUOLL_RETURN_IF_ERROR(gram_.load());
        std::vector<int> part;
        size_t held = 0, done = 0;
        for (const auto& grid : grids_) {
            const size_t size = (size_t)grid.second.width * grid.second.width * grid.second.groups;
            done++;
            if (grid.second.width > kWidest || size > kMost) continue;
            if (held + size > kMost) {
                QUOLL_RETURN_IF_ERROR(round_part(part, samples, rounded));
                part.clear(), held = 0;
                if (progress) progress(done, grids_.size());
            }
            part.push_back(grid.first), held += size;
        }
        return part.empty() ? kOk : round_part(part, samples, rounded);
    }

private:
    int round_part(const std::vector<int>& part, const SampleSource& samples,
                   RoundedWeights* rounded) {
        std::map<int, Moments> moments;
        for (int layer : part) {
            Moments& m = moments[layer];
            const WeightGrid& grid = grids_.at(layer);
            m.groups = grid.groups, m.width = grid.width;
            m.sums.assign((size_t)m.groups * m.width * m.width, 0.f);
        }
        for (size_t i = 0; i < samples.count(); i++) {
            Blobs blobs;
            const auto run = [&](const Blobs& inputs) {
                return run_blobs(net_, inputs, input_blobs(part), &blobs);
            };
            if (run_sample(samples, i, run) != kOk) continue;
            const bool good = in_threads(part.size(), threads_, [&](size_t k, int) {
                const ModelLayer& layer = model_.layers[part[k]];
                return add_moments(gram_, layer, blobs[layer.inputs[0]], &moments[part[k]]) == kOk;
            });
            if (!good) return kError;
        }
        for (auto& m : moments) round_layer(m.first, &m.second, rounded);
        return kOk;
    }

    std::vector<std::string> input_blobs(const std::vector<int>& part) const {
        std::vector<std::string> names;
        for (int layer : part) names.push_back(model_.layers[layer].inputs[0]);
        return names;
    }

    void round_layer(int layer, Moments* moments, RoundedWeights* rounded) const {
        WeightGrid grid = grids_.at(layer);
        dampen(moments);
        RoundedLayer& result = (*rounded)[model_.layers[layer].name];
        if (grid.fit) result.inputs = scale_inputs(&grid, moments);
        std::vector<signed char>& q = result.values;
        q.resize((size_t)grid.rows * grid.width);
        in_threads((size_t)grid.rows, threads_, [&](size_t row, int) {
            const int group = (int)row / (grid.rows / grid.groups);
            round_row(grid, (int)row, moments->of(group), &q[row * grid.width]);
            return true;
        });
    }

    const Model& model_;
    const std::map<int, WeightGrid>& grids_;
    const int threads_;
    Net net_;
    GramNet gram_;
};

}  // namespace

int reconstruct_weights(const Model& model, const std::map<int, WeightGrid>& grids,
                        const SampleSource& samples, int threads, const ProgressSink& progress,
                        RoundedWeights* rounded) {
    return Reconstruction(model, grids, threads).run(samples, progress, rounded);
}

}  // namespace quoll
