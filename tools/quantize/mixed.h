// Automatic mixed precision: which layers stay in float.
#ifndef QUOLL_TOOLS_QUANTIZE_MIXED_H
#define QUOLL_TOOLS_QUANTIZE_MIXED_H

#include <string>
#include <vector>

#include "quantize/evaluate.h"
#include "quantize/quantize.h"

namespace quoll {

struct MixedOptions {
    MetricOptions metric;
    double max_drop = -1;  // < 0: none is asked for
    double max_ms = -1, max_bytes = -1;
    int threads = 1;
};

// "0.5%" or "0.005".
bool parse_part(const std::string& text, double* part);
// "size=4MB,time=10ms"; false if it is no such list.
bool parse_budget(const std::string& text, MixedOptions* options);

// top1, top5: the share of the labelled samples that is lost; cosine: 1 - cosine; sqnr: noise as a
// share of the signal; others: what the metric lost (wer: gained).
double drop_of(const Accuracy& accuracy, const std::string& metric);

// A point of the frontier: these layers, and those of the points before it, stay in float, or get
// inputs of 16 bits.
struct FrontierPoint {
    std::vector<std::string> layers;
    size_t float_layers = 0;
    double drop = 0, ms = 0, bytes = 0;  // ms of a sample, of this machine's kernels
    bool chosen = false;
    std::string kind = "float";  // or a16w8
};

// Measures what each int8 layer costs in accuracy by itself, then leaves the worst in float, more
// and more of them, and measures the whole. Chosen is the point with the fewest float layers whose
// drop is at most max_drop, or the one of least drop within the budget. Inputs of 16 bits are tried
// instead of float at the former, to be chosen if they are good enough and no slower, and where
// float is beyond the budget. The layers of the point are put into options->layers. 0, or a
// negative code after a message, as when no point will do.
int choose_mixed(const Model& original, const Model& model, const Calibration& calibration,
                 const SampleSource& samples, const MixedOptions& mixed,
                 const ProgressSink& progress, QuantizeOptions* options,
                 std::vector<FrontierPoint>* frontier);

}  // namespace quoll

#endif
