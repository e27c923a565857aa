// Times of the candidates of a convolution, and what the library expects of them.
#ifndef QUOLL_BENCHMARK_CONV_CANDIDATES_H
#define QUOLL_BENCHMARK_CONV_CANDIDATES_H

#include <string>
#include <utility>
#include <vector>

#include "fit_costs.h"
#include "layer/cpu/conv/conv_runner.h"

namespace quoll {

// A convolution without groups on blobs as the library packs them.
ConvShape conv_shape(const ConvGeometry& g);

// Times the candidates of convolutions and tells of each, in a line of `text()`: GFLOP/s of vectors
// (direct, Winograd) and of split products on tile units (6, 3, 1; see
// layer/cpu/gemm/split_gemm.h), then the cycles of one core that the rule which chooses expects, in
// millions, and in brackets what 2.4 GHz make of the measured time. The candidates take turns;
// medians, of processor time with one thread. The candidate that the library takes (of vectors and
// 6 products) is marked with a star, and the last figure is its regret: how much longer it takes
// than the fastest of them.
class ConvCandidateTimes {
public:
    explicit ConvCandidateTimes(int threads) : threads_(threads) {}
    // A shape that was there before counts again, but is not timed again.
    void add(const ConvShape& shape);
    const std::string& text() const { return text_; }
    // What was measured on one thread, for fit_costs.
    const std::vector<CostSample>& samples() const { return samples_; }
    // A line: time of all convolutions as taken and at best, and the regret.
    std::string summary(const std::string& name) const;

private:
    // Microseconds of the candidate that the library takes, and of the fastest.
    struct Regret {
        double taken, least;
    };
    struct Candidate;
    Regret bench(const ConvShape& s);
    Regret report(const ConvShape& s, const std::vector<Candidate>& candidates);
    void measure(std::vector<Candidate>* candidates);

    const int threads_;
    std::string text_;
    std::vector<CostSample> samples_;
    std::vector<std::pair<ConvShape, Regret>> known_;
    Regret total_ = {0, 0};
    size_t count_ = 0;
};

}  // namespace quoll

#endif
