#include "quantize/eq_search.h"

#include <math.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "quantize/evaluate.h"
#include "quantize/targets.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// The inputs and exact outputs of the layers, by sample.
typedef std::vector<Blobs> Exact;

// A layer by itself.
Model alone(const ModelLayer& layer) {
    Model model;
    model.add("Input", "input", {}, {layer.inputs[0]});
    model.layers.push_back(layer);
    return model;
}

// A layer whose input is searched for, and what it becomes.
struct Reader {
    const ModelLayer* layer;
    bool affine;                // else int8
    std::vector<float> scales;  // of its weights
};

// Noise in parts of the signal, of a layer that rounds its input by this range.
int noise_of(const Reader& reader, const ValueRange& range, const Exact& samples, double* noise) {
    const ModelLayer& layer = *reader.layer;
    Model model = alone(layer);
    if (reader.affine)
        QUOLL_RETURN_IF_ERROR(make_affine(1, reader.scales, range, &model));
    else
        QUOLL_RETURN_IF_ERROR(
            make_int8(&model.layers[1], reader.scales, 127.f / range.magnitude()));
    Net net;
    QUOLL_RETURN_IF_ERROR(make_quantize_net(model, 1, false, &net));
    Agreement sum;
    for (const Blobs& blobs : samples) {
        Extractor ex = net.create_extractor();
        Mat got;
        QUOLL_RETURN_IF_ERROR(ex.input(layer.inputs[0].c_str(), blobs.at(layer.inputs[0])));
        QUOLL_RETURN_IF_ERROR(ex.extract(layer.outputs[0].c_str(), got));
        sum.add(got, blobs.at(layer.outputs[0]));
    }
    *noise = sum.signal > 0 ? sum.noise / sum.signal : 0;
    return kOk;
}

// symmetric: of int8, which has no zero points.
std::vector<ValueRange> candidates_of(const BlobStats& stats, const ThresholdOptions& options,
                                      bool symmetric) {
    ValueRange whole = stats.range;
    if (symmetric) whole.high = whole.magnitude(), whole.low = -whole.high;
    whole.low = std::min(whole.low, 0.f), whole.high = std::max(whole.high, 0.f);
    std::vector<ValueRange> found;
    for (int tenth = 10; tenth >= 3; tenth--) {
        ValueRange part;
        part.low = whole.low * (float)tenth / 10, part.high = whole.high * (float)tenth / 10;
        found.push_back(part);
    }
    ThresholdOptions other = options;
    for (Method method : {Method::kMse, Method::kPercentile}) {
        other.method = method;
        found.push_back(choose_range(stats, other, symmetric));
    }
    return found;
}

int run_exact(const Model& model, const SampleSource& samples,
              const std::vector<std::string>& blobs, int threads, Exact* exact) {
    Net net;
    QUOLL_RETURN_IF_ERROR(make_quantize_net(model, threads, false, &net));
    for (size_t i = 0; i < samples.count(); i++) {
        Blobs all;
        const auto run = [&](const Blobs& inputs) { return run_blobs(net, inputs, blobs, &all); };
        if (run_sample(samples, i, run) == kOk) exact->push_back(all);
    }
    if (!exact->empty()) return kOk;
    QUOLL_LOGE("method eq: none of its samples can be used");
    return kError;
}

}  // namespace

int search_ranges(const Model& model, const Calibration& calibration, const SampleSource& samples,
                  int threads, const ProgressSink& progress, QuantizeOptions* options) {
    std::map<std::string, std::vector<Reader>> readers;
    std::vector<std::string> blobs;
    for (const Int8Target& target : int8_targets(model)) {
        const ModelLayer& layer = model.layers[target.layer];
        const auto seen = calibration.blobs.find(target.source);
        const std::string kind = kind_of_layer(*options, target.name);
        if (target.already || !is_static_kind(kind) || kind == kInt16Kind ||
            layer.inputs.size() != 1 || seen == calibration.blobs.end() ||
            !(seen->second.range.magnitude() > 0.f))
            continue;
        const bool affine = kind == "affine";
        const Reader reader = {&layer, affine, weight_scales(layer, options->weights, affine)};
        if (reader.scales.empty()) continue;
        readers[target.source].push_back(reader);
        blobs.push_back(layer.inputs[0]);
        blobs.push_back(layer.outputs[0]);
    }
    Exact exact;
    if (readers.empty()) return kOk;
    QUOLL_RETURN_IF_ERROR(run_exact(model, samples, blobs, threads, &exact));
    const std::vector<std::pair<std::string, std::vector<Reader>>> jobs(readers.begin(),
                                                                        readers.end());
    std::mutex lock;
    size_t done = 0;
    const bool good = in_threads(jobs.size(), threads, [&](size_t i, int) {
        const std::vector<Reader>& layers = jobs[i].second;
        const bool symmetric =
            std::none_of(layers.begin(), layers.end(), [](const Reader& r) { return r.affine; });
        double least = INFINITY;
        ValueRange best;
        for (const ValueRange& range :
             candidates_of(calibration.blobs.at(jobs[i].first), options->thresholds, symmetric)) {
            if (!(range.magnitude() > 0.f)) continue;
            double sum = 0;
            for (const Reader& reader : layers) {
                double noise = 0;
                if (noise_of(reader, range, exact, &noise)) return false;
                sum += noise;
            }
            if (sum < least) least = sum, best = range;
        }
        const std::lock_guard<std::mutex> guard(lock);
        options->searched[jobs[i].first] = best;
        if (progress) progress(++done, jobs.size());
        return true;
    });
    return good ? kOk : kError;
}

}  // namespace quoll
