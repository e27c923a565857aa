// What enginequantize --report writes.
#ifndef QUOLL_TOOLS_QUANTIZE_REPORT_H
#define QUOLL_TOOLS_QUANTIZE_REPORT_H

#include <string>
#include <vector>

#include "quantize/evaluate.h"
#include "quantize/mixed.h"

namespace quoll {

// Errors of a layer, as a share of its output's range, beyond which the report marks it.
struct ErrorLimits {
    double max = 1.0, mean = 1e-2;
};

struct QuantizeReport {
    std::string model;  // its file
    std::string method;
    Calibration calibration;
    std::vector<LayerChoice> layers;
    Accuracy accuracy;
    bool held_out = false;            // the samples of `accuracy` were not calibrated with
    std::vector<LayerErrors> errors;  // by layer
    ErrorLimits limits;
    int64_t bytes_before = 0, bytes_after = 0;
    double calibration_seconds = 0;
    int equalised = 0;  // blobs whose channels were brought to like ranges
    // Layers that method best left in float, and by how many dB each brings the outputs nearer.
    std::vector<std::pair<std::string, double>> in_float;
    std::string metric;  // of the frontier
    std::vector<FrontierPoint> frontier;
};

// What could be done about the layers that cost most accuracy, a sentence each.
std::vector<std::string> advice(const QuantizeReport& report);
std::string report_json(const QuantizeReport& report);
// A page that needs nothing besides itself.
std::string report_html(const QuantizeReport& report);

}  // namespace quoll

#endif
