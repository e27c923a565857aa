// enginequantize: a model of fewer bits, from a model and data, with the proof.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "common/progress.h"
#include "graph/optimize.h"
#include "layer/control/output.h"
#include "layer/norm/softmax.h"
#include "onnx/load_onnx.h"
#include "quantize/attention_products.h"
#include "quantize/deconv_as_conv.h"
#include "quantize/enginequantize_options.h"
#include "quantize/eq_search.h"
#include "quantize/equalise.h"
#include "quantize/evaluate.h"
#include "quantize/gemm_rows.h"
#include "quantize/overrides.h"
#include "quantize/report.h"
#include "quantize/summary.h"
#include "quantize/targets.h"
#include "quantize/weight_kinds.h"
#include "quoll/cpu.h"
#include "quoll/status.h"
#include "runtime/log_mute.h"

using namespace quoll;

namespace {

const char kProgram[] = "enginequantize";

// The model, its input files, and the two that are to be written.
struct Files {
    std::vector<std::string> in;
    std::string param, bin;
};

// What a converted model's weights lie in.
#if QUOLL_TAKES_ONNX
typedef OnnxResult OnnxStorage;
#else
struct OnnxStorage {};
#endif

int load(const Arguments& a, Files* files, OnnxStorage* storage, Model* model, std::string* why) {
    const bool onnx = is_onnx(a.files[0]);
    if (a.files.size() != (onnx ? 3 : 4)) {
        *why = onnx ? "expected IN.onnx OUT.param OUT.bin"
                    : "expected IN.param IN.bin OUT.param OUT.bin";
        return -1;
    }
    files->in.assign(a.files.begin(), a.files.end() - 2);
    files->param = a.files[a.files.size() - 2], files->bin = a.files.back();
    *why = "cannot load " + a.files[0];
    if (!onnx) return load_model_files(a.files[0], a.files[1], model);
#if QUOLL_TAKES_ONNX
    if (convert_onnx(a.files[0], OnnxOptions(), storage)) {
        for (const OnnxProblem& p : storage->problems)
            QUOLL_LOGE("cannot convert %s (%s): %s", p.node.c_str(), p.op.c_str(),
                       p.reason.c_str());
        return -1;
    }
    *model = storage->model;
    files->in.insert(files->in.end(), storage->data_files.begin(), storage->data_files.end());
    return 0;
#else
    (void)storage;
    *why += ": this program was built without libonnx; onnx2engine converts ONNX models";
    return -1;
#endif
}

// A softmax is sure of most samples, whatever rounding does to what goes into it: of few samples
// one then decides what the outputs are worth.
Model without_last_softmax(const Model& model) {
    std::set<std::string> read;
    for (const ModelLayer& layer : model.layers)
        if (!layer.is<Output>()) read.insert(layer.inputs.begin(), layer.inputs.end());
    Model cut = model;
    for (ModelLayer& layer : cut.layers) {
        if (!layer.is<Softmax>() || read.count(layer.outputs[0])) continue;
        layer.type = "Noop";
        layer.params.clear();
    }
    return cut;
}

// Which samples are calibrated with, and which are held out.
struct Choice {
    std::vector<size_t> calibrate, judge;
};
Choice choose_samples(const Arguments& a, size_t count, bool hold_out) {
    std::vector<size_t> all(count);
    for (size_t i = 0; i < count; i++) all[i] = i;
    std::mt19937 rng((unsigned)a.seed);
    for (size_t i = count; i > 1; i--) std::swap(all[i - 1], all[rng() % i]);
    if (a.limit > 0 && (size_t)a.limit < count) all.resize((size_t)a.limit);
    const size_t kept =
        hold_out && all.size() > 1
            ? std::min(all.size() - 1, (size_t)((double)all.size() * a.holdout + 0.5))
            : 0;
    Choice choice;
    choice.judge.assign(all.begin(), all.begin() + (long)kept);
    choice.calibrate.assign(all.begin() + (long)kept, all.end());
    // In the data's order: methods look at which sample came last.
    std::sort(choice.judge.begin(), choice.judge.end());
    std::sort(choice.calibrate.begin(), choice.calibrate.end());
    return choice;
}

ProgressSink bar(Progress* progress) {
    return [progress](size_t done, size_t) { progress->update((long long)done); };
}

void tell_skipped(const std::vector<std::string>& messages) {
    Progress::hide();
    for (const std::string& message : messages)
        fprintf(stderr, "%s: skipped: %s\n", kProgram, printable(message).c_str());
}

void tell_skipped(const Calibration& calibration, MessageLog* log) {
    if (!calibration.skipped.empty()) tell_skipped(log->take());
    Progress::hide();
    const size_t kFew = 20;
    if (calibration.used < kFew)
        fprintf(stderr,
                "%s: warning: %zu sample%s to calibrate with; ranges want a hundred or more\n",
                kProgram, calibration.used, calibration.used == 1 ? "" : "s");
}

int make_folder(const std::string& folder) {
    if (mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) return 0;
    QUOLL_LOGE("%s cannot be created: %s", folder.c_str(), strerror(errno));
    return -1;
}

int write_report(const QuantizeReport& report, const std::string& folder, OutputFiles* files) {
    return write_file(folder + "/report.json", report_json(report), files) ||
           write_file(folder + "/report.html", report_html(report), files);
}

int64_t weight_bytes(const Model& model) {
    ModelFacts facts;
    return analyse_model(model, BlobSizes(), &facts) ? 0 : facts.weight_bytes;
}

// In dB: layers are not looked for to leave in float beyond this.
const double kEnough = 30;

// Which channels are made alike: none, those where it costs nothing (see equalise), or all.
enum class Equalised { kNone, kFree, kAll };

class Job {
public:
    Job(const Arguments& a, MessageLog* log) : a_(a), log_(log), metric_(a.metric) {}

