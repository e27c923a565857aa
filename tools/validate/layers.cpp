#include "validate/layers.h"

#include <math.h>

#include <set>

#include "common/progress.h"
#include "layer/control/input.h"
#include "plan/finite_check.h"
#include "quoll/log.h"

namespace quoll {

namespace {

std::string layer_label(const ModelLayer& layer) {
    return "[" + layer.type + " " + layer.name + "]";
}

std::string shape_label(const Mat& m) {
    std::string text;
    const Shape shape = m.logical_shape();
    for (int i = 0; i < shape.dims; i++) text += (i ? "," : "") + std::to_string(shape.size(i));
    return "(" + text + ")";
}

class LayerChecker {
public:
    LayerChecker(const Model& model, const Net& net, const Blobs& expected, const Limits& limits)
        : model_(model), net_(net), expected_(expected), limits_(limits) {}

    // What both sides know, in the order of the run.
    std::vector<std::string> known_blobs() const {
        std::vector<std::string> blobs;
        for (int index : order())
            for (const std::string& blob : model_.layers[index].outputs)
                if (expected_.count(blob) && !model_.layers[index].is<Input>())
                    blobs.push_back(blob);
        return blobs;
    }

    int find_other_meanings(const Blobs& inputs, std::vector<std::string>* found) const {
        const std::vector<std::string> known = known_blobs();
        Blobs got;
        QUOLL_RETURN_IF_ERROR(run_net(net_, inputs, known, &got));
        std::set<std::string> right, others;
        for (const std::string& blob : known) {
            const Comparison c = compare(got[blob], expected_.at(blob));
            if (c.only_got > 0) right.insert(blob);  // never excused
            if (c.same_shape && c.relative_error() <= limits_.relative_error) right.insert(blob);
        }
        for (size_t i = known.size(); i-- > 0;) {
            if (right.count(known[i])) continue;
            const std::set<std::string> next = followers(known[i], others);
            bool all = !next.empty();
            for (const std::string& blob : next) all &= right.count(blob) != 0;
            if (all) others.insert(known[i]);
        }
        found->assign(others.begin(), others.end());
        return kOk;
    }

    int run(const Blobs& inputs, std::vector<BlobCheck>* checks) {
        const std::vector<std::string> wanted = known_blobs();
        Blobs got;
        QUOLL_RETURN_IF_ERROR(run_net(net_, inputs, wanted, &got));
        for (const std::string& blob : wanted)
            fed_[blob] = as_shaped(expected_.at(blob), got[blob]);
        Progress progress("compare layers", (long long)wanted.size());
        for (const std::string& blob : wanted) {
            progress.update((long long)checks->size(), blob);
            BlobCheck check;
            check.blob = blob;
            Blobs given = inputs;
            collect(blob, &check.layers, &given);
            const Mat& right = expected_.at(blob);
            check.whole = compare(got[blob], right);
            Blobs alone;
            // An expected blob of another shape cannot be fed; its own check has said so.
            if (run_net(net_, given, {blob}, &alone) == kOk)
                check.own = compare(alone[blob], right);
            else
                check.own = check.whole;
            // Layers that write f16 themselves do so for inputs of f16.
            if (net_.opt.use_fp16_storage && check.whole.only_got > check.own.only_got) {
                for (auto& input : given)
                    if (!inputs.count(input.first)) input.second = as_stored(input.second);
                alone.clear();
                if (run_net(net_, given, {blob}, &alone) == kOk)
                    check.own = compare(alone[blob], right);
            }
            check.constant = model_.layers[model_.producer(blob)].inputs.empty();
            check.verdict = verdict(check, got[blob], right);
            checks->push_back(check);
        }
        return kOk;
    }

private:
    // With as many axes as ours has, where axes of size 1 in front are all that differs.
    static Mat as_shaped(const Mat& m, const Mat& ours) {
        const Shape shape = ours.logical_shape();
        if (m.n > 1 || shape.n > 1 || m.logical_shape().total() != shape.total()) return m;
        const Mat shaped = shape.dims == 1   ? m.reshape(shape.w)
                           : shape.dims == 2 ? m.reshape(shape.w, shape.h)
                           : shape.dims == 3 ? m.reshape(shape.w, shape.h, shape.c)
                                             : m.reshape(shape.w, shape.h, shape.d, shape.c);
        return shaped.empty() ? m : shaped;
    }

    // As f16, where that holds the values.
    static Mat as_stored(const Mat& m) {
        Mat narrow;
        if (m.dtype != DType::f32 || m.empty()) return m;
        cast_float32_to_float16(m, narrow);
        const bool holds = count_not_finite(narrow).infinite == count_not_finite(m).infinite;
        return narrow.empty() || !holds ? m : narrow;
    }

    std::vector<int> order() const {
        std::vector<std::string> all;
        for (const auto& blob : expected_)
            if (model_.producer(blob.first) >= 0) all.push_back(blob.first);
        return execution_order(model_, all);
    }

