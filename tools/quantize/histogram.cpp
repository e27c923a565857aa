#include "quantize/histogram.h"

#include <math.h>

#include <algorithm>

namespace quoll {

namespace {

const double kSumUnit = 1ull << 40;

// Calls f(channel, first, count): stretches of scalars of one blob of f32; with elempack above 1
// `channel` is that of the first lane.
template <class F>
void for_stretches(const Mat& blob, F f) {
    for (int n = 0; n < blob.n; n++) {
        const Mat item = blob.n > 1 ? blob.batch(n) : blob;
        const size_t each = (size_t)item.w * item.h * item.d * item.elempack;
        for (int q = 0; q < item.c; q++)
            f(q * item.elempack, (const float*)item.channel(q).data, each);
    }
}

// Which channel the scalars of a stretch belong to. Without channels the places along w count,
// which are packed in blobs of 1 axis.
struct Channels {
    const size_t pack, width, count;
    const int dims;

    explicit Channels(const Mat& blob)
        : pack((size_t)blob.elempack),
          width((size_t)blob.w),
          count(blob.dims == 1   ? width * pack
                : blob.dims == 2 ? width
                                 : (size_t)blob.c * pack),
          dims(blob.dims) {}
    size_t of(int first, size_t i) const {
        return dims > 2 ? (size_t)first + i % pack : dims == 1 ? i : i / pack % width;
    }
};

}  // namespace

void ValueRange::include(const ValueRange& other) {
    if (!other.seen()) return;
    low = seen() ? std::min(low, other.low) : other.low;
    high = high >= low ? std::max(high, other.high) : other.high;
}

void Histogram::begin(float most) {
    limit = most;
    positive.assign(kBins, 0);
    negative.assign(kBins, 0);
}

void Histogram::add(const Histogram& other) {
    zeros += other.zeros, not_finite += other.not_finite;
    for (size_t i = 0; i < positive.size() && i < other.positive.size(); i++)
        positive[i] += other.positive[i], negative[i] += other.negative[i];
}

uint64_t Histogram::count() const {
    uint64_t sum = zeros;
    for (size_t i = 0; i < positive.size(); i++) sum += positive[i] + negative[i];
    return sum;
}

std::vector<double> Histogram::magnitudes(int bins) const {
    std::vector<double> all(bins, 0.0);
    for (size_t i = 0; i < positive.size(); i++)
        all[i * bins / kBins] += (double)(positive[i] + negative[i]);
    return all;
}

ValueRange BlobStats::range_of(const Mat& blob, uint64_t* not_finite, std::vector<float>* limits) {
    ValueRange range;
    float low = INFINITY, high = -INFINITY;
    const Channels channels(blob);
    limits->assign(channels.count, 0.f);
    for_stretches(blob, [&](int first, const float* p, size_t count) {
        for (size_t i = 0; i < count; i++) {
            if (!std::isfinite(p[i])) {
                ++*not_finite;
                continue;
            }
            low = std::min(low, p[i]), high = std::max(high, p[i]);
            float& limit = (*limits)[channels.of(first, i)];
            limit = std::max(limit, fabsf(p[i]));
        }
    });
    if (low <= high) range.low = low, range.high = high;
    return range;
}

void BlobStats::add_range(size_t i, const ValueRange& seen, uint64_t bad,
                          const std::vector<float>& limits) {
    samples[i] = seen, not_finite += bad;
    if (channel_limits.empty()) channel_limits = limits;
    // Where sizes differ from sample to sample there are no channels to speak of.
    if (channel_limits.size() != limits.size() && !limits.empty()) channel_limits.clear();
    for (size_t c = 0; c < channel_limits.size() && c < limits.size(); c++)
        channel_limits[c] = std::max(channel_limits[c], limits[c]);
}

void BlobStats::add_values(const Mat& blob) {
    const Channels channels(blob);
    std::vector<double> sums(channels.count, 0.0);
    Histogram& h = histogram;
    // In double, as limits may be denormal.
    const double factor = h.limit > 0.f ? Histogram::kBins / (double)h.limit : 0.0;
    for_stretches(blob, [&](int first, const float* p, size_t count) {
        for (size_t i = 0; i < count; i++) {
            const float v = p[i];
            if (!std::isfinite(v)) {
                h.not_finite++;
                continue;
            }
            sums[channels.of(first, i)] += v;
            if (v == 0.f) {
                h.zeros++;
                continue;
            }
            const int bin = std::min((int)(fabs((double)v) * factor), (int)Histogram::kBins - 1);
            (v > 0.f ? h.positive : h.negative)[bin]++;
        }
    });
    if (h.limit <= 0.f || channels.count == 0) return;
    const double each = (double)blob.logical_shape().total() / (double)channels.count;
    if (sums_.empty()) sums_.assign(channels.count, 0);
    if (sums_.size() != channels.count)
        return;  // the size of the blob differs from sample to sample
    count_++;
    for (size_t i = 0; i < channels.count; i++)
        sums_[i] += llround(sums[i] / each / h.limit * kSumUnit);
}

void BlobStats::add(const BlobStats& other) {
    histogram.add(other.histogram);
    if (sums_.empty()) sums_.assign(other.sums_.size(), 0);
    if (sums_.size() != other.sums_.size()) return;
    count_ += other.count_;
    for (size_t i = 0; i < sums_.size(); i++) sums_[i] += other.sums_[i];
}

std::vector<double> BlobStats::channel_means() const {
    std::vector<double> means;
    for (int64_t sum : sums_)
        means.push_back((double)sum / kSumUnit * histogram.limit / (double)count_);
    return means;
}

}  // namespace quoll