    int run() {
        std::string why;
        OnnxStorage storage;
        if (read_options(a_, &options_, &why)) return fail(why);
        if (load(a_, &files_, &storage, &model_, &why)) return fail(why);
        inputs_ = inputs_of(model_);
        if (set_input_sizes(&why)) return fail(why);
        for (const std::string& file : a_.overrides)
            if (read_overrides(file, &options_, &equalized_)) return fail("");
        if (equalized_ && (a_.data.data.empty() || a_.no_equalize))
            return fail(
                "--override: its ranges are those of equalised channels, which takes --data");
        if (open_data(&why)) return fail(why);
        if (gemm_to_inner_product(sized_options(), &model_)) return fail("");
        OptimizeReport passes;
        if (!a_.no_fusion && a_.table_in.empty() &&
            run_graph_passes(&model_, blobs_before_swish(model_), &passes))
            return fail("");
        original_ = model_;
        if (a_.table_in.empty() && (deconvolutions_to_convolutions(options_, &model_) ||
                                    attention_to_products(&options_, &model_)))
            return fail("");
        before_ = model_;
        report_.model = a_.files[0], report_.method = a_.method;
        report_.limits.max = a_.max_error, report_.limits.mean = a_.mean_error;
        const std::vector<std::string> read = all_inputs();
        if (check_outputs(read)) return fail("");
        if (!a_.table_in.empty() ? by_table() : by_data()) return fail("");
        report_.bytes_before = weight_bytes(before_), report_.bytes_after = weight_bytes(model_);
        log_->clear();
        if (judge_ && judge()) return fail("");
        OutputFiles files(read);
        if (save_model_files(model_, files_.param, files_.bin, &files)) return fail("");
        const ScaleTable table = table_of(report_.layers);
        if (!a_.table_out.empty() && write_file(a_.table_out, table_text(table), &files))
            return fail("");
        if (!a_.override_out.empty() &&
            write_file(a_.override_out, overrides_text(report_.layers, report_.equalised > 0),
                       &files))
            return fail("");
        if (!a_.report.empty() && write_report(report_, a_.report, &files)) return fail("");
        if (files.commit()) return fail("");
        Progress::hide();
        print_summary(report_);
        tell_without_int16();
        for (const std::string& line : advice(report_)) printf("%s\n", line.c_str());
        return 0;
    }

private:
    void tell_without_int16() const {
        const auto small = [](const LayerChoice& layer) { return layer.kind == "weights8"; };
        if (options_.kind == kInt16Kind &&
            std::any_of(report_.layers.begin(), report_.layers.end(), small))
            printf(
                "%-10s of depthwise, grouped and recurrent layers there is none: weights of 8 "
                "bits, in float arithmetic\n",
                kInt16Kind);
    }
    std::vector<std::string> all_inputs() const {
        std::vector<std::string> read = files_.in;
        read.insert(read.end(), {a_.table_in, a_.data.labels, a_.test.labels});
        read.insert(read.end(), a_.overrides.begin(), a_.overrides.end());
        read.insert(read.end(), a_.data.data.begin(), a_.data.data.end());
        read.insert(read.end(), a_.test.data.begin(), a_.test.data.end());
        return read;
    }
    // Reports files that cannot be written before minutes are spent.
    int check_outputs(const std::vector<std::string>& read) const {
        OutputFiles files(read);
        std::vector<std::string> targets = {files_.param, files_.bin};
        for (const std::string& file : {a_.table_out, a_.override_out})
            if (!file.empty()) targets.push_back(file);
        if (!a_.report.empty()) {
            QUOLL_RETURN_IF_ERROR(make_folder(a_.report));
            targets.insert(targets.end(), {a_.report + "/report.json", a_.report + "/report.html"});
        }
        for (const std::string& target : targets)
            if (files.add(target).empty()) return -1;
        return 0;
    }
    int fail(const std::string& what) { return log_->fail(kProgram, what); }
    int threads() const { return a_.threads > 0 ? a_.threads : get_physical_cpu_count(); }

