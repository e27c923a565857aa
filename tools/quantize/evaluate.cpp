#include "quantize/evaluate.h"

#include <math.h>

#include <algorithm>
#include <chrono>

#include "quoll/log.h"
#include "quoll/status.h"
#include "validate/compare.h"

namespace quoll {

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
}

int run_outputs(const Net& net, const Blobs& inputs, std::vector<Mat>* outputs) {
    Extractor ex = net.create_extractor();
    for (const auto& input : inputs)
        QUOLL_RETURN_IF_ERROR(ex.input(input.first.c_str(), input.second));
    outputs->clear();
    for (int blob : net.output_indexes()) {
        Mat m;
        QUOLL_RETURN_IF_ERROR(ex.extract(blob, m));
        outputs->push_back(m);
    }
    return kOk;
}

// Keeps the best time.
int run_timed(const Net& net, const Blobs& inputs, double* ms, std::vector<Mat>* outputs) {
    const auto begin = std::chrono::steady_clock::now();
    QUOLL_RETURN_IF_ERROR(run_outputs(net, inputs, outputs));
    *ms = std::min(*ms, milliseconds_since(begin));
    return kOk;
}

// A task metric of the model before and of that after, if there is one.
class BothMetrics {
public:
    explicit BothMetrics(const MetricOptions& options) : name_(options.name) {
        if (!options.is_task()) return;
        before_ = make_metric(options), after_ = make_metric(options);
    }
    int add(const SampleSource& samples, size_t i, const std::vector<Mat>& expected,
            const std::vector<Mat>& got) {
        if (!before_) return kOk;
        std::string truth;
        if (!samples.truth(i, &truth)) truth = "";
        QUOLL_RETURN_IF_ERROR(before_->add(samples.name(i), truth, expected));
        return after_->add(samples.name(i), truth, got);
    }
    int finish(Accuracy* accuracy) {
        if (!before_) return kOk;
        accuracy->metric = name_, accuracy->less_is_better = before_->less_is_better();
        QUOLL_RETURN_IF_ERROR(before_->value(&accuracy->metric_before));
        return after_->value(&accuracy->metric_after);
    }

private:
    const std::string name_;
    std::unique_ptr<TaskMetric> before_, after_;
};

// Whether `label` is among the `count` largest values.
bool is_among(const Mat& scores, int label, int count) {
    const int total = (int)scores.logical_shape().total();
    const Mat flat = scores.dims == 1 ? scores : scores.reshape(total);
    if (flat.empty() || flat.dtype != DType::f32 || label >= total) return false;
    int above = 0;
    for (int i = 0; i < total; i++)
        above += flat[i] > flat[label] || (flat[i] == flat[label] && i < label);
    return above < count && std::isfinite(flat[label]);
}

template <class F>
double least(const std::vector<OutputAccuracy>& outputs, double best, F value) {
    for (const OutputAccuracy& output : outputs) best = std::min(best, value(output.agreement));
    return best;
}

}  // namespace

double Agreement::sqnr_db() const {
    const double kNoNoise = 200;
    if (noise <= 0) return kNoNoise;
    if (signal <= 0) return -kNoNoise;
    return std::min(kNoNoise, 10 * log10(signal / noise));
}

double Agreement::max_error() const { return range > 0 ? largest_error / range : largest_error; }

double Agreement::mean_error() const {
    const double mean = values > 0 ? error_sum / values : 0;
    return range > 0 ? mean / range : mean;
}

void Agreement::add(const Mat& got, const Mat& expected) {
    const Comparison c = compare(got, expected);
    pairs++;
    not_finite += c.same_shape ? c.only_got : 1;
    cosines += c.similarity;
    least_cosine = std::min(least_cosine, c.similarity);
    if (!c.same_shape) return;
    range = std::max(range, c.range > 0 ? c.range : c.largest);
    largest_error = std::max(largest_error, c.max_error);
    signal += c.signal, noise += c.noise, error_sum += c.error_sum;
    values += (double)c.compared;
    places++, same_argmax += c.pixel_accuracy;
}

void Agreement::add(const Agreement& other) {
    signal += other.signal, noise += other.noise, cosines += other.cosines;
    least_cosine = std::min(least_cosine, other.least_cosine);
    places += other.places, same_argmax += other.same_argmax;
    largest_error = std::max(largest_error, other.largest_error);
    error_sum += other.error_sum, values += other.values;
    range = std::max(range, other.range);
    pairs += other.pairs, not_finite += other.not_finite;
}

double Accuracy::cosine() const {
    return least(outputs, 1, [](const Agreement& a) { return a.cosine(); });
}
double Accuracy::sqnr_db() const {
    return least(outputs, 200, [](const Agreement& a) { return a.sqnr_db(); });
}
double Accuracy::argmax() const {
    return least(outputs, 1, [](const Agreement& a) { return a.argmax(); });
}

int ExactAnswers::begin() {
    const bool all = std::none_of(kept_.begin(), kept_.end(), [](auto& k) { return k.empty(); });
    if (net_ || (all && !kept_.empty())) return kOk;
    net_ = std::make_unique<Net>();
    QUOLL_RETURN_IF_ERROR(make_quantize_net(model_, threads_, true, net_.get()));
    names_.clear();
    for (const char* name : net_->output_names()) names_.push_back(name);
    return kOk;
}

int ExactAnswers::outputs(size_t i, const Blobs& inputs, std::vector<Mat>* outputs) {
    const size_t kMost = 256 << 20;  // bytes
    if (!kept_[i].empty()) return *outputs = kept_[i], kOk;
    QUOLL_RETURN_IF_ERROR(begin());
    QUOLL_RETURN_IF_ERROR(run_timed(*net_, inputs, &ms_, outputs));
    size_t bytes = 0;
    for (const Mat& m : *outputs) bytes += m.total() * m.elemsize;
    if (bytes_ + bytes > kMost) return kOk;
    for (const Mat& m : *outputs) kept_[i].push_back(m.clone());
    bytes_ += bytes;
    return kOk;
}

