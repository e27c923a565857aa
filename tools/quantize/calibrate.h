// Runs samples through a model and collects what its blobs hold.
#ifndef QUOLL_TOOLS_QUANTIZE_CALIBRATE_H
#define QUOLL_TOOLS_QUANTIZE_CALIBRATE_H

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/model.h"
#include "quantize/histogram.h"
#include "quantize/samples.h"
#include "quoll/net.h"

namespace quoll {

// Called with the number of samples that are done, and of all; from one thread at a time.
typedef std::function<void(size_t done, size_t total)> ProgressSink;

struct Calibration {
    std::map<std::string, BlobStats> blobs;
    // Samples that could not be read or run; the log says why.
    std::vector<std::string> skipped;
    size_t used = 0;
};

struct CalibrateOptions {
    int threads = 1;           // each runs samples of its own
    bool strict = false;       // a sample that cannot be used is an error
    bool ranges_only = false;  // one pass, without histograms and means
    ProgressSink progress;
};

// Runs two passes over the samples: ranges first, then histograms. What is kept does not grow with
// the number of samples, except for two floats per sample and blob. Results do not depend on the
// number of threads. A blob that was never computed has no entry. Returns 0, or a negative code
// after a message.
int calibrate(const Model& model, const SampleSource& samples, const std::set<std::string>& blobs,
              const CalibrateOptions& options, Calibration* result);

// A Net of the model, for one run at a time in each of several threads. graph_fusion: as in
// load_model; fused blobs are then missing.
int make_quantize_net(const Model& model, int threads, bool graph_fusion, Net* net);

// Reads sample i and calls run() on it; failures are logged with the sample's name.
int run_sample(const SampleSource& samples, size_t i,
               const std::function<int(const Blobs& inputs)>& run);

// Blobs of one run, by name.
int run_blobs(const Net& net, const Blobs& given, const std::vector<std::string>& wanted,
              Blobs* blobs);

// Calls work(i) for i in [0, count) in `threads` threads, each i once; false from one ends all.
bool in_threads(size_t count, int threads, const std::function<bool(size_t i, int thread)>& work);

}  // namespace quoll

#endif
