// benchmark: times whole networks, one process each.
//
//   benchmark [loops] [threads] [powersave] [gpu] [cooling] [param=FILE [bin=FILE]
//   [shape=[w,h,c],...]]
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "cliffs.h"
#include "common/model_files.h"
#include "common/model_inputs.h"
#include "common/progress.h"
#include "common/run_options.h"
#include "conv_candidates.h"
#include "count_allocations.h"
#include "memory_use.h"
#include "onnx/load_onnx.h"
#include "profile.h"
#include "profile_page.h"
#include "profile_report.h"
#include "quoll/cpu.h"
#include "quoll/gpu.h"
#include "random_weights.h"
#include "runtime/cpu_features.h"

using namespace quoll;
using nlohmann::json;

namespace {

const int kCoolingSeconds = 10;

struct Arguments {
    std::vector<std::string> words;  // positional: numbers and key=value
    std::string models, filter, json_file, save_weights, profile_file, tune_gpu;
    bool report = false, tune = false, cliffs = false;
    double ceiling = 100;
    InputArguments inputs;
    RunOptions run;
    int loops = 4, warmup = 2, powersave = 0, cooling = 0;
};

// A network to time. Without shapes the net's own are taken.
struct Task {
    std::string name, param, bin;
    std::vector<Shape> shapes;
};

// Input sizes of well-known graphs whose Input layer does not say them.
struct KnownSize {
    const char* name;
    int side;
};
const KnownSize kKnownSizes[] = {
    {"FastestDet", 352},     {"vision_transformer", 384}, {"blazeface", 128},
    {"yolov4-tiny", 416},    {"yolov4_tiny", 416},        {"mobilenet_yolo", 416},
    {"nanodet_m", 320},      {"mobilenetv2_yolov3", 352}, {"yolo-fastest-1.1", 320},
    {"yolo-fastestv2", 352}, {"squeezenet", 227},         {"squeezenet_int8", 227},
    {"alexnet", 227},        {"mobilenet_ssd", 300},      {"mobilenet_ssd_int8", 300},
    {"squeezenet_ssd", 300}, {"squeezenet_ssd_int8", 300}};
const int kUsualSide = 224;

bool starts_with(const std::string& s, const std::string& begin) {
    return s.compare(0, begin.size(), begin) == 0;
}

bool ends_with(const std::string& s, const std::string& end) {
    return s.size() > end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

bool file_exists(const std::string& path) {
    struct stat st;
    return stat(path.c_str(), &st) == 0;
}

// "[w,h,c],[w]": one bracket for each input, axes from the innermost out.
bool parse_shapes(const std::string& text, std::vector<Shape>* shapes) {
    const char* p = text.c_str();
    do {
        int axes[4], count = 0;
        if (*p++ != '[') return false;
        do {
            char* end = nullptr;
            errno = 0;
            const long value = strtol(p, &end, 10);
            if (end == p || errno || value < 1 || value > (1 << 24) || count == 4) return false;
            axes[count++] = (int)value;
            p = end;
        } while (*p++ == ',');
        if (p[-1] != ']') return false;
        shapes->push_back(count == 1   ? Shape(axes[0])
                          : count == 2 ? Shape(axes[0], axes[1])
                          : count == 3 ? Shape(axes[0], axes[1], axes[2])
                                       : Shape(axes[0], axes[1], axes[2], axes[3]));
    } while (*p++ == ',');
    return p[-1] == '\0';
}

std::string base_name(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
    return file.substr(0, file.find(".param"));
}

std::string bin_beside(const std::string& param) {
    const std::string bin = param.substr(0, param.rfind(".param")) + ".bin";
    return file_exists(bin) ? bin : "";
}

// The five numbers in ncnn's order.
bool take_number(const std::string& word, size_t position, Arguments* a, std::string* why) {
    char* end = nullptr;
    const long v = strtol(word.c_str(), &end, 10);
    *why = "'" + word + "'";
    if (word.empty() || *end != '\0') {
        *why += ": expected a number, param=FILE, bin=FILE or shape=[w,h,c]";
        return false;
    }
    const char* const ranges[] = {": loops: expected 1 to 1000000", ": threads: expected 1 to 1024",
                                  ": powersave: expected 0, 1 or 2",
                                  ": gpu: expected -1, the CPU, or the number of a device",
                                  ": cooling: expected 0 or 1"};
    const long lows[] = {1, 1, 0, -1, 0}, highs[] = {1000000, kMostThreads, 2, kMostGpus, 1};
    if (position >= 5) return *why += ": a sixth number", false;
    if (v < lows[position] || v > highs[position]) return *why += ranges[position], false;
    if (position == 0) a->loops = (int)v;
    if (position == 1) a->run.threads = (int)v;
    if (position == 2) a->powersave = (int)v;
    if (position == 3) a->run.gpu = (int)v;
    if (position == 4) a->cooling = (int)v;
    return true;
}

bool read_words(Arguments* a, std::vector<Task>* tasks, std::string* why) {
    Task task;
    size_t numbers = 0;
    for (const std::string& word : a->words) {
        if (starts_with(word, "param="))
            task.param = word.substr(6);
        else if (starts_with(word, "bin="))
            task.bin = word.substr(4);
        else if (a->cliffs && (is_onnx(word) || ends_with(word, ".param")))
            tasks->push_back(
                {base_name(word), word, is_onnx(word) ? "" : bin_beside(word), task.shapes});
        else if (starts_with(word, "shape=")) {
            *why = "'" + word +
                   "': expected shape=[w], [w,h], [w,h,c] or [w,h,d,c], several by commas";
            if (!parse_shapes(word.substr(6), &task.shapes)) return false;
        } else if (!take_number(word, numbers++, a, why)) {
            return false;
        }
    }
    if (task.param.empty()) {
        *why = "bin= and shape= need param=FILE";
        return task.bin.empty() && task.shapes.empty();
    }
    task.name = base_name(task.param);
    *why = "an ONNX model has no bin=";
    if (is_onnx(task.param) && !task.bin.empty()) return false;
    if (task.bin.empty() && !is_onnx(task.param)) task.bin = bin_beside(task.param);
    tasks->push_back(task);
    return true;
}

// --models, or benchmark/models of the source tree that this program was built in or is started in.
std::string models_folder(const Arguments& a) {
    if (!a.models.empty()) return a.models;
    char exe[4096];
    const ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    std::string folder(exe, length > 0 ? length : 0);
    folder = folder.substr(0, folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/'));
    for (const std::string& candidate :
         {std::string("benchmark/models"), folder + "/../../benchmark/models"})
        if (file_exists(candidate)) return candidate;
    return "benchmark/models";
}

bool find_models(const Arguments& a, std::vector<Task>* tasks, std::string* why) {
    const std::string folder = models_folder(a);
    DIR* dir = opendir(folder.c_str());
    *why = folder + ": " + strerror(errno);
    if (!dir) return false;
    const std::string end = ".param";
    while (const dirent* entry = readdir(dir)) {
        const std::string file = entry->d_name;
        if (file.size() <= end.size() ||
            file.compare(file.size() - end.size(), end.size(), end) != 0)
            continue;
        const std::string path = folder + "/" + file;
        tasks->push_back({base_name(path), path, bin_beside(path), {}});
    }
    closedir(dir);
    std::sort(tasks->begin(), tasks->end(),
              [](const Task& p, const Task& q) { return p.name < q.name; });
    *why = folder + ": there are no .param files";
    return !tasks->empty();
}

bool keep_matching(const std::string& filter, std::vector<Task>* tasks, std::string* why) {
    if (filter.empty()) return true;
    try {
        const std::regex regex(filter);
        tasks->erase(
            std::remove_if(tasks->begin(), tasks->end(),
                           [&](const Task& t) { return !std::regex_search(t.name, regex); }),
            tasks->end());
    } catch (const std::regex_error& e) {
        *why = "--filter " + filter + ": " + e.what();
        return false;
    }
    *why = "--filter " + filter + ": no model has such a name";
    return !tasks->empty();
}

// The graph with weights made for it, if its own do not fit.
int save_param(const Task& task, const std::string& bin, const std::string& target,
               OutputFiles* files) {
    Model model;
    if (model.load_param(task.param.c_str()) || !model.asks_for_weights()) return 0;
    std::vector<unsigned char> bytes;
    if (read_bytes(bin, &bytes)) return -1;
    const unsigned char* p = bytes.data();
    if (model.load_model(DataReaderFromMemory(p, bytes.size())) || model.number_weights())
        return -1;
    const std::string part = files->add(target);
    return part.empty() ? -1 : model.save_param(part.c_str());
}

int save_random_weights(const Task& task, const Model& model, const std::string& folder, Net* net,
                        std::string* why) {
    const std::string path = folder + "/" + task.name + ".bin";
    OutputFiles files;
    const std::string part = files.add(path);
    FILE* copy = part.empty() ? nullptr : fopen(part.c_str(), "wb");
    *why = part.empty() ? "" : path + ": " + strerror(errno);
    if (!copy) return -1;
    RandomWeights weights(model, copy);
    *why = "";
    const int status = net->load_model(weights);
    *why = path + " cannot be written";
    if (fclose(copy) != 0 || !weights.copied()) return -1;
    *why = "";
    if (status || save_param(task, part, folder + "/" + task.name + ".param", &files))
        return status ? status : -1;
    return files.commit();
}

int load_weights(const Task& task, const Arguments& a, Net* net, std::string* why) {
    if (!task.bin.empty()) return net->load_model(task.bin.c_str());
    Model model;
    QUOLL_RETURN_IF_ERROR(model.load_param(task.param.c_str()));
    if (a.save_weights.empty()) return net->load_model(RandomWeights(model));
    return save_random_weights(task, model, a.save_weights, net, why);
}

// Blobs of random numbers for all inputs of the net.
int make_inputs(const Task& task, const Arguments& a, const Net& net, std::vector<Mat>* inputs,
                std::string* why) {
    const std::vector<int>& indexes = net.input_indexes();
    if (!task.shapes.empty() && task.shapes.size() != indexes.size()) {
        *why = "shape= has " + std::to_string(task.shapes.size()) + " shapes for " +
               std::to_string(indexes.size()) + " inputs";
        return -1;
    }
    int side = kUsualSide;
    for (const KnownSize& known : kKnownSizes)
        if (task.name == known.name) side = known.side;
    const std::vector<ModelInput> all = inputs_of(net);
    BlobSizes sizes;
    std::map<std::string, Mat> arrays;
    const auto unknown = [](const std::string&) { return false; };
    if (parse_shapes(a.inputs.shapes, all, &sizes, why)) return *why = "--shape " + *why, -1;
    if (read_arrays(a.inputs.arrays, all, unknown, &arrays, why))
        return *why = "--input " + *why, -1;
    uint64_t state = 1;
    const auto next = [&] {
        float v;
        fill_random(&v, 1, 0.f, 1.f, &state);
        return (double)v;
    };
    for (size_t i = 0; i < all.size(); i++) {
        if (arrays.count(all[i].name)) {
            inputs->push_back(arrays[all[i].name]);
            continue;
        }
        const auto said = sizes.find(all[i].name);
        Shape shape = said != sizes.end()   ? said->second
                      : task.shapes.empty() ? all[i].whole_size()
                                            : task.shapes[i];
        const TensorSpec& array = all[i].array;
        const bool image =
            !array.said() || (array.rank == 4 && (array.size(1) == 3 || array.size(1) == -1));
        if (shape.dims == 0 && (all.size() > 1 || !image)) {
            *why = "the net does not say the size of its input " + all[i].name + "; give --shape " +
                   all[i].name + "=...";
            return -1;
        }
        if (shape.dims == 0) shape = Shape(side, side, 3);
        inputs->push_back(random_input(all[i], shape, a.inputs.range, next));
        if (inputs->back().empty()) return -1;
    }
    return 0;
}

int run_once(const Net& net, const std::vector<Mat>& inputs, LayerObserver* observer, Mat* out) {
    Extractor ex = net.create_extractor();
    ex.set_layer_observer(observer);
    for (size_t i = 0; i < inputs.size(); i++)
        QUOLL_RETURN_IF_ERROR(ex.input(net.input_indexes()[i], inputs[i]));
    for (int index : net.output_indexes()) QUOLL_RETURN_IF_ERROR(ex.extract(index, *out));
    return kOk;
}

// The f32 convolutions without groups that a run meets.
class ConvCollector : public LayerObserver {
public:
    ConvCollector(const Net& net, const std::vector<Mat>& inputs) {
        for (size_t i = 0; i < inputs.size(); i++)
            sizes_[net.input_indexes()[i]] = inputs[i].logical_shape();
    }
    void before(const Layer&) override {}
    void after(const Layer& layer, const std::vector<Mat>& outputs) override {
        for (size_t i = 0; i < outputs.size(); i++)
            sizes_[layer.tops[i]] = outputs[i].logical_shape();
        const auto* found = as<Convolution>(&layer);
        if (!found || found->axes != 2 || found->grouped) return;
        const Convolution& conv = *found;
        const auto in = sizes_.find(layer.bottoms[0]);
        if (conv.dynamic_weight || conv.int8_scale_term || in == sizes_.end() ||
            in->second.dims != 3)
            return;
        std::vector<Shape> bottoms(1, in->second);
        if (conv.add_input) bottoms.push_back(outputs[0].logical_shape());
        ConvGeometry g;
        if (convolution_geometry(conv, conv, bottoms, &g) == kOk) shapes.push_back(conv_shape(g));
    }
    std::vector<ConvShape> shapes;

private:
    std::map<int, Shape> sizes_;
};

int time_runs(const Net& net, const std::vector<Mat>& inputs, int count,
              std::vector<double>* times) {
    Mat out;
    for (int i = 0; i < count; i++) {
        const double begin = now_ms();
        QUOLL_RETURN_IF_ERROR(run_once(net, inputs, nullptr, &out));
        times->push_back(now_ms() - begin);
    }
    return kOk;
}

// What one more run allocates: blocks for values, and small objects.
int count_allocations(const Net& net, const std::vector<Mat>& inputs, json* row) {
    Mat out;
    QUOLL_RETURN_IF_ERROR(run_once(net, inputs, nullptr, &out));
    const size_t blocks = block_allocations(), small = small_allocations();
    QUOLL_RETURN_IF_ERROR(run_once(net, inputs, nullptr, &out));
    (*row)["blocks"] = block_allocations() - blocks;
    (*row)["small_allocations"] = small_allocations() - small;
    return kOk;
}

int profile_runs(const Net& net, const std::vector<Mat>& inputs, int count, int gpu, json* row) {
    LayerProfile profile(net);
    Mat out;
    for (int i = 0; i < count; i++) {
        profile.begin_run();
        QUOLL_RETURN_IF_ERROR(run_once(net, inputs, &profile, &out));
        profile.end_run();
    }
    (*row)["profile"] = profile.to_json();
    if (gpu < 0) return kOk;
    std::vector<RegionProfile> regions;
    std::vector<double> runs;
    const auto run = [&] { return run_once(net, inputs, nullptr, &out); };
    QUOLL_RETURN_IF_ERROR(profile_regions(count, run, &regions, &runs));
    (*row)["profile"] = profile.to_json(regions, runs);
    return kOk;
}

void put_times(const std::vector<double>& times, json* row) {
    (*row)["times_ms"] = times;
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    double sum = 0;
    for (double time : sorted) sum += time;
    const size_t half = sorted.size() / 2;
    (*row)["min_ms"] = sorted.front();
    (*row)["max_ms"] = sorted.back();
    (*row)["avg_ms"] = sum / (double)sorted.size();
    (*row)["median_ms"] = sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// The candidates of the net's convolutions, timed by themselves: is the one that is taken the
// fastest?
int tune(const Net& net, const std::vector<Mat>& inputs, const std::string& name, json* row) {
    ConvCollector found(net, inputs);
    Mat out;
    QUOLL_RETURN_IF_ERROR(run_once(net, inputs, &found, &out));
    ConvCandidateTimes candidates(net.opt.num_threads);
    for (const ConvShape& shape : found.shapes) candidates.add(shape);
    (*row)["tune"] = candidates.text() + candidates.summary(name);
    return kOk;
}

// Every product of the net's first runs is timed in all its forms, and the file gets what was best.
class GpuTuning {
public:
    GpuTuning(const std::string& file, int gpu) : file_(file) {
        const VulkanDevice* device = file.empty() ? nullptr : get_gpu_device(gpu);
        if (!device) return;
        cache_.reset(new PipelineCache(device));
        cache_->load_cache(file.c_str());  // one that does not fit is said, and replaced
        cache_->set_tuning(true);
    }
    int save() const {
        if (!cache_) return kOk;
        cache_->set_tuning(false);
        return cache_->save_cache(file_.c_str());
    }

private:
    const std::string file_;
    std::unique_ptr<PipelineCache> cache_;
};

// Times one network in this process and fills its row.
int time_model(const Task& task, const Arguments& a, json* row, std::string* why) {
    Net net;
    if (set_cpu_powersave(a.powersave) || a.run.apply(&net, why)) return -1;
    const GpuTuning tuning(a.tune_gpu, a.run.gpu);
    const double begin = now_ms();
    if (is_onnx(task.param)) {
        if (load_onnx_or_say(task.param, &net)) return -1;
    } else if (net.load_param(task.param.c_str()) || load_weights(task, a, &net, why)) {
        return -1;
    }
    const double load = now_ms() - begin;
    std::vector<Mat> inputs;
    if (a.run.check(net, why) || make_inputs(task, a, net, &inputs, why)) return -1;

    if (!a.tune_gpu.empty()) {
        Mat out;
        QUOLL_RETURN_IF_ERROR(run_once(net, inputs, nullptr, &out));
    }
    QUOLL_RETURN_IF_ERROR(tuning.save());
    std::vector<double> warmup, times;
    QUOLL_RETURN_IF_ERROR(time_runs(net, inputs, a.warmup, &warmup));
    QUOLL_RETURN_IF_ERROR(time_runs(net, inputs, a.loops, &times));
    if (a.run.watches()) {
        FiniteCheck watch;
        Mat out;
        QUOLL_RETURN_IF_ERROR(run_once(net, inputs, &watch, &out));
        a.run.warn(watch);
    }
    put_times(times, row);
    (*row)["warmup_ms"] = warmup;
    (*row)["load_ms"] = load;
    (*row)["peak_mib"] = peak_memory();
    for (const Mat& m : inputs) (*row)["inputs"].push_back(axes_text(m.logical_shape()));
    QUOLL_RETURN_IF_ERROR(count_allocations(net, inputs, row));
    if (a.tune) QUOLL_RETURN_IF_ERROR(tune(net, inputs, task.name, row));
    if (a.report || a.cliffs || !a.profile_file.empty())
        QUOLL_RETURN_IF_ERROR(profile_runs(net, inputs, a.loops, a.run.gpu, row));
    return 0;
}

// File names need not be UTF-8, JSON has to be.
std::string to_text(const json& value, int indent) {
    return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

// The child's work: its row as JSON text into the pipe.
int child(const Task& task, const Arguments& a, int pipe) {
    json row = {{"model", task.name}};
    {
        MessageLog log;
        std::string why;
        if (time_model(task, a, &row, &why)) {
            row = {{"model", task.name}};
            row["error"] = why.empty() ? log.reason() : why;
            log.fail("benchmark", task.name + (why.empty() ? "" : ": " + why));
        }
    }
    const std::string text = to_text(row, -1);
    size_t done = 0;
    for (ssize_t got; done < text.size(); done += (size_t)got)
        if ((got = write(pipe, text.data() + done, text.size() - done)) <= 0) break;
    return done == text.size() && !row.contains("error") ? 0 : 1;
}

// A process for each network: peak memory is its own, and a crash is one failed row.
json run_in_child(const Task& task, const Arguments& a) {
    json row = {{"model", task.name}};
    int ends[2];
    fflush(nullptr);
    const pid_t pid = pipe(ends) == 0 ? fork() : -1;
    if (pid < 0) {
        row["error"] = std::string("no child process: ") + strerror(errno);
        return row;
    }
    if (pid == 0) {
        close(ends[0]);
        _exit(child(task, a, ends[1]));
    }
    close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, got);
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status)) return json::parse(text);
    row["error"] = std::string("ended by a signal: ") + strsignal(WTERMSIG(status));
    fprintf(stderr, "benchmark: %s: %s\n", task.name.c_str(),
            row["error"].get<std::string>().c_str());
    return row;
}

// Milliseconds in six characters, as long as that is possible.
std::string time_text(double ms) {
    char text[32];
    snprintf(text, sizeof(text), "%6.*f", ms < 999.995 ? 2 : ms < 9999.95 ? 1 : 0, ms);
    return text;
}

// At most 100 columns, names of up to 16 characters and loads of 99 seconds included.
void print_row(const json& row) {
    const std::string name = row["model"];
    if (row.contains("error")) {
        printf("%16s  failed\n", name.c_str());
        return;
    }
    printf("%16s  min = %s  max = %s  avg = %s  med = %s  load = %3.0f  peak = %3.0f\n",
           name.c_str(), time_text(row["min_ms"]).c_str(), time_text(row["max_ms"]).c_str(),
           time_text(row["avg_ms"]).c_str(), time_text(row["median_ms"]).c_str(),
           row["load_ms"].get<double>(), row["peak_mib"].get<double>());
    fflush(stdout);
}

std::string cpu_model() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (starts_with(line, "model name")) return line.substr(line.find(':') + 2);
    return "";
}

json describe_run(const Arguments& a, int threads) {
    utsname system = {};
    uname(&system);
    const time_t now = time(nullptr);
    char date[32];
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    std::vector<std::string> features;
    for (int i = 0; i < (int)CpuFeature::count; i++)
        if (host_cpu_features().has((CpuFeature)i))
            features.push_back(cpu_feature_name((CpuFeature)i));
    return {{"date", date},
            {"machine",
             {{"cpu", cpu_model()},
              {"architecture", system.machine},
              {"cores", get_physical_cpu_count()},
              {"isa", isa_name(best_isa(host_cpu_features()))},
              {"features", features},
              {"compiler", __VERSION__}}},
            {"loops", a.loops},
            {"warmup", a.warmup},
            {"threads", threads},
            {"powersave", a.powersave},
            {"precision", a.run.precision},
            {"rows", json::array()}};
}

void add_options(CommandLine* line, Arguments* a) {
    line->footer(
        "Times are in milliseconds, load is the time to load the model, peak the largest resident "
        "memory in MiB.\nModels without a .bin get random weights. Exit code: 0, 1 when a model "
        "could not be timed, 2 for a\nwrong command line.\n");
    line->option("ARGUMENTS", a->words,
                 "[loops = 4] [threads] [powersave = 0: all cores, 1: little, 2: big] [gpu = "
                 "-1] [cooling = 0; 1: pause 10 s before each model], then for one model of "
                 "your own param=FILE [bin=FILE] [shape=[w,h,c],...]");
    line->option("--models", a->models, "folder of .param files; default benchmark/models");
    line->option("--filter", a->filter, "regular expression on the names of models");
    line->option("--warmup", a->warmup, "runs before the timed ones").between(0, 1000000);
    line->option("--json", a->json_file, "write machine, options and rows to this file");
    line->option("--save-weights", a->save_weights,
                 "folder that gets the random weights as MODEL.bin");
    line->flag("--report", a->report,
               "tables of the layers of each model: by order, time, type and multiply-accumulates");
    line->flag(
        "--tune", a->tune,
        "time every candidate of each convolution by itself: what was expected of it, and the "
        "regret of the choice (as bench_conv)");
    line->option(
        "--tune-gpu", a->tune_gpu,
        "with --gpu: first time every tile and division of the products on the device, and "
        "keep the best in this pipeline cache (PipelineCache::load_cache), together with "
        "what it has");
    line->option("--profile", a->profile_file,
                 "write the layers' times to this file: FILE.json for chrome://tracing, FILE.html "
                 "as a page");
    line->flag("--cliffs", a->cliffs,
               "list the layers that run scalar code or unpack, by share of time; ARGUMENTS may "
               "be models, MODEL.param or MODEL.onnx");
    line->option("--ceiling", a->ceiling,
                 "with --cliffs: exit code 1 when a model spends more percent of its time there")
        .between(0, 100);
    a->inputs.add_shapes_to(line);
    a->inputs.add_arrays_to(line);
    a->inputs.add_range_to(line);
    a->run.add_to(line);
}

// All or none.
int write_files(const Arguments& a, const std::vector<Task>& tasks, const json& report,
                MessageLog* log) {
    std::vector<std::string> read = paths_of(a.inputs.arrays);
    for (const Task& task : tasks) read.insert(read.end(), {task.param, task.bin});
    OutputFiles files(read);
    int status = 0;
    if (!a.profile_file.empty())
        status = write_file(a.profile_file,
                            ends_with(a.profile_file, ".html") ? profile_page(report["rows"])
                                                               : chrome_trace(report["rows"]),
                            &files);
    if (status == 0 && !a.json_file.empty())
        status = write_file(a.json_file, to_text(report, 2) + "\n", &files);
    if (status != 0 || files.commit()) return log->fail("benchmark", "");
    return 0;
}

int run(Arguments* a, MessageLog* log) {
    std::vector<Task> tasks;
    std::string why;
    if (!read_words(a, &tasks, &why)) return log->fail("benchmark", why), 2;
    if (!a->profile_file.empty() && !ends_with(a->profile_file, ".json") &&
        !ends_with(a->profile_file, ".html"))
        return log->fail("benchmark", "--profile " + a->profile_file + ": expected .json or .html"),
               2;
    if (!a->tune_gpu.empty() && a->run.gpu < 0)
        return log->fail("benchmark", "--tune-gpu " + a->tune_gpu + ": needs --gpu N"), 2;
    if (tasks.empty() && !find_models(*a, &tasks, &why)) return log->fail("benchmark", why);
    if (!keep_matching(a->filter, &tasks, &why)) return log->fail("benchmark", why);
    Option opt;
    // Drivers do not outlive the fork that each model is run in: only children look for devices.
    RunOptions host = a->run;
    host.gpu = -1;
    if (host.apply(&opt, &why)) return log->fail("benchmark", why);
    json report = describe_run(*a, opt.num_threads);
    printf(
        "loop_count = %d\nnum_threads = %d\npowersave = %d\ngpu_device = %d\ncooling_down = %d\n",
        a->loops, opt.num_threads, a->powersave, a->run.gpu, a->cooling);
    bool failed = false;
    Progress progress("timing", (long long)tasks.size());
    for (size_t i = 0; i < tasks.size(); i++) {
        const Task& task = tasks[i];
        progress.update((long long)i, task.name);
        if (a->cooling) std::this_thread::sleep_for(std::chrono::seconds(kCoolingSeconds));
        report["rows"].push_back(run_in_child(task, *a));
        Progress::hide();
        print_row(report["rows"].back());
        if (a->report && report["rows"].back().contains("profile"))
            fputs(profile_report(report["rows"].back()).c_str(), stdout);
        if (a->cliffs && report["rows"].back().contains("profile")) {
            const double share = 100 * cliff_share(report["rows"].back());
            fputs(cliff_table(report["rows"].back()).c_str(), stdout);
            failed |= share > a->ceiling;
        }
        if (report["rows"].back().contains("tune"))
            fputs(report["rows"].back()["tune"].get<std::string>().c_str(), stdout);
        failed |= report["rows"].back().contains("error");
    }
    return write_files(*a, tasks, report, log) | failed;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Times networks on this machine.", "benchmark");
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    return without_exceptions("benchmark", [&] { return run(&a, &log); });
}