int ExactAnswers::run_again(const Blobs& inputs) {
    std::vector<Mat> outputs;
    return net_ ? run_timed(*net_, inputs, &ms_, &outputs) : kOk;
}

void ExactAnswers::end() {
    if (std::none_of(kept_.begin(), kept_.end(), [](auto& k) { return k.empty(); })) net_.reset();
}

int evaluate(const Model& before, const Model& after, const SampleSource& samples, int threads,
             const MetricOptions& metric, Accuracy* accuracy) {
    ExactAnswers exact(before, samples, threads);
    return evaluate(&exact, after, metric, accuracy);
}

int evaluate(ExactAnswers* before, const Model& after, const MetricOptions& metric,
             Accuracy* accuracy) {
    const SampleSource& samples = before->samples();
    Net rounded;
    QUOLL_RETURN_IF_ERROR(before->begin());
    QUOLL_RETURN_IF_ERROR(make_quantize_net(after, before->threads(), true, &rounded));
    for (const std::string& name : before->names()) {
        accuracy->outputs.emplace_back();
        accuracy->outputs.back().blob = name;
    }
    accuracy->ms_after = INFINITY;
    BothMetrics task_metric(metric);
    Blobs last;
    for (size_t i = 0; i < samples.count(); i++) {
        std::vector<Mat> expected, got;
        const auto run = [&](const Blobs& inputs) {
            QUOLL_RETURN_IF_ERROR(before->outputs(i, inputs, &expected));
            last = inputs;
            return (int)kOk;
        };
        if (run_sample(samples, i, run) != kOk) continue;
        QUOLL_RETURN_IF_ERROR(run_timed(rounded, last, &accuracy->ms_after, &got));
        accuracy->samples++;
        for (size_t o = 0; o < expected.size(); o++)
            accuracy->outputs[o].agreement.add(got[o], expected[o]);
        QUOLL_RETURN_IF_ERROR(task_metric.add(samples, i, expected, got));
        const int label = samples.label(i);
        if (label < 0 || expected.empty()) continue;
        TaskAccuracy& task = accuracy->task;
        task.labelled++;
        task.top1_before += is_among(expected[0], label, 1);
        task.top1_after += is_among(got[0], label, 1);
        task.top5_before += is_among(expected[0], label, 5);
        task.top5_after += is_among(got[0], label, 5);
    }
    // Few samples give few times: some more, in turn.
    const auto begin = std::chrono::steady_clock::now();
    const size_t kRuns = 30;
    const double kMost = 200;  // milliseconds
    for (size_t i = accuracy->samples; !last.empty() && i < kRuns; i++) {
        std::vector<Mat> got;
        QUOLL_RETURN_IF_ERROR(before->run_again(last));
        QUOLL_RETURN_IF_ERROR(run_timed(rounded, last, &accuracy->ms_after, &got));
        if (milliseconds_since(begin) > kMost) break;
    }
    accuracy->ms_before = before->best_ms();
    before->end();
    if (accuracy->samples > 0) return task_metric.finish(accuracy);
    QUOLL_LOGE("none of the %zu samples to judge with can be used", samples.count());
    return kError;
}

int layer_errors(const Model& before, const Model& after, const std::vector<LayerChoice>& layers,
                 const SampleSource& samples, int threads, std::vector<LayerErrors>* errors) {
    errors->assign(layers.size(), LayerErrors());
    Net exact, rounded;
    QUOLL_RETURN_IF_ERROR(make_quantize_net(before, threads, false, &exact));
    QUOLL_RETURN_IF_ERROR(make_quantize_net(after, threads, false, &rounded));
    std::vector<std::string> inputs, outputs;
    for (const LayerChoice& choice : layers) {
        inputs.push_back(before.layers[choice.layer].inputs[0]);
        outputs.push_back(before.layers[choice.layer].outputs[0]);
        const Mat weight = float_weight(before.layers[choice.layer], "weight_data");
        const Mat now = dequantized_weight(after.layers[choice.layer]);
        if (!weight.empty() && !now.empty() && weight.w == now.w)
            (*errors)[inputs.size() - 1].weights.add(now, weight);
    }
    std::vector<std::string> wanted = outputs;
    wanted.insert(wanted.end(), inputs.begin(), inputs.end());
    for (size_t i = 0; i < samples.count(); i++) {
        Blobs given, expected, got;
        const auto run = [&](const Blobs& sample) {
            given = sample;
            return run_blobs(exact, sample, wanted, &expected);
        };
        if (run_sample(samples, i, run) != kOk) continue;
        QUOLL_RETURN_IF_ERROR(run_blobs(rounded, given, outputs, &got));
        for (size_t k = 0; k < layers.size(); k++) {
            Blobs own, alone;
            // A layer may have inputs besides the one that is rounded.
            for (const std::string& input : before.layers[layers[k].layer].inputs) {
                const auto known = expected.find(input);
                if (known != expected.end()) own[input] = known->second;
            }
            if (own.size() < before.layers[layers[k].layer].inputs.size())
                own.insert(given.begin(), given.end());
            QUOLL_RETURN_IF_ERROR(run_blobs(rounded, own, {outputs[k]}, &alone));
            (*errors)[k].own.add(alone[outputs[k]], expected[outputs[k]]);
            (*errors)[k].cumulative.add(got[outputs[k]], expected[outputs[k]]);
        }
    }
    return kOk;
}

}  // namespace quoll
