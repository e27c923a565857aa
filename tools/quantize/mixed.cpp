#include "quantize/mixed.h"

#include <math.h>
#include <stdlib.h>

#include <algorithm>

#include "graph/analysis.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

struct Measured {
    double drop = 0, noise = 0, ms = 0, bytes = 0;
};

class Search {
public:
    Search(const Model& original, const Model& model, const Calibration& calibration,
           const SampleSource& samples, const MixedOptions& mixed, const QuantizeOptions& options)
        : model_(model),
          calibration_(calibration),
          mixed_(mixed),
          options_(options),
          exact_(original, samples, mixed.threads) {}

    // The layers that are int8 when none is left in float.
    int find_layers(std::vector<std::string>* layers) const {
        QuantizeOptions options = options_;
        options.trial = true;
        Model model = model_;
        std::vector<LayerChoice> choices;
        QUOLL_RETURN_IF_ERROR(quantize_model(calibration_, options, &model, &choices));
        for (const LayerChoice& choice : choices)
            if (is_static_kind(choice.kind) && choice.origin != "model")
                layers->push_back(choice.name);
        return kOk;
    }

    int measure(const std::vector<std::string>& in_float, const std::string& kind, Measured* m) {
        QuantizeOptions options = options_;
        options.trial = true, options.made = &made_;
        for (const std::string& layer : in_float) options.layers[layer].kind = kind;
        Model model = model_;
        std::vector<LayerChoice> choices;
        Accuracy accuracy;
        QUOLL_RETURN_IF_ERROR(quantize_model(calibration_, options, &model, &choices));
        QUOLL_RETURN_IF_ERROR(evaluate(&exact_, model, mixed_.metric, &accuracy));
        ModelFacts facts;
        QUOLL_RETURN_IF_ERROR(analyse_model(model, options.sizes, &facts));
        m->drop = drop_of(accuracy, mixed_.metric.name);
        m->noise = 0;
        for (const OutputAccuracy& output : accuracy.outputs)
            m->noise += pow(10, -output.agreement.sqnr_db() / 10);
        m->ms = accuracy.ms_after, m->bytes = (double)facts.weight_bytes;
        return kOk;
    }

    bool within_budget(const FrontierPoint& p) const {
        return (mixed_.max_ms < 0 || p.ms <= mixed_.max_ms) &&
               (mixed_.max_bytes < 0 || p.bytes <= mixed_.max_bytes);
    }

    // Within the budget, and the drop at most what is asked for.
    bool is_good(const FrontierPoint& p) const {
        return within_budget(p) && (mixed_.max_drop < 0 || p.drop <= mixed_.max_drop);
    }

    // The point with these layers of this kind, measured.
    int add(const std::vector<std::string>& layers, const std::string& kind, FrontierPoint point,
            std::vector<FrontierPoint>* frontier) {
        Measured m;
        QUOLL_RETURN_IF_ERROR(measure(layers, kind, &m));
        point.kind = kind;
        point.drop = m.drop, point.ms = m.ms, point.bytes = m.bytes;
        frontier->push_back(point);
        return kOk;
    }

private:
    const Model& model_;
    const Calibration& calibration_;
    const MixedOptions& mixed_;
    const QuantizeOptions& options_;
    ExactAnswers exact_;
    MadeLayers made_;
};

// Numbers of float layers to look at: few close to 0, where it matters most.
std::vector<size_t> steps_to(size_t count) {
    std::vector<size_t> steps;
    for (size_t k = 0; k < count; k = k < 4 ? k + 1 : k + (k + 1) / 3) steps.push_back(k);
    steps.push_back(count);
    return steps;
}

}  // namespace

bool parse_part(const std::string& text, double* part) {
    char* end = nullptr;
    *part = strtod(text.c_str(), &end);
    if (end == text.c_str() || !(*part >= 0) || *part > 1e9) return false;
    if (*end == '%') *part /= 100, end++;
    return *end == '\0';
}