    // --shape: sizes of inputs that the model leaves open, for images.
    int set_input_sizes(std::string* why) {
        BlobSizes sizes;
        if (parse_shapes(a_.inputs_said.shapes, inputs_, &sizes, why))
            return *why = "--shape " + *why, -1;
        for (const auto& size : sizes)
            if (model_.producer(size.first) < 0)
                return *why = "--shape: no blob '" + size.first + "'", -1;
        options_.sizes = sizes;
        for (ModelInput& input : inputs_) {
            const auto said = sizes.find(input.name);
            if (said != sizes.end()) input.size = said->second;
        }
        return 0;
    }

    // With the sizes of the first sample that can be read where the model leaves them open.
    QuantizeOptions sized_options() const {
        QuantizeOptions options = options_;
        const LogMute mute;  // calibration tells of the others
        Blobs first;
        for (size_t i = 0; part_ && i < part_->count(); i++) {
            first.clear();
            if (part_->read(i, &first) == kOk) break;
        }
        for (const ModelInput& input : inputs_)
            if (input.size.dims == 0 && first.count(input.name))
                options.sizes[input.name] = first[input.name].logical_shape();
        return options;
    }

    int open_data(std::string* why) {
        DataOptions data = a_.data, test = a_.test;
        if (!parse_forms(a_, inputs_, &data, why)) return -1;
        test.forms = data.forms;
        data.text_labels = test.text_labels = metric_.is_task();
        *why = "--tokens";
        if (!a_.tokens.empty() && read_lines(a_.tokens, &metric_.tokens)) return -1;
        const bool needs =
            a_.table_in.empty() && is_static_kind(options_.kind) && a_.overrides.empty();
        if (needs && data.data.empty())
            return *why = "--data: " + options_.kind + " needs samples", -1;
        *why = "--data";
        if (!data.data.empty() && !(data_ = open_samples(inputs_, data))) return -1;
        *why = "--test";
        if (!test.data.empty() && !(test_ = open_samples(inputs_, test))) return -1;
        *why = "--metric";
        if (!data_) {
            judge_ = test_.get();
            return judge_ ? check_truths(metric_, *judge_) : 0;
        }
        const Choice choice = choose_samples(a_, data_->count(), !test_);
        part_ = std::make_unique<SomeSamples>(*data_, choice.calibrate);
        held_ = std::make_unique<SomeSamples>(
            *data_, choice.judge.empty() ? choice.calibrate : choice.judge);
        judge_ = test_ ? test_.get() : held_.get();
        report_.held_out = test_ || !choice.judge.empty();
        return check_truths(metric_, *judge_);
    }

