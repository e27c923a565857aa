#include "quantize/threshold.h"

#include <math.h>

#include <algorithm>

namespace quoll {

namespace {

struct Named {
    const char* name;
    Method method;
};
const Named kMethods[] = {
    {"kl", Method::kKl},
    {"aciq", Method::kAciq},
    {"eq", Method::kEq},
    {"minmax", Method::kMinmax},
    {"percentile", Method::kPercentile},
    {"mse", Method::kMse},
    {"ema", Method::kEma},
    {"last", Method::kLast},
    {"constant", Method::kConstant},
    {"union", Method::kUnion},
    {"enhanced", Method::kEnhanced},
};

// The values of one sign alone.
Histogram one_side(const Histogram& h, bool positive) {
    Histogram side;
    side.begin(h.limit);
    side.zeros = h.zeros;
    side.positive = positive ? h.positive : h.negative;
    return side;
}

double threshold_of(const Histogram& h, const ThresholdOptions& o, double most, int levels) {
    double t = most;
    if (o.method == Method::kKl) t = kl_threshold(h.magnitudes(2048), h.limit, 128);
    if (o.method == Method::kAciq) t = aciq_threshold(h);
    if (o.method == Method::kPercentile) t = percentile_threshold(h, o.percentile);
    if (o.method == Method::kMse || o.method == Method::kEq) t = mse_threshold(h, levels);
    return std::min(t, most);
}

ValueRange from_samples(const BlobStats& stats, const ThresholdOptions& o) {
    ValueRange range;
    std::vector<float> lows, highs;
    double low = 0, high = 0, weight = 0;
    for (const ValueRange& sample : stats.samples) {
        if (!sample.seen()) continue;
        lows.push_back(-sample.low), highs.push_back(sample.high);
        // Weights that sum to 1, so that the first samples do not outweigh those that follow.
        low = low * o.ema_decay + sample.low * (1 - o.ema_decay);
        high = high * o.ema_decay + sample.high * (1 - o.ema_decay);
        weight = weight * o.ema_decay + (1 - o.ema_decay);
    }
    if (highs.empty()) return range;
    if (o.method == Method::kEma && weight > 0) {
        range.low = (float)(low / weight), range.high = (float)(high / weight);
    } else if (o.method == Method::kEnhanced) {
        const double whole = (double)stats.range.high - stats.range.low;
        range.low = -enhanced_end(lows, whole, o.enhance_ratio);
        range.high = enhanced_end(highs, whole, o.enhance_ratio);
    } else {
        range.low = -lows.back(), range.high = highs.back();
    }
    return range;
}

}  // namespace

bool parse_method(const std::string& word, Method* method) {
    for (const Named& named : kMethods)
        if (word == named.name) return *method = named.method, true;
    return false;
}

const char* method_name(Method method) {
    for (const Named& named : kMethods)
        if (method == named.method) return named.name;
    return "";
}

std::string method_names() {
    std::string text;
    for (const Named& named : kMethods) text += (text.empty() ? "" : "|") + std::string(named.name);
    return text;
}

// P: the first `end` bins, what lies beyond in the last of them. Q: the same bins without what lies
// beyond, as `levels` values, each spread evenly over those of its bins that are not empty. Sums
// over the bins of a level need only how much is in them, and in how many, so prefix sums do.
double kl_threshold(const std::vector<double>& bins, double limit, int levels) {
    const int count = (int)bins.size();
    std::vector<double> mass(count + 1, 0), entropy(count + 1, 0);
    std::vector<int> filled(count + 1, 0);
    for (int i = 0; i < count; i++) {
        mass[i + 1] = mass[i] + bins[i];
        entropy[i + 1] = entropy[i] + (bins[i] > 0 ? bins[i] * log(bins[i]) : 0);
        filled[i + 1] = filled[i] + (bins[i] > 0);
    }
    const double total = mass[count];
    // A level for each value that there is: nothing is gained by leaving some out, though a single
    // one that is left would have no divergence.
    if (filled[count] <= levels) return limit;
    const double kSmall = 1e-4;  // of the mass, where Q has none and P has
    double least = INFINITY;
    int best = count;
    for (int end = levels; end <= count; end++) {
        const double beyond = total - mass[end], last = bins[end - 1], inside = mass[end];
        if (inside <= 0) continue;
        // sum of P log P, not yet divided by the total.
        double sum = entropy[end] - (last > 0 ? last * log(last) : 0);
        sum += last + beyond > 0 ? (last + beyond) * log(last + beyond) : 0;
        double cross = 0;
        for (int level = 0; level < levels; level++) {
            const int from = (int)((int64_t)level * end / levels);
            const int to = (int)((int64_t)(level + 1) * end / levels);
            double p = mass[to] - mass[from];
            const double q = p;
            const int places = filled[to] - filled[from];
            if (to == end) p += beyond;
            if (p <= 0) continue;
            const double each = places > 0 ? q / places / inside : 0;
            const double in_last = to == end && last <= 0 ? beyond : 0;  // where Q has nothing
            if (p - in_last > 0) cross += (p - in_last) * log(each);
            if (in_last > 0) cross += in_last * log(kSmall / count);
        }
        const double divergence = (sum - total * log(total) - cross) / total;
        if (divergence < least) least = divergence, best = end;
    }
    return (best + 0.5) * limit / count < limit ? (best + 0.5) * limit / count : limit;
}

// R. Banner et al., "Post training 4-bit quantization of convolutional networks for
// rapid-deployment", 2019: the clipping that costs least at 8 bits, in standard deviations of a
// Gaussian and in mean deviations of a Laplacian.
double aciq_threshold(const Histogram& h) {
    const double kGauss = 3.92403714, kLaplace = 9.89675982;
    double count = 0, sum = 0, squares = 0;
    for (int i = 0; i < (int)h.positive.size(); i++) {
        const double n = (double)(h.positive[i] + h.negative[i]), v = h.middle(i);
        count += n, sum += n * v, squares += n * v * v;
    }
    if (count <= 0) return h.limit;
    // Which of the two is nearer by the ratio of both deviations: 0.798 and 0.707.
    const double mean = sum / count, deviation = sqrt(squares / count);
    const bool gauss = mean / deviation > 0.5 * (sqrt(2 / M_PI) + sqrt(0.5));
    return gauss ? kGauss * deviation : kLaplace * mean;
}

double percentile_threshold(const Histogram& h, double percentile) {
    const double wanted = (double)h.count() * percentile / 100;
    double below = (double)h.zeros;
    for (int i = 0; i < (int)h.positive.size(); i++) {
        below += (double)(h.positive[i] + h.negative[i]);
        if (below >= wanted) return (i + 1.0) * h.limit / Histogram::kBins;
    }
    return h.limit;
}

double mse_threshold(const Histogram& h, int levels) {
    std::vector<double> bins(h.positive.size());
    for (size_t i = 0; i < bins.size(); i++) bins[i] = (double)(h.positive[i] + h.negative[i]);
    double least = INFINITY, best = h.limit;
    // In steps of 1 %, from the whole range to a fiftieth.
    for (double t = h.limit; t > h.limit / 50; t *= 0.99) {
        const double step = t / levels;
        double error = 0;
        for (int i = 0; i < (int)bins.size() && error < least; i++) {
            if (bins[i] == 0) continue;
            const double v = h.middle(i);
            const double d = v - std::min(t, round(v / step) * step);
            error += bins[i] * d * d;
        }
        if (error < least) least = error, best = t;
    }
    return best;
}

float enhanced_end(std::vector<float> ends, double range, double ratio) {
    std::sort(ends.begin(), ends.end());
    size_t last = ends.size() - 1;
    const double part = 1.0 / (double)ends.size();
    while (last > 0 && ((double)ends[last] - ends[last - 1]) / range > ratio * part) last--;
    return ends[last];
}

ValueRange choose_range(const BlobStats& stats, const ThresholdOptions& o, bool symmetric) {
    ValueRange range;
    if (o.method == Method::kConstant) {
        range = o.constant;
    } else if (!stats.range.seen()) {
        return range;
    } else if (o.method == Method::kMinmax || o.method == Method::kUnion) {
        range = stats.range;
    } else if (o.method == Method::kEma || o.method == Method::kLast ||
               o.method == Method::kEnhanced) {
        range = from_samples(stats, o);
    } else if (symmetric) {
        const double t = threshold_of(stats.histogram, o, stats.range.magnitude(), 127);
        range.high = (float)t, range.low = (float)-t;
    } else {
        // Where one side has little, it gets as many steps as it needs of those of the other.
        const Histogram up = one_side(stats.histogram, true);
        const Histogram down = one_side(stats.histogram, false);
        const double high = std::max(0.f, stats.range.high), low = std::max(0.f, -stats.range.low);
        const int levels = std::max(1, (int)(255 * std::max(high, low) / (high + low + 1e-30)));
        range.high = high > 0 ? (float)threshold_of(up, o, high, levels) : 0.f;
        range.low = low > 0 ? -(float)threshold_of(down, o, low, levels) : 0.f;
    }
    range.low = std::min(range.low, 0.f), range.high = std::max(range.high, 0.f);
    if (symmetric) range.high = range.magnitude(), range.low = -range.high;
    return range;
}

}  // namespace quoll
