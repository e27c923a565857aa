#include "quantize/calibrate.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// Looks at the blobs that layers make.
class BlobObserver : public LayerObserver {
public:
    typedef std::function<void(size_t slot, const Mat& blob)> Sink;
    // slots: by blob index, -1: not wanted.
    BlobObserver(const std::vector<int>& slots, Sink sink)
        : slots_(slots), sink_(std::move(sink)) {}

    void before(const Layer&) override {}
    void after(const Layer& layer, const std::vector<Mat>& outputs) override {
        for (size_t i = 0; i < outputs.size() && i < layer.tops.size(); i++) {
            const int slot = slots_[layer.tops[i]];
            if (slot >= 0 && outputs[i].dtype == DType::f32) sink_((size_t)slot, outputs[i]);
        }
    }

private:
    const std::vector<int>& slots_;
    const Sink sink_;
};

class Runner {
public:
    Runner(const Net& net, const SampleSource& samples, const std::vector<std::string>& blobs)
        : net_(net), samples_(samples), slots_(net.blobs().size(), -1) {
        for (size_t i = 0; i < blobs.size(); i++) {
            const int index = net.find_blob_index_by_name(blobs[i].c_str());
            if (index >= 0) slots_[index] = (int)i;
        }
    }

    int run(size_t i, const BlobObserver::Sink& sink) const {
        return run_sample(samples_, i, [&](const Blobs& inputs) { return run_on(inputs, sink); });
    }

private:
    int run_on(const Blobs& inputs, const BlobObserver::Sink& sink) const {
        BlobObserver observer(slots_, sink);
        Extractor ex = net_.create_extractor();
        ex.set_layer_observer(&observer);
        for (const auto& input : inputs) {
            const int index = net_.find_blob_index_by_name(input.first.c_str());
            if (index < 0) return kError;
            if (slots_[index] >= 0 && input.second.dtype == DType::f32)
                sink((size_t)slots_[index], input.second);
            QUOLL_RETURN_IF_ERROR(ex.input(index, input.second));
        }
        for (int output : net_.output_indexes()) {
            Mat m;
            QUOLL_RETURN_IF_ERROR(ex.extract(output, m));
        }
        return kOk;
    }

    const Net& net_;
    const SampleSource& samples_;
    std::vector<int> slots_;
};

}  // namespace

int run_sample(const SampleSource& samples, size_t i, const std::function<int(const Blobs&)>& run) {
    Blobs inputs;
    QUOLL_RETURN_IF_ERROR(samples.read(i, &inputs));
    const int status = run(inputs);
    if (status != kOk) QUOLL_LOGE("%s: the model does not run on it", samples.name(i).c_str());
    return status;
}

int run_blobs(const Net& net, const Blobs& given, const std::vector<std::string>& wanted,
              Blobs* blobs) {
    Extractor ex = net.create_extractor();
    ex.set_light_mode(false);
    for (const auto& input : given)
        QUOLL_RETURN_IF_ERROR(ex.input(input.first.c_str(), input.second));
    for (const std::string& name : wanted) {
        Mat m;
        QUOLL_RETURN_IF_ERROR(ex.extract(name.c_str(), m));
        (*blobs)[name] = m;
    }
    return kOk;
}

bool in_threads(size_t count, int threads, const std::function<bool(size_t, int)>& work) {
    std::atomic<size_t> next{0};
    std::atomic<bool> good{true};
    std::exception_ptr thrown;
    std::mutex lock;
    const auto loop = [&](int thread) {
        try {
            for (size_t i; good && (i = next++) < count;)
                if (!work(i, thread)) good = false;
        } catch (...) {
            const std::lock_guard<std::mutex> guard(lock);
            thrown = std::current_exception();
            good = false;
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads && (size_t)t < count; t++) others.emplace_back(loop, t);
    loop(0);
    for (std::thread& other : others) other.join();
    if (thrown) std::rethrow_exception(thrown);
    return good;
}

int make_quantize_net(const Model& model, int threads, bool graph_fusion, Net* net) {
    net->opt.num_threads = threads;
    net->opt.use_graph_fusion = graph_fusion;
    return model.make_net(net);
}

int calibrate(const Model& model, const SampleSource& samples, const std::set<std::string>& wanted,
              const CalibrateOptions& options, Calibration* result) {
    const std::vector<std::string> blobs(wanted.begin(), wanted.end());
    const size_t count = samples.count();
    const int threads = std::max(1, (int)std::min<size_t>((size_t)options.threads, count));
    Net net;
    QUOLL_RETURN_IF_ERROR(make_quantize_net(model, 1, false, &net));
    const Runner runner(net, samples, blobs);
    std::vector<BlobStats> stats(blobs.size());
    for (BlobStats& s : stats) s.samples.resize(count);
    std::vector<char> usable(count, 0);
    std::mutex lock;
    size_t done = 0;
    const auto report = [&] {
        const std::lock_guard<std::mutex> guard(lock);
        if (options.progress) options.progress(++done, (options.ranges_only ? 1 : 2) * count);
    };

    const bool ranged = in_threads(count, threads, [&](size_t i, int) {
        std::vector<uint64_t> bad(blobs.size(), 0);
        std::vector<ValueRange> ranges(blobs.size());
        std::vector<std::vector<float>> limits(blobs.size());
        usable[i] = runner.run(i, [&](size_t slot, const Mat& blob) {
            ranges[slot].include(BlobStats::range_of(blob, &bad[slot], &limits[slot]));
        }) == kOk;
        report();
        const std::lock_guard<std::mutex> guard(lock);
        for (size_t b = 0; b < blobs.size() && usable[i]; b++)
            stats[b].add_range(i, ranges[b], bad[b], limits[b]);
        return usable[i] || !options.strict;
    });
    for (size_t i = 0; i < count; i++)
        if (!usable[i] && (ranged || !options.strict)) result->skipped.push_back(samples.name(i));
    if (!ranged) return kError;
    result->used = count - result->skipped.size();
    if (result->used == 0) {
        QUOLL_LOGE("none of the %zu samples can be used", count);
        return kError;
    }
    for (BlobStats& s : stats)
        for (const ValueRange& range : s.samples) s.range.include(range);
    if (options.ranges_only) {
        for (size_t b = 0; b < blobs.size(); b++)
            if (stats[b].range.seen()) result->blobs[blobs[b]] = stats[b];
        return kOk;
    }

    // Each thread fills histograms of its own.
    std::vector<std::vector<BlobStats>> parts(threads, std::vector<BlobStats>(blobs.size()));
    for (std::vector<BlobStats>& part : parts)
        for (size_t b = 0; b < blobs.size(); b++)
            part[b].histogram.begin(stats[b].range.magnitude());
    const bool counted = in_threads(count, threads, [&](size_t i, int thread) {
        std::vector<BlobStats>& part = parts[(size_t)thread];
        const bool right = !usable[i] || runner.run(i, [&](size_t slot, const Mat& blob) {
            part[slot].add_values(blob);
        }) == kOk;
        report();
        return right;
    });
    if (!counted) return kError;
    for (size_t b = 0; b < blobs.size(); b++) {
        stats[b].histogram.begin(stats[b].range.magnitude());
        for (const std::vector<BlobStats>& part : parts) stats[b].add(part[b]);
        if (stats[b].range.seen() || stats[b].not_finite > 0) result->blobs[blobs[b]] = stats[b];
    }
    return kOk;
}

}  // namespace quoll