    int by_table() {
        ScaleTable table;
        std::vector<std::string> done;
        if (read_table(a_.table_in, &table) || quantize_by_table(table, &model_, &done)) return -1;
        report_.method = "table";
        for (const Int8Target& target : int8_targets(before_)) {
            LayerChoice choice;
            choice.layer = target.layer, choice.name = target.name;
            choice.type = model_.layers[target.layer].type;
            choice.blob = target.blob, choice.source = target.source;
            const bool made = std::count(done.begin(), done.end(), target.name) > 0;
            choice.kind = made || target.already ? "int8" : "float";
            choice.origin = "table";
            if (made) {
                choice.weight_scales = table.weights[target.name];
                choice.input_scale = table.inputs[target.name][0];
                choice.range.high = 127.f / choice.input_scale;
                choice.range.low = -choice.range.high;
            }
            report_.layers.push_back(choice);
        }
        return 0;
    }

    int by_data() {
        const bool rounds = is_static_kind(options_.kind) || options_.kind == "dynamic";
        const auto begin = std::chrono::steady_clock::now();
        const bool could = part_ && !a_.no_equalize && rounds && !equalisable_blobs(model_).empty();
        Equalised form = could ? Equalised::kAll : Equalised::kNone;
        const bool narrow = is_static_kind(options_.kind) && options_.kind != kInt16Kind;
        if (part_ && a_.method == "best" && narrow) choose_best(&form);
        Calibration channels;
        if (form != Equalised::kNone && look_at_channels(*part_, &channels)) return -1;
        if (equalise_channels(channels, form)) return -1;
        if (part_ && look_at_blobs(*part_)) return -1;
        if (part_) tell_skipped(report_.calibration, log_);
        report_.calibration_seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (part_ && reconstruct()) return -1;
        if (options_.thresholds.method == Method::kEq && search_eq()) return -1;
        if ((!a_.max_drop.empty() || !a_.budget.empty()) && mix()) return -1;
        QUOLL_RETURN_IF_ERROR(
            quantize_model(report_.calibration, options_, &model_, &report_.layers));
        if (a_.method == "best" && !narrow) report_.method = method_without_trials();
        return 0;
    }

    // Where `best` tried none.
    std::string method_without_trials() const {
        const auto any = [&](const auto& is) {
            return std::any_of(report_.layers.begin(), report_.layers.end(),
                               [&](const LayerChoice& layer) { return is(layer.kind); });
        };
        if (any([](const std::string& k) { return k == "int8" || k == "affine"; }))
            return method_name(options_.thresholds.method);
        return any([](const std::string& k) { return k == kInt16Kind; })
                   ? method_name(Method::kMinmax)
                   : "none, as no layer takes ranges from data";
    }

    CalibrateOptions calibrate_options(const ProgressSink& progress) const {
        CalibrateOptions how;
        how.threads = threads(), how.strict = a_.strict, how.progress = progress;
        return how;
    }

    // What quantize_model decides by.
    int look_at_blobs(const SampleSource& samples) {
        Progress progress("calibrate", 2 * (long long)samples.count());
        report_.calibration = Calibration(), made_.clear();
        return look_at(samples, blobs_to_watch(model_), calibrate_options(bar(&progress)),
                       &report_.calibration);
    }

