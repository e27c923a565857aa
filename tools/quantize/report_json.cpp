#include <math.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "quantize/report.h"

namespace quoll {

namespace {

typedef nlohmann::ordered_json Json;

// JSON has no infinite numbers.
Json number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }

Json agreement_json(const Agreement& a) {
    Json json = {{"cosine", number(a.cosine())},       {"least_cosine", number(a.least_cosine)},
                 {"sqnr_db", number(a.sqnr_db())},     {"argmax_agreement", number(a.argmax())},
                 {"max_error", number(a.max_error())}, {"mean_error", number(a.mean_error())}};
    if (a.not_finite > 0) json["not_finite"] = a.not_finite;
    return json;
}

Json histogram_json(const BlobStats& stats) {
    const int kBars = 128;
    const Histogram& h = stats.histogram;
    Json negative = Json::array(), positive = Json::array();
    for (int i = 0; i < kBars; i++) {
        uint64_t below = 0, above = 0;
        const int each = Histogram::kBins / kBars;
        for (int k = i * each; k < (i + 1) * each && !h.positive.empty(); k++)
            below += h.negative[k], above += h.positive[k];
        negative.push_back(below), positive.push_back(above);
    }
    return {{"limit", number(h.limit)},
            {"zeros", h.zeros},
            {"positive", positive},
            {"negative", negative}};
}

Json layer_json(const QuantizeReport& report, size_t i) {
    const LayerChoice& layer = report.layers[i];
    Json json = {
        {"name", layer.name}, {"type", layer.type}, {"kind", layer.kind}, {"input", layer.blob}};
    if (!layer.why.empty()) json["why"] = layer.why;
    if (is_static_kind(layer.kind)) {
        json["range_of"] = layer.source;
        json["origin"] = layer.origin;
        if (!layer.method.empty()) json["method"] = layer.method;
        if (layer.range.seen()) {
            json["low"] = number(layer.range.low), json["high"] = number(layer.range.high);
            json["input_scale"] = number(layer.input_scale);
        }
    }
    const auto seen = report.calibration.blobs.find(layer.source);
    if (seen != report.calibration.blobs.end()) {
        json["measured_low"] = number(seen->second.range.low);
        json["measured_high"] = number(seen->second.range.high);
        json["histogram"] = histogram_json(seen->second);
    }
    if (i >= report.errors.size()) return json;
    const LayerErrors& e = report.errors[i];
    json["own"] = agreement_json(e.own);
    json["weights"] = agreement_json(e.weights);
    json["cumulative"] = agreement_json(e.cumulative);
    const bool quantized = layer.kind != "float";
    json["beyond_limits"] = quantized && (e.own.max_error() > report.limits.max ||
                                          e.own.mean_error() > report.limits.mean);
    return json;
}

Json accuracy_json(const QuantizeReport& report) {
    const Accuracy& a = report.accuracy;
    Json outputs = Json::array();
    for (const OutputAccuracy& output : a.outputs) {
        Json json = agreement_json(output.agreement);
        json["blob"] = output.blob;
        outputs.push_back(json);
    }
    Json json = {{"samples", a.samples},
                 {"held_out", report.held_out},
                 {"cosine", number(a.cosine())},
                 {"sqnr_db", number(a.sqnr_db())},
                 {"argmax_agreement", number(a.argmax())},
                 {"outputs", outputs}};
    if (!a.metric.empty())
        json["task"] = {{"metric", a.metric},
                        {"before", number(a.metric_before)},
                        {"after", number(a.metric_after)}};
    if (a.task.labelled > 0) {
        const double n = (double)a.task.labelled;
        json["labelled"] = a.task.labelled;
        json["top1_before"] = (double)a.task.top1_before / n;
        json["top1_after"] = (double)a.task.top1_after / n;
        json["top5_before"] = (double)a.task.top5_before / n;
        json["top5_after"] = (double)a.task.top5_after / n;
    }
    return json;
}

}  // namespace

std::vector<std::string> advice(const QuantizeReport& report) {
    std::vector<size_t> worst;
    for (size_t i = 0; i < report.errors.size(); i++)
        if (report.layers[i].kind != "float" && report.errors[i].own.pairs > 0) worst.push_back(i);
    std::sort(worst.begin(), worst.end(), [&](size_t a, size_t b) {
        return report.errors[a].own.sqnr_db() < report.errors[b].own.sqnr_db();
    });
    std::vector<std::string> lines;
    for (size_t k = 0; k < worst.size() && k < 5; k++) {
        const LayerChoice& layer = report.layers[worst[k]];
        const LayerErrors& e = report.errors[worst[k]];
        const double kGood = 35;  // dB: below it a layer is heard in the whole
        if (e.own.sqnr_db() > kGood) break;
        char text[400];
        snprintf(text, sizeof(text), "%s (%s): %.1f dB by itself, its weights %.1f dB. ",
                 layer.name.c_str(), layer.type.c_str(), e.own.sqnr_db(), e.weights.sqnr_db());
        std::string line = text;
        const auto seen = report.calibration.blobs.find(layer.source);
        const double limit =
            seen == report.calibration.blobs.end() ? 0 : seen->second.histogram.limit;
        const bool tried = report.method.compare(0, 4, "best") == 0;
        if (e.weights.sqnr_db() < e.own.sqnr_db() + 3)
            line +=
                "Its weights differ much in size within a channel: try --weights mse, "
                "or leave it in float";
        else if (limit > 0 && layer.range.magnitude() > 0.95 * limit)
            line += std::string("Its input has few large values and many small ones: ") +
                    (tried ? "leave it in float"
                           : "try --method kl, percentile or mse, or leave it in float");
        else
            line += std::string("Its input is cut off at a part of what was measured: ") +
                    (tried ? "leave it in float" : "try --method minmax, or leave it in float");
        lines.push_back(line + " (--layer '" + layer.name + "=float').");
    }
    return lines;
}

std::string report_json(const QuantizeReport& report) {
    Json json = {
        {"model", report.model},
        {"method", report.method},
        {"calibration",
         {{"samples", report.calibration.used},
          {"skipped", report.calibration.skipped},
          {"seconds", number(report.calibration_seconds)}}},
        {"accuracy", accuracy_json(report)},
        {"bytes", {{"before", report.bytes_before}, {"after", report.bytes_after}}},
        {"ms",
         {{"before", number(report.accuracy.ms_before)},
          {"after", number(report.accuracy.ms_after)}}},
        {"limits", {{"max_error", report.limits.max}, {"mean_error", report.limits.mean}}}};
    json["advice"] = advice(report);
    json["layers"] = Json::array();
    for (size_t i = 0; i < report.layers.size(); i++)
        json["layers"].push_back(layer_json(report, i));
    if (!report.frontier.empty()) {
        json["metric"] = report.metric;
        for (const FrontierPoint& p : report.frontier)
            json["frontier"].push_back({{"layers", p.layers},
                                        {"float_layers", p.float_layers},
                                        {"drop", number(p.drop)},
                                        {"ms", number(p.ms)},
                                        {"bytes", number(p.bytes)},
                                        {"chosen", p.chosen},
                                        {"kind", p.kind}});
    }
    // Names of files need not be UTF-8.
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace quoll
