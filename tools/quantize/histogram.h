// What calibration records of the values of a blob.
#ifndef QUOLL_TOOLS_QUANTIZE_HISTOGRAM_H
#define QUOLL_TOOLS_QUANTIZE_HISTOGRAM_H

#include <stdint.h>

#include <vector>

#include "quoll/mat.h"

namespace quoll {

// low > high: nothing was seen.
struct ValueRange {
    float low = 1.f, high = -1.f;
    bool seen() const { return low <= high; }
    float magnitude() const { return low > high ? 0.f : -low > high ? -low : high; }
    void include(const ValueRange& other);
};

// How many values there are in each part of [-limit, limit]. Values that are exactly 0, and those
// that are not finite, are counted separately.
struct Histogram {
    enum { kBins = 4096 };  // on each side of 0
    float limit = 0.f;
    std::vector<uint64_t> positive, negative;  // [kBins] by magnitude, empty until begin()
    uint64_t zeros = 0, not_finite = 0;

    void begin(float most);
    void add(const Histogram& other);
    uint64_t count() const;
    // The histogram of magnitudes in `bins` bins, which divide kBins; without zeros.
    std::vector<double> magnitudes(int bins) const;
    // The middle of bin i of kBins.
    double middle(int i) const { return (i + 0.5) * limit / kBins; }
};

// Statistics over all samples. Sums are of integers, so that the order in which threads add does
// not matter.
struct BlobStats {
    std::vector<ValueRange> samples;  // by sample; of finite values
    ValueRange range;                 // of all of them
    uint64_t not_finite = 0;
    Histogram histogram;
    std::vector<float> channel_limits;  // largest magnitude of each channel

    // Mean value of each channel (of a blob of 1 or 2 axes: of each place along w).
    std::vector<double> channel_means() const;
    // For f32 blobs of any elempack. limits: those of channels, which are extended.
    static ValueRange range_of(const Mat& blob, uint64_t* not_finite, std::vector<float>* limits);
    // Adds what range_of found for sample i.
    void add_range(size_t i, const ValueRange& seen, uint64_t bad,
                   const std::vector<float>& limits);
    void add_values(const Mat& blob);
    void add(const BlobStats& other);

private:
    std::vector<int64_t> sums_;  // of means of samples, in parts of limit / 2^40
    int64_t count_ = 0;
};

}  // namespace quoll

#endif