    // The samples' values of these blobs.
    int look_at(const SampleSource& samples, const std::set<std::string>& blobs,
                const CalibrateOptions& how, Calibration* seen) {
        if (calibrate(model_, samples, blobs, how, seen) == kOk) return kOk;
        if (seen->skipped.size() < samples.count() || on_trial_) return kError;
        // Each has its line, and the last word is that none is left.
        std::vector<std::string> messages = log_->take();
        messages.pop_back();
        tell_skipped(messages);
        const bool open = std::any_of(inputs_.begin(), inputs_.end(),
                                      [](const ModelInput& i) { return i.size.dims == 0; });
        QUOLL_LOGE("--data: none of the %zu samples to calibrate with can be used%s",
                   samples.count(),
                   open ? " (the model does not say the sizes of its inputs: if an array holds "
                          "several samples, --shape INPUT=... says what one is)"
                        : "");
        return kError;
    }

    int reconstruct() {
        const bool wanted = a_.rounding == "reconstruct" ||
                            (a_.rounding.empty() && options_.kind.compare(0, 5, "block") == 0);
        if (!wanted) return 0;
        const SomeSamples few(*part_, first_samples(32));
        Progress progress("rounding", 1000);
        const ProgressSink tell = [&](size_t done, size_t total) {
            progress.update((long long)(1000 * done / total));
        };
        return reconstruct_weights(model_, weight_grids(model_, options_), few, threads(), tell,
                                   &options_.rounded);
    }

    int search_eq() {
        if (!part_) return 0;
        const SomeSamples few(*part_, first_samples(2));
        Progress progress("ranges", 1000);
        const ProgressSink tell = [&](size_t done, size_t total) {
            progress.update((long long)(1000 * done / total));
        };
        return search_ranges(model_, report_.calibration, few, threads(), tell, &options_);
    }
    std::vector<size_t> first_samples(size_t most) const {
        std::vector<size_t> some;
        for (size_t i = 0; i < part_->count() && i < most; i++) some.push_back(i);
        return some;
    }

    // Which layers stay in float, measured on samples that were calibrated with.
    int mix() {
        if (!part_ || !is_static_kind(options_.kind)) {
            QUOLL_LOGE("--max-drop and --budget choose among int8 layers, with --data");
            return -1;
        }
        MixedOptions mixed;
        mixed.metric = metric_, mixed.threads = threads();
        if (!a_.max_drop.empty()) parse_part(a_.max_drop, &mixed.max_drop);
        if (!a_.budget.empty()) parse_budget(a_.budget, &mixed);
        // Shares of right answers take more samples than distances do.
        const size_t most = metric_.is_distance() ? 12 : 200;
        const SomeSamples few(*part_, first_samples(most));
        Progress progress("layers", 1000);
        const ProgressSink tell = [&](size_t done, size_t total) {
            progress.update((long long)(1000 * done / total));
        };
        report_.metric = metric_.name;
        return choose_mixed(original_, model_, report_.calibration, few, mixed, tell, &options_,
                            &report_.frontier);
    }

    // Samples to calibrate with on trial, and others to see what came of it: what is seen tells
    // nothing about values beyond those that were. Few samples are both.
    Choice trial_samples() const {
        const size_t kJudged = 24, kCalibrated = 96, kFew = 8;
        Choice choice;
        for (size_t i = 0; i < part_->count(); i++) {
            const bool few = part_->count() < kFew, judged = i % 4 == 3;
            if ((few || judged) && choice.judge.size() < kJudged) choice.judge.push_back(i);
            if ((few || !judged) && choice.calibrate.size() < kCalibrated)
                choice.calibrate.push_back(i);
        }
        return choice;
    }

