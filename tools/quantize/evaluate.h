// How far a quantised model is from the original.
#ifndef QUOLL_TOOLS_QUANTIZE_EVALUATE_H
#define QUOLL_TOOLS_QUANTIZE_EVALUATE_H

#include <math.h>

#include <memory>
#include <string>
#include <vector>

#include "quantize/metric.h"
#include "quantize/quantize.h"

namespace quoll {

// Agreement of two arrays of the same values, one of them exact; or of several such pairs together.
struct Agreement {
    double signal = 0, noise = 0;  // sums of squares
    double cosines = 0;            // sum over pairs
    double least_cosine = 1;
    double places = 0, same_argmax = 0;  // see Comparison::pixel_accuracy
    double largest_error = 0, error_sum = 0, values = 0, range = 0;
    size_t pairs = 0, not_finite = 0;

    void add(const Mat& got, const Mat& expected);
    void add(const Agreement& other);
    double cosine() const { return pairs ? cosines / (double)pairs : 1; }
    double sqnr_db() const;  // 200 where there is no noise
    double argmax() const { return places > 0 ? same_argmax / places : 1; }
    // The error as a share of the expected values' range.
    double max_error() const;
    double mean_error() const;
};

struct OutputAccuracy {
    std::string blob;
    Agreement agreement;
};

// Accuracy on samples with labels, by the first output.
struct TaskAccuracy {
    size_t labelled = 0;
    size_t top1_before = 0, top1_after = 0, top5_before = 0, top5_after = 0;
};

struct Accuracy {
    size_t samples = 0;
    std::vector<OutputAccuracy> outputs;
    TaskAccuracy task;
    // Of a TaskMetric.
    std::string metric;  // "": none
    double metric_before = 0, metric_after = 0;
    bool less_is_better = false;
    double ms_before = 0, ms_after = 0;  // best of the runs, of one sample
    // Over all outputs: the lowest cosine and SQNR, and the lowest argmax agreement.
    double cosine() const;
    double sqnr_db() const;
    double argmax() const;
};

// The answers of a model to samples, with which many others are compared. Each is computed once, as
// long as they fit into some memory.
class ExactAnswers {
public:
    ExactAnswers(const Model& model, const SampleSource& samples, int threads)
        : model_(model), samples_(samples), threads_(threads), kept_(samples.count()) {}
    const SampleSource& samples() const { return samples_; }
    int threads() const { return threads_; }
    const std::vector<std::string>& names() const { return names_; }
    // The shortest time of a run so far.
    double best_ms() const { return ms_; }

    // Loads the model, if there are still runs to come.
    int begin();
    // The outputs for sample i, with these inputs.
    int outputs(size_t i, const Blobs& inputs, std::vector<Mat>* outputs);
    // Runs once more for the time; does nothing if the model is not loaded.
    int run_again(const Blobs& inputs);
    // Frees the model if all answers are kept.
    void end();

private:
    const Model& model_;
    const SampleSource& samples_;
    const int threads_;
    std::unique_ptr<Net> net_;
    std::vector<std::string> names_;
    std::vector<std::vector<Mat>> kept_;  // by sample; empty: not kept
    size_t bytes_ = 0;
    double ms_ = INFINITY;
};

// Runs a model on all samples as an application would, with several threads for each layer. Samples
// that cannot be read are left out. Returns 0, or a negative code after a message.
int evaluate(ExactAnswers* before, const Model& after, const MetricOptions& metric,
             Accuracy* accuracy);
// The same for one pair of models.
int evaluate(const Model& before, const Model& after, const SampleSource& samples, int threads,
             const MetricOptions& metric, Accuracy* accuracy);

// The three errors of each quantised layer: of the layer alone from exact inputs, of its weights,
// and of the run up to it.
struct LayerErrors {
    Agreement own;         // from exact inputs: of this layer alone
    Agreement weights;     // of its weights
    Agreement cumulative;  // in a run of the whole model
};
// layers: what quantize_model chose; samples: a few. By index of `layers`.
int layer_errors(const Model& before, const Model& after, const std::vector<LayerChoice>& layers,
                 const SampleSource& samples, int threads, std::vector<LayerErrors>* errors);

}  // namespace quoll

#endif