    // The nearest known blobs that follow from this one.
    std::set<std::string> followers(const std::string& from,
                                    const std::set<std::string>& ignored) const {
        std::set<std::string> found;
        std::vector<std::string> stack = {from};
        std::set<int> seen;
        while (!stack.empty()) {
            const std::vector<int> readers = model_.consumers(stack.back());
            stack.pop_back();
            for (int index : readers) {
                if (!seen.insert(index).second) continue;
                for (const std::string& blob : model_.layers[index].outputs) {
                    if (expected_.count(blob) && !ignored.count(blob))
                        found.insert(blob);
                    else
                        stack.push_back(blob);
                }
            }
        }
        return found;
    }

    // The layers between `blob` and what is expected, last first in depth, and those blobs.
    void collect(const std::string& blob, std::vector<std::string>* layers, Blobs* given) const {
        std::vector<std::string> stack = {blob};
        std::set<int> seen;
        std::vector<std::string> found;
        while (!stack.empty()) {
            const int index = model_.producer(stack.back());
            stack.pop_back();
            const ModelLayer& layer = model_.layers[index];
            if (layer.is<Input>() || !seen.insert(index).second) continue;
            found.push_back(layer_label(layer));
            for (const std::string& input : layer.inputs) {
                const auto known = fed_.find(input);
                if (known != fed_.end() && input != blob)
                    (*given)[input] = known->second;
                else
                    stack.push_back(input);
            }
        }
        layers->assign(found.rbegin(), found.rend());
    }

    std::string verdict(const BlobCheck& check, const Mat& got, const Mat& right) const {
        const Comparison& c = check.own;
        if (!c.same_shape)
            return "has the shape " + shape_label(got) + ", expected " + shape_label(right);
        if (c.only_got > 0) {
            return "NaN or infinite: " + std::to_string(c.only_got) + " of " +
                   std::to_string(c.count) + " values, where the largest expected is " +
                   metric_text(c.largest) + (c.largest > 65504 ? ", beyond fp16's 65504" : "");
        }
        if (c.bad_got != c.bad_expected)
            return "finite where " + std::to_string(c.bad_expected) +
                   " values are expected not to be";
        if (c.relative_error() > limits_.relative_error)
            return "error of its own: " + metric_text(c.relative_error()) +
                   " of the range, limit " + metric_text(limits_.relative_error);
        return "";
    }

    const Model& model_;
    const Net& net_;
    const Blobs& expected_;
    Blobs fed_;  // the same, as the net takes them
    const Limits limits_;
};

}  // namespace

int drop_other_meanings(const Model& model, const Net& net, const Blobs& inputs,
                        const Limits& limits, Blobs* expected, std::vector<std::string>* dropped) {
    QUOLL_RETURN_IF_ERROR(
        LayerChecker(model, net, *expected, limits).find_other_meanings(inputs, dropped));
    for (const std::string& blob : *dropped) expected->erase(blob);
    return kOk;
}

int check_layers(const Model& model, const Net& net, const Blobs& inputs, const Blobs& expected,
                 const Limits& limits, std::vector<BlobCheck>* checks) {
    return LayerChecker(model, net, expected, limits).run(inputs, checks);
}

const BlobCheck* first_wrong(const std::vector<BlobCheck>& checks) {
    for (const BlobCheck& check : checks)
        if (!check.verdict.empty()) return &check;
    return nullptr;
}

const BlobCheck* first_without_values(const std::vector<BlobCheck>& checks) {
    for (const BlobCheck& check : checks)
        if (check.whole.count > 0 && check.whole.compared == 0 && !check.constant) return &check;
    return nullptr;
}

// Names may hold what separates columns.
static std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (char ch : text) quoted += ch == '"' ? "\"\"" : std::string(1, ch);
    return quoted + "\"";
}

std::string log_csv(const std::vector<BlobCheck>& checks) {
    std::string text = "output_name,similarity,sqnr,pixel_accuracy\n";
    for (const BlobCheck& check : checks)
        text += csv_field(check.blob) + "," + metric_text(check.whole.similarity) + "," +
                metric_text(check.whole.sqnr) + "," + metric_text(check.whole.pixel_accuracy) +
                "\n";
    return text;
}

std::string layers_table(const std::vector<BlobCheck>& checks) {
    std::string text;
    char line[400];
    snprintf(line, sizeof(line), "%-24s %-12s %-12s %-12s %-12s %-12s %s\n", "blob", "similarity",
             "SQNR dB", "argmax", "max error", "own error", "layer");
    text += line;
    for (const BlobCheck& check : checks) {
        snprintf(line, sizeof(line), "%-24.80s %-12s %-12s %-12s %-12s %-12s %.120s",
                 check.blob.c_str(), metric_text(check.whole.similarity).c_str(),
                 metric_text(check.whole.sqnr).c_str(),
                 metric_text(check.whole.pixel_accuracy).c_str(),
                 metric_text(check.whole.relative_error()).c_str(),
                 metric_text(check.own.relative_error()).c_str(), check.layers.back().c_str());
        text += line + (check.verdict.empty() ? "" : "  " + check.verdict) + "\n";
    }
    return text;
}

}  // namespace quoll