    // The method, and which channels are equalised of those that *form says could be, by which the
    // outputs are nearest. Where that cannot be found out, the calibration that follows says why.
    void choose_best(Equalised* form) {
        const Choice choice = trial_samples();
        const SomeSamples some(*part_, choice.calibrate), judged(*part_, choice.judge);
        const Model plain = model_, exact = without_last_softmax(original_);
        exact_ = std::make_unique<ExactAnswers>(exact, judged, threads());
        std::vector<Equalised> forms = {*form};
        // Ranges that a file of overrides gives for equalised channels say what they are.
        if (*form == Equalised::kAll && !equalized_)
            forms.insert(forms.end(), {Equalised::kFree, Equalised::kNone});
        double most = -INFINITY;
        Method best = Method::kMse;
        on_trial_ = true;
        int before = -1;
        Calibration channels;
        bool seen = *form == Equalised::kNone || look_at_channels(some, &channels) == 0;
        for (Equalised tried : forms) {
            model_ = plain;
            seen = seen && equalise_channels(channels, tried) == 0;
            // Often the same channels.
            if (seen && report_.equalised == before) continue;
            before = report_.equalised;
            if (seen && look_at_blobs(some) == 0)
                try_methods([&](Method method, double sqnr) {
                    if (sqnr > most) most = sqnr, best = method, *form = tried;
                });
            log_->clear();
        }
        options_.thresholds.method = best;
        report_.method = std::string("best: ") + method_name(best);
        model_ = plain;
        if (most > -INFINITY && most < kEnough && equalise_channels(channels, *form) == 0 &&
            look_at_blobs(some) == 0)
            leave_in_float(judged, most);
        log_->clear();
        on_trial_ = false;
        exact_.reset(), made_.clear();
        model_ = before_ = plain, report_.equalised = 0;
    }

    // Depthwise layers have one scale for channels of any sizes, which nothing makes alike behind
    // HardSwish, and few products to lose: while the outputs' noise is above a thousandth of the
    // signal, the worst of them stay in float where that brings the outputs nearer by half a dB
    // each. sqnr: with none.
    void leave_in_float(const SampleSource& judged, double sqnr) {
        const size_t kMost = 6;
        const double kWorth = 0.5;
        for (const std::string& layer : worst_depthwise(judged, kMost)) {
            if (sqnr >= kEnough) return;
            options_.layers[layer].kind = "float";
            double without = 0;
            if (try_method(options_.thresholds.method, &without) && without >= sqnr + kWorth) {
                report_.in_float.push_back({layer, without - sqnr});
                sqnr = without;
            } else {
                options_.layers.erase(layer);
            }
        }
    }

    // Those whose kind was not given, the one with the largest own error first.
    std::vector<std::string> worst_depthwise(const SampleSource& judged, size_t most) {
        QuantizeOptions options = options_;
        options.trial = true;
        Model model = model_;
        std::vector<LayerChoice> layers;
        std::vector<LayerErrors> errors;
        std::vector<size_t> some;
        for (size_t i = 0; i < judged.count() && i < 4; i++) some.push_back(i);
        if (quantize_model(report_.calibration, options, &model, &layers)) return {};
        const auto wanted = [&](const LayerChoice& layer) {
            return layer.type.compare(0, 20, "ConvolutionDepthWise") == 0 &&
                   is_static_kind(layer.kind) && layer.origin != "model" &&
                   !options_.layers.count(layer.name);
        };
        if (std::none_of(layers.begin(), layers.end(), wanted) ||
            layer_errors(before_, model, layers, SomeSamples(judged, some), threads(), &errors))
            return {};
        std::vector<std::pair<double, std::string>> order;
        for (size_t i = 0; i < layers.size(); i++)
            if (wanted(layers[i])) order.push_back({errors[i].own.sqnr_db(), layers[i].name});
        std::sort(order.begin(), order.end());
        std::vector<std::string> names;
        for (size_t i = 0; i < order.size() && i < most; i++) names.push_back(order[i].second);
        return names;
    }

