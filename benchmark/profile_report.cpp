#include "profile_report.h"

#include <math.h>
#include <stdint.h>

#include <algorithm>
#include <map>
#include <vector>

namespace quoll {

using nlohmann::json;

namespace {

typedef std::vector<std::string> Cells;

std::string number(double value, int digits = 3) {
    char text[64];
    snprintf(text, sizeof(text), "%.*f", digits, value);
    return text;
}

struct Statistics {
    double first = 0, last = 0, least = 0, most = 0, mean = 0, deviation = 0;
    explicit Statistics(const std::vector<double>& v) {
        if (v.empty()) return;
        first = v.front(), last = v.back();
        least = *std::min_element(v.begin(), v.end()), most = *std::max_element(v.begin(), v.end());
        for (double x : v) mean += x / (double)v.size();
        for (double x : v) deviation += (x - mean) * (x - mean) / (double)v.size();
        deviation = sqrt(deviation);
    }
};

// Columns as wide as their widest cell; texts in the last one are not padded.
std::string table(const std::string& title, const Cells& head, const std::vector<Cells>& rows) {
    std::vector<size_t> widths;
    for (const std::string& cell : head) widths.push_back(cell.size());
    for (const Cells& row : rows)
        for (size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], row[i].size());
    const auto line = [&](const Cells& row) {
        std::string text;
        for (size_t i = 0; i < row.size(); i++) {
            const std::string space(widths[i] - row[i].size(), ' ');
            text += (i ? " | " : "") + (i + 1 == row.size() ? row[i] : space + row[i]);
        }
        return text + "\n";
    };
    std::string text = "\n" + title + "\n" + line(head);
    for (const Cells& row : rows) text += line(row);
    return text;
}

std::string runs_table(const std::string& title, const std::vector<double>& ms) {
    const Statistics s(ms);
    return table(title,
                 {"round", "first(ms)", "curr(ms)", "min(ms)", "max(ms)", "avg(ms)", "std(ms)"},
                 {{std::to_string(ms.size()), number(s.first), number(s.last), number(s.least),
                   number(s.most), number(s.mean), number(s.deviation)}});
}

double mean(const json& values) { return Statistics(values.get<std::vector<double>>()).mean; }

// 1e9 multiply-accumulates a second.
std::string speed(double macs, double ms) {
    return macs > 0 && ms > 0 ? number(macs / ms * 1e-6) : "0.000";
}

double total_ms(const json& layers) {
    double sum = 0;
    for (const json& layer : layers) sum += mean(layer["ms"]);
    return std::max(sum, 1e-12);
}

std::string layers_table(const std::string& title, const std::vector<json>& layers, double total) {
    std::vector<Cells> rows;
    double sum = 0;
    for (const json& layer : layers) {
        const double ms = mean(layer["ms"]);
        sum += ms;
        rows.push_back({layer["type"], number(mean(layer["start_ms"])),
                        number(layer["ms"][0].get<double>()), number(ms), number(100 * ms / total),
                        number(100 * sum / total), speed(layer["macs"].get<double>(), ms),
                        layer["stride"], layer["pad"], layer["filter"], layer["output"],
                        layer["dilation"], layer["name"]});
        if (layer.contains("on")) rows.back().insert(rows.back().end() - 1, layer["on"]);
    }
    Cells head = {"Op Type", "Start", "First",        "Avg(ms)",      "%",        "cdf%", "GMACPS",
                  "Stride",  "Pad",   "Filter Shape", "Output Shape", "Dilation", "name"};
    if (!layers.empty() && layers[0].contains("on")) head.insert(head.end() - 1, "On");
    return table(title, head, rows);
}

// What a device ran, "" if there is none.
std::string dispatches_table(const json& layers, double total) {
    std::vector<Cells> rows;
    for (const json& layer : layers) {
        if (!layer.contains("dispatches")) continue;
        for (const json& d : layer["dispatches"]) {
            const double ms = mean(d["ms"]);
            rows.push_back({number(d["ms"][0].get<double>(), 4), number(ms, 4),
                            number(100 * ms / total), d["groups"], d["shader"], layer["type"],
                            layer["name"]});
        }
    }
    if (rows.empty()) return "";
    return table("9. Dispatches by Run Order",
                 {"First", "Avg(ms)", "%", "Groups", "Shader", "Op Type", "name"}, rows);
}

struct TypeSum {
    int count = 0;
    double ms = 0;
    int64_t macs = 0;
    size_t calls = 0;
};

std::vector<std::pair<std::string, TypeSum>> by_type(const json& layers) {
    std::map<std::string, TypeSum> sums;
    for (const json& layer : layers) {
        TypeSum& sum = sums[layer["type"].get<std::string>()];
        sum.count++, sum.ms += mean(layer["ms"]), sum.macs += layer["macs"].get<int64_t>();
        sum.calls += layer["ms"].size();
    }
    std::vector<std::pair<std::string, TypeSum>> sorted(sums.begin(), sums.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
    return sorted;
}

std::string types_table(const json& layers, double total) {
    std::vector<Cells> rows;
    double sum = 0;
    for (const auto& type : by_type(layers)) {
        const TypeSum& t = type.second;
        sum += t.ms;
        rows.push_back({type.first, std::to_string(t.count), number(t.ms),
                        number(100 * t.ms / total), number(100 * sum / total),
                        std::to_string(t.macs), speed((double)t.macs, t.ms),
                        std::to_string(t.calls)});
    }
    return table("6. Stat by Op Type",
                 {"Op Type", "Count", "Avg(ms)", "%", "cdf%", "MACs", "GMACPS", "Called times"},
                 rows);
}

int64_t total_macs(const json& layers) {
    int64_t sum = 0;
    for (const json& layer : layers) sum += layer["macs"].get<int64_t>();
    return sum;
}

std::string macs_table(const json& layers, const std::vector<double>& runs) {
    const int64_t macs = total_macs(layers);
    std::vector<double> speeds;
    for (double ms : runs) speeds.push_back((double)macs / ms * 1e-6);
    const Statistics s(speeds);
    return table("7. Stat by MACs (Multiply-Accumulation)",
                 {"total", "round", "first(G/s)", "avg(G/s)", "std(G/s)"},
                 {{std::to_string(macs), std::to_string(runs.size()), number(s.first),
                   number(s.mean), number(s.deviation)}});
}

// The sum of the layers' times of each run, that is, the run without the time between layers.
std::vector<double> sums_of_runs(const json& layers, size_t runs) {
    std::vector<double> sums(runs);
    for (const json& layer : layers)
        for (size_t i = 0; i < runs && i < layer["ms"].size(); i++)
            sums[i] += layer["ms"][i].get<double>();
    return sums;
}

// Those of a layer in a run: milliseconds, groups, shader.
json texts_of_dispatches(const json& layer, size_t run) {
    json texts = json::array();
    if (!layer.contains("dispatches")) return texts;
    for (const json& d : layer["dispatches"])
        texts.push_back(number(d["ms"][run].get<double>(), 4) + " ms, " +
                        d["groups"].get<std::string>() + " " + d["shader"].get<std::string>());
    return texts;
}

}  // namespace

std::string profile_report(const json& row) {
    const json& profile = row["profile"];
    const json& layers = profile["layers"];
    const double total = total_ms(layers);
    const std::vector<double> runs = profile["runs_ms"];
    std::vector<json> ordered(layers.begin(), layers.end());
    std::string text = "\n---- " + row["model"].get<std::string>() + " ----\n" +
                       runs_table("1. Warm Up", row["warmup_ms"]) +
                       runs_table("2. Run without statistics", row["times_ms"]) +
                       runs_table("3. Run with statistics", runs) +
                       layers_table("4. Sort by Run Order", ordered, total);
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const json& a, const json& b) { return mean(a["ms"]) > mean(b["ms"]); });
    if (ordered.size() > 10) ordered.resize(10);
    text += layers_table("5. Sort by Computation Time (top-10)", ordered, total);
    text += types_table(layers, total);
    text += macs_table(layers, runs);
    text += runs_table("8. Summary of Ops' Stat", sums_of_runs(layers, runs.size()));
    text += dispatches_table(layers, total);
    return text + "\nload " + number(row["load_ms"].get<double>()) + " ms, peak memory " +
           number(row["peak_mib"].get<double>(), 1) + " MiB, a run allocates " +
           std::to_string(row["blocks"].get<size_t>()) + " blocks and " +
           std::to_string(row["small_allocations"].get<size_t>()) + " small objects\n";
}

