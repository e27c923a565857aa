#include "quantize/summary.h"

#include <stdio.h>

#include <map>
#include <string>

#include "common/cli.h"
#include "common/model_files.h"
#include "quantize/weight_kinds.h"

namespace quoll {

namespace {

void print_frontier(const QuantizeReport& report) {
    if (report.frontier.empty()) return;
    printf("%-7s %-12s %-10s %-14s layers that are left in float (a16w8: get inputs of 16 bits)\n",
           "float", (report.metric + " drop").c_str(), "ms", "weight bytes");
    for (const FrontierPoint& p : report.frontier) {
        std::string names;
        for (const std::string& name : p.layers) names += " +" + name;
        printf("%-7zu %-12.6f %-10.4f %-14s%s%s\n", p.float_layers, p.drop, p.ms,
               grouped((int64_t)p.bytes).c_str(),
               ((p.kind == kInt16Kind ? " a16w8" : "") + std::string(p.chosen ? " <- chosen" : ""))
                   .c_str(),
               printable(names).substr(0, 100).c_str());
    }
}

void print_accuracy(const QuantizeReport& report) {
    const Accuracy& a = report.accuracy;
    if (a.samples == 0) return;
    printf("%-10s %.4f -> %.4f ms (best of %zu)\n", "time", a.ms_before, a.ms_after, a.samples);
    for (const OutputAccuracy& output : a.outputs) {
        const Agreement& g = output.agreement;
        printf("%-10s cosine %.6f, SQNR %.2f dB, argmax agreement %.4f on %zu samples%s\n",
               printable(output.blob).c_str(), g.cosine(), g.sqnr_db(), g.argmax(), a.samples,
               report.held_out ? " held out" : ", which were calibrated with too");
    }
    if (!a.metric.empty())
        printf("%-10s %s %.4f -> %.4f\n", "task", printable(a.metric).c_str(), a.metric_before,
               a.metric_after);
    if (a.task.labelled > 0) {
        const double n = (double)a.task.labelled;
        printf("%-10s top-1 %.4f -> %.4f, top-5 %.4f -> %.4f\n", "accuracy",
               (double)a.task.top1_before / n, (double)a.task.top1_after / n,
               (double)a.task.top5_before / n, (double)a.task.top5_after / n);
    }
}

}  // namespace

void print_summary(const QuantizeReport& report) {
    print_frontier(report);
    std::map<std::string, int> kinds;
    for (const LayerChoice& layer : report.layers) kinds[layer.kind]++;
    printf("%-10s %s\n", "method", report.method.c_str());
    for (const auto& kind : kinds) printf("%-10s %d layers\n", kind.first.c_str(), kind.second);
    for (const auto& layer : report.in_float)
        printf("%-10s %s, which brings the outputs %.1f dB nearer\n", "in float",
               printable(layer.first).c_str(), layer.second);
    printf("%-10s %s -> %s bytes\n", "weights", grouped(report.bytes_before).c_str(),
           grouped(report.bytes_after).c_str());
    if (report.equalised > 0) printf("%-10s %d blobs\n", "equalised", report.equalised);
    print_accuracy(report);
}

}  // namespace quoll