    // tell: called with the SQNR of the outputs, or what they are the softmax of, of the whole net
    // in int8.
    void try_methods(const std::function<void(Method, double)>& tell) {
        const Method tried[] = {Method::kMse, Method::kPercentile, Method::kMinmax, Method::kAciq,
                                Method::kKl};
        Progress progress("methods", 5);
        long long done = 0;
        for (Method method : tried) {
            progress.update(done++, method_name(method));
            double sqnr = 0;
            if (!try_method(method, &sqnr)) return;
            tell(method, sqnr);
        }
    }
    bool try_method(Method method, double* sqnr) {
        QuantizeOptions options = options_;
        options.thresholds.method = method, options.trial = true, options.made = &made_;
        Model model = model_;
        std::vector<LayerChoice> layers;
        Accuracy accuracy;
        if (quantize_model(report_.calibration, options, &model, &layers) ||
            evaluate(exact_.get(), without_last_softmax(model), MetricOptions(), &accuracy))
            return false;
        for (const OutputAccuracy& output : accuracy.outputs)
            *sqnr += output.agreement.sqnr_db() / (double)accuracy.outputs.size();
        return true;
    }

    // What equalise_channels decides by, from the original model.
    int look_at_channels(const SampleSource& samples, Calibration* seen) {
        Progress progress("equalise", (long long)samples.count());
        CalibrateOptions how = calibrate_options(bar(&progress));
        how.ranges_only = true;
        QUOLL_RETURN_IF_ERROR(look_at(samples, equalisable_blobs(model_), how, seen));
        log_->clear();  // the next pass meets the same samples
        return 0;
    }

    int equalise_channels(const Calibration& seen, Equalised form) {
        report_.equalised = 0;
        if (form == Equalised::kNone) return 0;
        // Ranges that somebody gives are those of the model as it is.
        std::set<std::string> given;
        for (const auto& blob : options_.blobs)
            if (blob.second.range.seen() && !equalized_)
                given.insert(range_source(model_, blob.first));
        if (equalise(seen, form == Equalised::kFree, given, &model_, &report_.equalised)) return -1;
        before_ = model_;
        return 0;
    }

    // Of samples that are held out, or given for it, those that cannot be read are left out too.
    int judge_outputs() {
        const int status =
            evaluate(original_, model_, *judge_, threads(), metric_, &report_.accuracy);
        const size_t read = report_.accuracy.samples;
        if (a_.strict && read < judge_->count()) return kError;
        const bool none_left = status && read == 0 && part_ && !test_ && report_.held_out;
        if (status && !none_left) return status;
        if (report_.held_out) tell_skipped(log_->take());
        if (!none_left) return kOk;
        judge_ = part_.get(), report_.held_out = false, report_.accuracy = Accuracy();
        return evaluate(original_, model_, *judge_, threads(), metric_, &report_.accuracy);
    }

    int judge() {
        Progress progress("compare", 2);
        progress.update(0, "outputs");
        if (judge_outputs()) return -1;
        progress.update(1, "layers");
        if (a_.report.empty()) return 0;
        const size_t kSome = 4;  // samples are enough to tell layers apart
        std::vector<size_t> some;
        for (size_t i = 0; i < judge_->count() && i < kSome; i++) some.push_back(i);
        const SomeSamples few(*judge_, some);
        return layer_errors(before_, model_, report_.layers, few, threads(), &report_.errors);
    }

    const Arguments& a_;
    MessageLog* const log_;
    QuantizeOptions options_;
    Files files_;
    bool equalized_ = false;  // the ranges of a file of overrides are
    bool on_trial_ = false;   // what is wrong with samples is told later
    Model model_, original_;
    Model before_;                         // the same function as the original, channels equalised
    std::unique_ptr<ExactAnswers> exact_;  // to what trials are judged with
    MadeLayers made_;                      // of trials since the blobs were looked at
    std::vector<ModelInput> inputs_;
    std::unique_ptr<SampleSource> data_, test_;
    std::unique_ptr<SomeSamples> part_, held_;
    const SampleSource* judge_ = nullptr;
    MetricOptions metric_;
    QuantizeReport report_;
};

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Makes a model of fewer bits from a model and data, and proves it.", kProgram);
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    return without_exceptions(kProgram, [&] { return Job(a, &log).run(); });
}