bool parse_budget(const std::string& text, MixedOptions* options) {
    size_t from = 0;
    while (from <= text.size()) {
        const size_t comma = std::min(text.find(',', from), text.size());
        const std::string word = text.substr(from, comma - from);
        from = comma + 1;
        const size_t at = word.find('=');
        if (at == std::string::npos) return false;
        const std::string key = word.substr(0, at), value = word.substr(at + 1);
        char* end = nullptr;
        double v = strtod(value.c_str(), &end);
        const std::string unit = end;
        if (end == value.c_str() || !(v > 0)) return false;
        if (key == "size" && (unit == "" || unit == "B"))
            options->max_bytes = v;
        else if (key == "size" && (unit == "kB" || unit == "KB"))
            options->max_bytes = v * 1e3;
        else if (key == "size" && unit == "MB")
            options->max_bytes = v * 1e6;
        else if (key == "time" && (unit == "ms" || unit == ""))
            options->max_ms = v;
        else if (key == "time" && unit == "us")
            options->max_ms = v / 1e3;
        else
            return false;
    }
    return true;
}

double drop_of(const Accuracy& a, const std::string& metric) {
    const double labelled = (double)std::max<size_t>(1, a.task.labelled);
    if (metric == "top1")
        return ((double)a.task.top1_before - (double)a.task.top1_after) / labelled;
    if (metric == "top5")
        return ((double)a.task.top5_before - (double)a.task.top5_after) / labelled;
    if (a.metric == metric) return (a.metric_before - a.metric_after) * (a.less_is_better ? -1 : 1);
    return metric == "sqnr" ? pow(10, -a.sqnr_db() / 10) : 1 - a.cosine();
}

int choose_mixed(const Model& original, const Model& model, const Calibration& calibration,
                 const SampleSource& samples, const MixedOptions& mixed,
                 const ProgressSink& progress, QuantizeOptions* options,
                 std::vector<FrontierPoint>* frontier) {
    Search search(original, model, calibration, samples, mixed, *options);
    std::vector<std::string> layers;
    QUOLL_RETURN_IF_ERROR(search.find_layers(&layers));
    QUOLL_RETURN_IF_ERROR(check_truths(mixed.metric, samples));
    const std::vector<size_t> steps = steps_to(layers.size());
    const size_t total = layers.size() + steps.size();
    size_t done = 0;
    // Each layer alone in int8: what noise it makes, for what time it saves.
    std::vector<std::pair<double, std::string>> order;
    for (const std::string& layer : layers) {
        std::vector<std::string> others;
        for (const std::string& other : layers)
            if (other != layer) others.push_back(other);
        Measured m;
        QUOLL_RETURN_IF_ERROR(search.measure(others, "float", &m));
        order.push_back({-m.noise, layer});
        if (progress) progress(++done, total);
    }
    std::stable_sort(order.begin(), order.end());
    std::vector<std::string> in_float;
    bool found = false, wide_tried = false;
    for (size_t step : steps) {
        FrontierPoint point;
        while (in_float.size() < step) {
            point.layers.push_back(order[in_float.size()].second);
            in_float.push_back(point.layers.back());
        }
        point.float_layers = step;
        QUOLL_RETURN_IF_ERROR(search.add(in_float, "float", point, frontier));
        const FrontierPoint made = frontier->back();
        found |= mixed.max_drop >= 0 && search.is_good(made);
        // The first that will do, or what float is too large or slow for.
        const bool tried = mixed.max_drop >= 0 ? found && !wide_tried : !search.within_budget(made);
        wide_tried |= tried;
        if (tried && step > 0 && options->kind != kInt16Kind)
            QUOLL_RETURN_IF_ERROR(search.add(in_float, kInt16Kind, point, frontier));
        if (progress) progress(++done, total);
    }
    FrontierPoint* best = nullptr;
    for (FrontierPoint& point : *frontier) {
        if (!search.is_good(point)) continue;
        const bool wide = best && point.kind == kInt16Kind && point.ms <= best->ms &&
                          point.float_layers == best->float_layers;
        if (!best || (mixed.max_drop >= 0 ? wide : point.drop < best->drop)) best = &point;
    }
    if (!best) {
        const FrontierPoint& first = frontier->front();
        const auto last = std::find_if(frontier->rbegin(), frontier->rend(),
                                       [](const auto& point) { return point.kind == "float"; });
        QUOLL_LOGE(
            "no choice of layers will do: with all in int8 the drop is %g in %g ms and %.0f "
            "bytes, with none %g in %g ms and %.0f bytes",
            first.drop, first.ms, first.bytes, last->drop, last->ms, last->bytes);
        return kError;
    }
    best->chosen = true;
    for (size_t i = 0; i < best->float_layers; i++)
        options->layers[order[i].second].kind = best->kind;
    return kOk;
}

}  // namespace quoll