std::string chrome_trace(const json& rows) {
    json events = json::array();
    int process = 0;
    for (const json& row : rows) {
        if (!row.contains("profile")) continue;
        process++;
        events.push_back({{"name", "process_name"},
                          {"ph", "M"},
                          {"pid", process},
                          {"args", {{"name", row["model"]}}}});
        const std::vector<double> runs = row["profile"]["runs_ms"];
        double begin = 0;
        for (size_t i = 0; i < runs.size(); begin += runs[i++])
            for (const json& layer : row["profile"]["layers"]) {
                if (i >= layer["ms"].size()) continue;
                const std::string on = layer.value("on", "cpu");
                // Microseconds, as the format wants them.
                events.push_back({{"name", layer["name"]},
                                  {"cat", layer["type"]},
                                  {"ph", "X"},
                                  {"pid", process},
                                  {"tid", on == "vulkan" ? 2 : 1},
                                  {"ts", (begin + layer["start_ms"][i].get<double>()) * 1e3},
                                  {"dur", layer["ms"][i].get<double>() * 1e3},
                                  {"args",
                                   {{"type", layer["type"]},
                                    {"macs", layer["macs"]},
                                    {"on", on},
                                    {"dispatches", texts_of_dispatches(layer, i)},
                                    {"filter", layer["filter"]},
                                    {"output", layer["output"]}}}});
            }
    }
    return json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump(
               -1, ' ', false, json::error_handler_t::replace) +
           "\n";
}

}  // namespace quoll
