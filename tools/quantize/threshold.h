// Chooses the range of a blob from what calibration has seen of it.
#ifndef QUOLL_TOOLS_QUANTIZE_THRESHOLD_H
#define QUOLL_TOOLS_QUANTIZE_THRESHOLD_H

#include <string>
#include <vector>

#include "quantize/histogram.h"

namespace quoll {

enum class Method {
    kKl,          // least divergence of the rounded from the measured distribution, as ncnn2table
    kAciq,        // the best clipping of a Gaussian or Laplacian of the same spread
    kEq,          // the scale that keeps the layers' outputs nearest, see eq_search.h
    kMinmax,      // everything
    kPercentile,  // all but a few of the values
    kMse,         // least squared error of the values
    kEma,         // moving average of the samples' ranges
    kLast,        // the last sample's range
    kConstant,    // one range for all
    kUnion,       // minmax, blobs that are joined sharing theirs
    kEnhanced,    // samples' ranges without outliers
};
// False if there is no such method. names: "kl|aciq|..." for help.
bool parse_method(const std::string& word, Method* method);
const char* method_name(Method method);
std::string method_names();

struct ThresholdOptions {
    Method method = Method::kMse;
    double percentile = 99.99;  // part of the values that is kept
    double ema_decay = 0.999;   // weight of what came before
    double enhance_ratio = 10;  // see enhanced_end
    ValueRange constant;        // of kConstant
};

// The range that is rounded to int8; not seen() if the blob had no finite value. symmetric: high is
// the threshold T for magnitudes of both signs, and low is -T; otherwise both ends are chosen
// separately, and the range includes 0.
ValueRange choose_range(const BlobStats& stats, const ThresholdOptions& options, bool symmetric);

// Thresholds of magnitudes, from a histogram with values other than 0.
double kl_threshold(const std::vector<double>& bins, double limit, int levels);
double aciq_threshold(const Histogram& histogram);
double percentile_threshold(const Histogram& histogram, double percentile);
// levels: 127 for symmetric int8, 255 for one-sided values with a zero point.
double mse_threshold(const Histogram& histogram, int levels);
// Drops the outermost of the samples' ends as long as that shrinks the whole range by more than
// `ratio` times the share of samples dropped.
float enhanced_end(std::vector<float> ends, double range, double ratio);

}  // namespace quoll

#endif
