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

// Noise in parts of the signal, of a layer that rounds its input with this scale.
int noise_of(const ModelLayer& exact, const std::vector<float>& weights, float scale,
             const Exact& samples, double* noise) {
    ModelLayer layer = exact;
    QUOLL_RETURN_IF_ERROR(make_int8(&layer, weights, scale));
    Net net;
    QUOLL_RETURN_IF_ERROR(make_quantize_net(alone(layer), 1, false, &net));
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

std::vector<double> candidates_of(const BlobStats& stats, const ThresholdOptions& options) {
    const double most = stats.range.magnitude();
    std::vector<double> found;
    for (int tenth = 10; tenth >= 3; tenth--) found.push_back(most * tenth / 10);
    ThresholdOptions other = options;
    for (Method method : {Method::kMse, Method::kPercentile}) {
        other.method = method;
        found.push_back(choose_range(stats, other, true).magnitude());
    }
    return found;
}

int run_exact(const Model& model, const SampleSource& samples,
              const std::vector<std::string>& blobs, int threads, Exact* exact) {
    Net net;
    QUOLL_RETURN_IF_ERROR(make_quantize_net(model, threads, false, &net));
    for (size_t i = 0; i < samples.count(); i++) {
        Blobs inputs, all;
        if (samples.read(i, &inputs) != kOk) continue;
        Extractor ex = net.create_extractor();
        ex.set_light_mode(false);
        for (const auto& input : inputs)
            QUOLL_RETURN_IF_ERROR(ex.input(input.first.c_str(), input.second));
        for (const std::string& blob : blobs)
            QUOLL_RETURN_IF_ERROR(ex.extract(blob.c_str(), all[blob]));
        exact->push_back(all);
    }
    if (!exact->empty()) return kOk;
    QUOLL_LOGE("method eq: none of its samples can be read");
    return kError;
}

}  // namespace

int search_ranges(const Model& model, const Calibration& calibration, const SampleSource& samples,
                  int threads, const ProgressSink& progress, QuantizeOptions* options) {
    std::map<std::string, std::vector<const ModelLayer*>> readers;
    std::vector<std::string> blobs;
    for (const Int8Target& target : int8_targets(model)) {
        const ModelLayer& layer = model.layers[target.layer];
        const auto seen = calibration.blobs.find(target.source);
        if (target.already || layer.inputs.size() != 1 || seen == calibration.blobs.end() ||
            !(seen->second.range.magnitude() > 0.f))
            continue;
        readers[target.source].push_back(&layer);
        blobs.push_back(layer.inputs[0]);
        blobs.push_back(layer.outputs[0]);
    }
    Exact exact;
    if (readers.empty()) return kOk;
    QUOLL_RETURN_IF_ERROR(run_exact(model, samples, blobs, threads, &exact));
    const std::vector<std::pair<std::string, std::vector<const ModelLayer*>>> jobs(readers.begin(),
                                                                                   readers.end());
    std::mutex lock;
    size_t done = 0;
    const bool good = in_threads(jobs.size(), threads, [&](size_t i, int) {
        const BlobStats& stats = calibration.blobs.at(jobs[i].first);
        double least = INFINITY, best = stats.range.magnitude();
        for (double t : candidates_of(stats, options->thresholds)) {
            double sum = 0;
            for (const ModelLayer* layer : jobs[i].second) {
                const std::vector<float> weights = weight_scales(*layer, options->weights);
                double noise = 0;
                if (weights.empty()) continue;
                if (noise_of(*layer, weights, (float)(127 / t), exact, &noise)) return false;
                sum += noise;
            }
            if (sum < least) least = sum, best = t;
        }
        const std::lock_guard<std::mutex> guard(lock);
        ValueRange& range = options->searched[jobs[i].first];
        range.high = (float)best, range.low = (float)-best;
        if (progress) progress(++done, jobs.size());
        return true;
    });
    return good ? kOk : kError;
}

}  // namespace quoll
