#include "quantize/enginequantize_options.h"

#include <stdlib.h>
#include <unistd.h>

#include <map>

#include "quantize/mixed.h"
#include "quantize/overrides.h"
#include "quantize/weight_kinds.h"
#include "quoll/status.h"

namespace quoll {

namespace {

const char kFooter[] =
    "FILES: IN.param IN.bin OUT.param OUT.bin, or IN.onnx OUT.param OUT.bin.\n"
    "Exit code: 0, 1 when a file is at fault, 2 for a wrong command line. Files are written whole "
    "or not at all.\n";

void add_data_options(CommandLine* line, Arguments* a) {
    line->option("--data", a->data.data,
                 "folders, lists (.txt), images and .npy files to calibrate with; INPUT=... where "
                 "the model has several inputs")
        .takes(1, 1 << 20);
    line->option(
        "--labels", a->data.labels,
        "FILE: what is right, a line for each sample: the class's number; of metrics map50 "
        "and map LABEL X1 Y1 X2 Y2; ...; of wer the text; of a program anything");
    line->option("--test", a->test.data, "samples to judge with; default: some of --data held out")
        .takes(1, 1 << 20);
    line->option("--test-labels", a->test.labels, "FILE: of the samples of --test");
    line->option("--pixel", a->pixel,
                 "RGB, BGR, GRAY, RGBA, BGRA; default: GRAY, RGB or RGBA by the input's channels; "
                 "here and below also INPUT=...")
        .one_at_a_time();
    line->option("--mean", a->mean, "M,M,M taken off images' values; default 0").one_at_a_time();
    line->option("--norm", a->norm, "N,N,N, by which they are then multiplied; default 1")
        .one_at_a_time();
    line->option("--resize", a->resize, "W,H of images; default: the input's size").one_at_a_time();
    line->option("--limit", a->limit, "N samples of the data, chosen at random; default: all")
        .between(1, 1 << 30);
    line->option("--seed", a->seed, "of the choice of samples");
    line->option("--holdout", a->holdout, "part of --data to judge with, default 0.1")
        .between(0.0, 0.9);
    line->flag("--strict", a->strict, "a sample that cannot be read ends the run");
    a->inputs_said.add_shapes_to(line);
}

// "INPUT=VALUE" or "VALUE", by names of the model's inputs.
void split_input(const std::string& word, const std::vector<ModelInput>& inputs, std::string* input,
                 std::string* value) {
    *input = "", *value = word;
    for (const ModelInput& i : inputs) {
        if (word.compare(0, i.name.size() + 1, i.name + "=") != 0) continue;
        *input = i.name, *value = word.substr(i.name.size() + 1);
    }
}

bool parse_floats(const std::string& text, std::vector<float>* values) {
    const char* p = text.c_str();
    for (;;) {
        char* end;
        const float v = strtof(p, &end);
        if (end == p || !(v - v == 0.f)) return false;
        values->push_back(v);
        if (*end == '\0') return true;
        if (*end != ',') return false;
        p = end + 1;
    }
}

// Kind of the layers, and the method by which ranges are found.
int read_method(const Arguments& a, QuantizeOptions* o, std::string* why) {
    const auto wrong = [&](const std::string& what) { return *why = what, -1; };
    if (a.method != "best" && !parse_method(a.method, &o->thresholds.method))
        return wrong("--method '" + a.method + "': expected best|" + method_names());
    if (!a.kind.empty() && !is_weight_kind(a.kind))
        return wrong("--kind '" + a.kind + "': expected " + weight_kind_names());
    const bool as_ncnn =
        !a.table_in.empty() || !a.table_out.empty() || o->thresholds.method == Method::kEq;
    if (!a.kind.empty() || as_ncnn) o->kind = a.kind.empty() ? "int8" : a.kind;
    if (!a.table_out.empty() && o->kind != "int8")
        return wrong("--table: ncnn's tables hold the scales of --kind int8, not of '" + o->kind +
                     "'");
    o->thresholds.percentile = a.percentile, o->thresholds.ema_decay = a.ema_decay;
    o->thresholds.enhance_ratio = a.enhance_ratio;
    if (o->thresholds.method == Method::kConstant) {
        if (a.constant.size() != 2 || !(a.constant[0] <= 0 && a.constant[1] >= 0))
            return wrong("--method constant needs --constant LOW HIGH with LOW <= 0 <= HIGH");
        o->thresholds.constant.low = (float)a.constant[0];
        o->thresholds.constant.high = (float)a.constant[1];
    }
    return 0;
}

// What the result is judged by.
int check_goals(const Arguments& a, std::string* why) {
    const auto wrong = [&](const std::string& what) { return *why = what, -1; };
    double part;
    MixedOptions mixed;
    if (!a.max_drop.empty() && !parse_part(a.max_drop, &part))
        return wrong("--max-drop '" + a.max_drop + "': expected a part, as 0.5%");
    if (!a.budget.empty() && !parse_budget(a.budget, &mixed))
        return wrong("--budget '" + a.budget + "': expected size=4MB,time=10ms");
    if (!is_metric_name(a.metric.name) && access(a.metric.name.c_str(), X_OK) != 0)
        return wrong("--metric '" + a.metric.name + "': expected " + metric_names() +
                     " or a program that can be run");
    return 0;
}

int read_layers(const Arguments& a, QuantizeOptions* o, std::string* why) {
    for (const std::string& word : a.layers) {
        const size_t at = word.rfind('=');
        if (at == std::string::npos || at == 0 || !is_weight_kind(word.substr(at + 1)))
            return *why = "--layer '" + word + "': expected LAYER=KIND, KIND one of " +
                          weight_kind_names(),
                   -1;
        o->layers[word.substr(0, at)].kind = word.substr(at + 1);
    }
    return 0;
}

int read_ranges(const Arguments& a, QuantizeOptions* o, std::string* why) {
    for (const std::string& file : a.range_logs) {
        std::string text;
        std::map<std::string, ValueRange> ranges;
        if (read_text(file, "a log of ranges", &text) || parse_range_log(text, file, &ranges))
            return *why = "", -1;
        for (const auto& range : ranges) o->blobs[range.first].range = range.second;
    }
    for (const std::string& word : a.ranges) {
        const size_t at = word.rfind('=');
        std::vector<float> values;
        if (at == std::string::npos || !parse_floats(word.substr(at + 1), &values) ||
            values.size() != 2 || values[0] > values[1])
            return *why = "--range '" + word + "': expected BLOB=LOW,HIGH", -1;
        ValueRange& range = o->blobs[word.substr(0, at)].range;
        range.low = values[0], range.high = values[1];
    }
    return 0;
}

// Options that would change nothing.
int check_without_effect(const Arguments& a, std::string* why) {
    const bool data = !a.data.data.empty();
    const struct {
        const char* name;
        bool given, possible;
        const char* reason;
    } kOptions[] = {
        {"--labels", !a.data.labels.empty(), data, "needs --data"},
        {"--test-labels", !a.test.labels.empty(), !a.test.data.empty(), "needs --test"},
        {"--rounding reconstruct", a.rounding == "reconstruct", data, "needs --data"},
    };
    for (const auto& option : kOptions)
        if (option.given && !option.possible)
            return *why = std::string(option.name) + " " + option.reason, -1;
    const std::pair<const char*, bool> kSaid[] = {{"--kind", !a.kind.empty() && a.kind != "int8"},
                                                  {"--method", a.method != "best"},
                                                  {"--layer", !a.layers.empty()},
                                                  {"--override", !a.overrides.empty()},
                                                  {"--range", !a.ranges.empty()},
                                                  {"--range-log", !a.range_logs.empty()},
                                                  {"--weights mse", a.weights == "mse"},
                                                  {"--rounding", !a.rounding.empty()},
                                                  {"--max-drop", !a.max_drop.empty()},
                                                  {"--budget", !a.budget.empty()}};
    for (const auto& option : kSaid)
        if (!a.table_in.empty() && option.second)
            return *why = std::string(option.first) +
                          ": with --from-table the table says what becomes of the layers",
                   -1;
    return 0;
}

}  // namespace

void add_options(CommandLine* line, Arguments* a) {
    line->footer(kFooter);
    line->option("FILES", a->files, "the model, and what to write").required().takes(3, 4);
    add_data_options(line, a);
    line->option("--method", a->method,
                 "ranges of activations: " + method_names() +
                     "; default best, that of five whose outputs are nearest");
    line->option("--kind", a->kind,
                 "of layers: " + weight_kind_names() +
                     "; default affine, but int8, which ncnn reads, with ncnn's tables and method "
                     "eq");
    line->option("--layer", a->layers, "LAYER=KIND, once for each").one_at_a_time();
    line->option(
            "--override", a->overrides,
            "FILE of JSON or YAML with kinds of layers, bit widths, ranges and methods of blobs")
        .one_at_a_time();
    line->option("--write-override", a->override_out, "FILE for such a file with what was chosen");
    line->option("--range", a->ranges, "BLOB=LOW,HIGH, once for each").one_at_a_time();
    line->option("--range-log", a->range_logs,
                 "FILE of lines BLOB@@LOW,HIGH, as MACE's tools write")
        .one_at_a_time();
    line->option("--percentile", a->percentile, "part of the values that is kept, default 99.99")
        .between(50.0, 100.0);
    line->option("--ema-decay", a->ema_decay, "weight of the samples before, default 0.999")
        .between(0.0, 0.999999);
    line->option("--enhance-ratio", a->enhance_ratio, "of method enhanced, default 10")
        .between(0.0, 1e9);
    line->option("--constant", a->constant, "LOW HIGH of method constant, which has no default")
        .takes(2, 2);
    line->option("--weights", a->weights, "scales of weights: minmax or mse")
        .one_of({"minmax", "mse"});
    line->option("--rounding", a->rounding,
                 "of weights: nearest, or reconstruct, by the layers' outputs on --data; default "
                 "reconstruct for blocks of weights, else nearest")
        .one_of({"nearest", "reconstruct"});
    line->flag("--no-bias-correction", a->no_bias, "leave biases as they are");
    line->flag("--no-equalize", a->no_equalize,
               "leave channels of a blob as far apart as they are");
    line->flag("--hard-ranges", a->hard_ranges,
               "ranges that operators know go before measured ones; else they only limit these");
    line->option("--max-drop", a->max_drop,
                 "0.5%: leave as many layers in float as keeps the loss of --metric below this");
    line->option("--budget", a->budget,
                 "size=4MB,time=10ms, or one of both: the most accurate choice within");
    line->option("--metric", a->metric.name,
                 metric_names() +
                     " or a program, here and in the report; default cosine; a program gets a file "
                     "of lines NAME, LABEL, outputs' .npy files with tabs between, and prints a "
                     "number, more being better");
    line->option("--tokens", a->tokens,
                 "FILE of metric wer: the text of each class, a line each; default: labels are "
                 "numbers of classes");
    line->option("--blank", a->metric.blank,
                 "class of metric wer that stands for nothing, default 0")
        .between(0, 1 << 24);
    line->option("--from-table", a->table_in, "FILE: ncnn's table, instead of data");
    line->option("--table", a->table_out, "FILE: write the scales as ncnn's table");
    line->option("--report", a->report, "FOLDER for report.html and report.json");
    line->option("--max-error", a->max_error, "of a layer, in parts of its range, default 1");
    line->option("--mean-error", a->mean_error, "the same of the mean, default 0.01");
    line->option("--threads", a->threads, "samples at a time; default: the cores").between(1, 1024);
    line->flag("--no-fusion", a->no_fusion, "leave the layers as they are");
}

bool parse_forms(const Arguments& a, const std::vector<ModelInput>& inputs, DataOptions* data,
                 std::string* why) {
    std::string input, value;
    for (const std::string& word : a.pixel) {
        split_input(word, inputs, &input, &value);
        data->forms[input].pixel = value;
    }
    const auto numbers = [&](const char* what, const std::vector<std::string>& words, auto take) {
        for (const std::string& word : words) {
            split_input(word, inputs, &input, &value);
            std::vector<float> values;
            if (!parse_floats(value, &values) || !take(data->forms[input], values))
                return *why = std::string(what) + " '" + word + "'", false;
        }
        return true;
    };
    return numbers("--mean", a.mean, [](ImageForm& f, auto& v) { return f.mean = v, true; }) &&
           numbers("--norm", a.norm, [](ImageForm& f, auto& v) { return f.norm = v, true; }) &&
           numbers("--resize: expected W,H, got", a.resize, [](ImageForm& f, auto& v) {
               if (v.size() != 2 || !(v[0] >= 1 && v[0] <= 32768 && v[1] >= 1 && v[1] <= 32768))
                   return false;
               return f.w = (int)v[0], f.h = (int)v[1], true;
           });
}

int read_options(const Arguments& a, QuantizeOptions* o, std::string* why) {
    QUOLL_RETURN_IF_ERROR(read_method(a, o, why));
    QUOLL_RETURN_IF_ERROR(check_goals(a, why));
    QUOLL_RETURN_IF_ERROR(check_without_effect(a, why));
    o->weights.mse = a.weights == "mse";
    o->bias_correction = !a.no_bias, o->hard_ranges = a.hard_ranges;
    o->input_factors = !a.no_equalize;
    o->join_concat = o->thresholds.method == Method::kUnion;
    QUOLL_RETURN_IF_ERROR(read_layers(a, o, why));
    return read_ranges(a, o, why);
}

}  // namespace quoll
