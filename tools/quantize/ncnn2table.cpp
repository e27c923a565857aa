// ncnn2table: ncnn's calibration tables, by the arguments of ncnn's program of that name.
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "common/progress.h"
#include "quantize/eq_search.h"
#include "quantize/quantize.h"
#include "quoll/cpu.h"

using namespace quoll;

namespace {

const char kProgram[] = "ncnn2table";

struct Arguments {
    std::string param, bin, lists, table;
    std::vector<std::string> keys;
};

const char kFooter[] =
    "KEY=VALUE: mean=[M,M,M] norm=[N,N,N] shape=[W,H,C] pixel=RGB|BGR|GRAY|RGBA|BGRA, with commas "
    "between those of\n"
    "several inputs (default: 0, 1, the input's size, GRAY, RGB or RGBA by its channels); thread=N "
    "(the physical cores);\n"
    "method=kl|aciq|eq, or another of enginequantize (kl); type=0 images, 1 .npy files (by their "
    "names).\n"
    "Exit code: 0, 1 when a file is at fault, 2 for a wrong command line. The table is written "
    "whole or not at all.\n";

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (char ch : text) {
        if (ch == at)
            parts.emplace_back();
        else
            parts.back() += ch;
    }
    return parts;
}

// "[1,2,3],[4]" as lists of numbers.
bool parse_groups(const std::string& text, std::vector<std::vector<float>>* groups) {
    const char* p = text.c_str();
    for (;;) {
        if (*p++ != '[') return false;
        groups->emplace_back();
        for (;;) {
            char* end;
            groups->back().push_back(strtof(p, &end));
            if (end == p || !(groups->back().back() - groups->back().back() == 0.f)) return false;
            p = end + 1;
            if (*end == ']') break;
            if (*end != ',') return false;
        }
        if (*p == '\0') return true;
        if (*p++ != ',') return false;
    }
}

class Job {
public:
    Job(const Arguments& a, MessageLog* log) : a_(a), log_(log) {}

    int run() {
        Model model;
        std::string why;
        if (load_model_files(a_.param, a_.bin, &model)) return fail("cannot load " + a_.param);
        inputs_ = inputs_of(model);
        data_.forms.clear();
        const std::vector<std::string> lists = split(a_.lists, ',');
        if (lists.size() != inputs_.size())
            return fail(std::to_string(lists.size()) + " lists for " +
                        std::to_string(inputs_.size()) + " inputs");
        for (size_t i = 0; i < lists.size(); i++) {
            data_.data.push_back(inputs_[i].name + "=" + lists[i]);
            data_.forms[inputs_[i].name];
        }
        for (const std::string& key : a_.keys)
            if (!take(key)) return fail("'" + key + "' (--help has the keys)");
        const std::unique_ptr<SampleSource> samples = open_samples(inputs_, data_);
        if (!samples) return fail("");
        Calibration seen;
        Progress progress("calibrate", 2 * (long long)samples->count());
        CalibrateOptions how;
        how.threads = threads_;
        how.progress = [&](size_t done, size_t) { progress.update((long long)done); };
        if (calibrate(model, *samples, blobs_to_watch(model), how, &seen)) return fail("");
        Progress::hide();
        if (!seen.skipped.empty())
            for (const std::string& message : log_->take())
                fprintf(stderr, "%s: skipped: %s\n", kProgram, printable(message).c_str());
        if (options_.thresholds.method == Method::kEq) {
            const SomeSamples few(*samples, {0, std::min<size_t>(1, samples->count() - 1)});
            if (search_ranges(model, seen, few, threads_, nullptr, &options_)) return fail("");
        }
        std::vector<LayerChoice> layers;
        if (quantize_model(seen, options_, &model, &layers)) return fail("");
        std::vector<std::string> read = lists;
        read.insert(read.end(), {a_.param, a_.bin});
        OutputFiles files(read);
        const ScaleTable table = table_of(layers);
        if (write_file(a_.table, table_text(table), &files) || files.commit()) return fail("");
        printf("%zu layers, %zu samples\n", table.order.size(), seen.used);
        return 0;
    }

private:
    int fail(const std::string& what) { return log_->fail(kProgram, what); }

    bool take(const std::string& word) {
        const size_t at = word.find('=');
        if (at == std::string::npos) return false;
        const std::string key = word.substr(0, at), value = word.substr(at + 1);
        if (key == "method") return parse_method(value, &options_.thresholds.method);
        if (key == "type") return value == "0" || value == "1";  // names of files say it
        if (key == "thread") {
            threads_ = atoi(value.c_str());
            return threads_ >= 1 && threads_ <= 1024;
        }
        if (key == "pixel") {
            const std::vector<std::string> words = split(value, ',');
            for (size_t i = 0; i < words.size() && i < inputs_.size(); i++)
                form(i).pixel = words[i];
            return words.size() == inputs_.size();
        }
        std::vector<std::vector<float>> groups;
        if (!parse_groups(value, &groups) || groups.size() != inputs_.size()) return false;
        for (size_t i = 0; i < groups.size(); i++) {
            if (key == "mean")
                form(i).mean = groups[i];
            else if (key == "norm")
                form(i).norm = groups[i];
            else if (key != "shape" || !take_shape(i, groups[i]))
                return false;
        }
        return true;
    }

    // [w,h,c], [w,h] or [w]; 0: as the image is.
    bool take_shape(size_t i, const std::vector<float>& sizes) {
        for (float v : sizes)
            if (!(v >= 0 && v <= 32768)) return false;
        if (sizes.size() > 3) return false;
        Shape& size = inputs_[i].size;
        if (sizes.size() == 3) size = Shape((int)sizes[0], (int)sizes[1], (int)sizes[2]);
        if (sizes.size() < 2) return true;
        form(i).w = (int)sizes[0], form(i).h = (int)sizes[1];
        return true;
    }
    ImageForm& form(size_t i) { return data_.forms[inputs_[i].name]; }

    const Arguments& a_;
    MessageLog* const log_;
    std::vector<ModelInput> inputs_;
    DataOptions data_;
    QuantizeOptions options_ = kl();
    int threads_ = get_physical_cpu_count();

    static QuantizeOptions kl() {
        QuantizeOptions options;
        options.kind = "int8";
        options.thresholds.method = Method::kKl;
        return options;
    }
};

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Writes the scales of a model's int8 layers as ncnn's table.", kProgram);
    line.footer(kFooter);
    line.option("MODEL.param", a.param, "the graph").required();
    line.option("MODEL.bin", a.bin, "the weights").required();
    line.option("LIST", a.lists, "a file of paths, or a folder; with commas for several inputs")
        .required();
    line.option("TABLE", a.table, "the table to write").required();
    line.option("KEYS", a.keys, "KEY=VALUE").takes(0, 16);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    return without_exceptions(kProgram, [&] { return Job(a, &log).run(); });
}
