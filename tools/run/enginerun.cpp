// enginerun: runs a model on arrays from .npy files.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "common/npy.h"
#include "common/output_files.h"
#include "common/progress.h"
#include "common/run_options.h"
#include "graph/param_file.h"
#include "layer/control/input.h"
#include "layer/control/output.h"
#include "onnx/load_onnx.h"
#include "quoll/datareader.h"
#include "quoll/net.h"
#include "runtime/log_mute.h"

using namespace quoll;

namespace {

struct Arguments {
    std::string param, bin;
    std::vector<std::string> inputs, outputs;  // NAME=FILE
    RunOptions run;
    int repeat = 0;
    bool batch = false, show_io = false, no_light_mode = false;
};

// A blob and the file that it comes from or goes to.
struct Port {
    int blob;
    std::string file;
    Mat mat;
};

const char kFooter[] =
    "Arrays: float32, int32 and int8 become f32, s32 and s8 blobs (float16, int64, uint8 and "
    "bool are read too);\n"
    "outputs keep their type. Axes are (w), (h,w), (c,h,w) or (c,d,h,w); with --batch the first "
    "axis of every\n"
    "input counts the items of a batch. Outputs have that axis in front when there is more than "
    "one item.\n"
    "A converted model's inputs and outputs are arrays of the shape and type that the original "
    "declares,\nthe batch axis included; --batch is for other models.\n"
    "A NAME may contain '=': the longest name that the model knows is taken. Models without names "
    "(.param.bin)\n"
    "take blob indexes. Exit code: 0, 1 when the model or the data is at fault, 2 for a wrong "
    "command line.\n";

void add_options(CommandLine* line, Arguments* a) {
    line->footer(kFooter);
    line->option("MODEL.param", a->param,
                 "the graph; binary when it ends in .param.bin; or an ONNX model, MODEL.onnx")
        .required();
    line->option("MODEL.bin", a->bin, "the weights; may be missing when no layer has any");
    line->option("-i,--input", a->inputs, "NAME=FILE.npy, once for each input").one_at_a_time();
    line->option("-o,--output", a->outputs, "NAME=FILE.npy: any blob, once for each")
        .one_at_a_time();
    a->run.add_to(line);
    line->option("--repeat", a->repeat,
                 "run N times more after the first, print the times; default 0")
        .between(1, 1000000);
    line->flag("--batch", a->batch, "the first axis of every input array is the batch");
    line->flag("--show-io", a->show_io, "list the model's inputs and outputs");
    line->flag("--no-light-mode", a->no_light_mode, "keep all intermediate blobs");
}

bool ends_with(const std::string& s, const std::string& end) {
    return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

// What the Input or Output layer that makes a blob says about its array; null if it says nothing. A
// blob that was fused away has none.
const TensorSpec* array_of(const Net& net, int blob) {
    const int producer = net.blobs()[blob].producer;
    const Layer* layer = producer < 0 ? nullptr : net.layers()[producer];
    const TensorSpec* array = nullptr;
    if (const Input* input = as<Input>(layer))
        array = &input->array;
    else if (const Output* output = as<Output>(layer))
        array = &output->array;
    return array && array->said() ? array : nullptr;
}

// A model whose layers have no weights may do without a file.
int load_weights(Net* net, const std::string& path, std::string* what) {
    struct stat st;
    *what = "cannot load " + path;
    if (!path.empty() && stat(path.c_str(), &st) == 0) return net->load_model(path.c_str());
    *what = path.empty() ? "a MODEL.bin is needed" : path + ": " + strerror(errno);
    const unsigned char* none = (const unsigned char*)"";
    return net->load_model(DataReaderFromMemory(none, 0));
}

std::string blob_label(const Net& net, int blob) {
    const std::string& name = net.blobs()[blob].name;
    return name.empty() ? std::to_string(blob) : name;
}

// The blob that is called `name`, or has that index in a model without names; -1 if there is none.
int find_blob(const Net& net, const std::string& name) {
    const std::vector<Blob>& blobs = net.blobs();
    for (const std::string& label : {name, param_word(name)})
        for (size_t i = 0; i < blobs.size(); i++)
            if (blob_label(net, (int)i) == label) return (int)i;
    return -1;
}

// Splits NAME=FILE at the last '=' that leaves the name of a blob in front.
bool find_port(const Net& net, const std::string& text, Port* port, std::string* why) {
    for (size_t at = text.rfind('='); at != std::string::npos && at > 0;
         at = text.rfind('=', at - 1)) {
        port->blob = find_blob(net, text.substr(0, at));
        port->file = text.substr(at + 1);
        if (port->blob >= 0 && !port->file.empty()) return true;
    }
    const size_t at = text.rfind('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
        *why = "'" + text + "': expected NAME=FILE.npy";
        return false;
    }
    net.find_blob_index_by_name(text.substr(0, at).c_str());  // logs names that come near
    *why = "'" + text + "'";
    return false;
}

bool find_ports(const Net& net, const std::vector<std::string>& texts, std::vector<Port>* ports,
                std::string* why) {
    for (const std::string& text : texts) {
        Port port;
        if (!find_port(net, text, &port, why)) return false;
        for (const Port& other : *ports) {
            if (other.blob != port.blob) continue;
            *why = "'" + text + "': blob " + blob_label(net, port.blob) + " is given twice";
            return false;
        }
        ports->push_back(port);
    }
    return true;
}

// The sizes of all blobs, as far as they follow from those of the inputs.
std::vector<Shape> known_sizes(const Net& net) {
    const LogMute mute;  // a rule that refuses says so when the net runs
    std::vector<Shape> sizes(net.blobs().size());
    for (size_t i = 0; i < sizes.size(); i++) sizes[i] = net.blobs()[i].shape.logical_shape();
    for (int blob : net.input_indexes()) sizes[blob] = input_shape(net, blob);
    for (bool more = true; more;) {  // layers stand in any order
        more = false;
        for (const Layer* layer : net.layers()) {
            std::vector<Shape> bottoms, tops(layer->tops.size());
            for (int blob : layer->bottoms) bottoms.push_back(sizes[blob]);
            const auto unknown = [](const Shape& s) { return s.dims == 0; };
            const auto missing = [&](int blob) { return sizes[blob].dims == 0; };
            if (std::none_of(layer->tops.begin(), layer->tops.end(), missing) ||
                std::any_of(bottoms.begin(), bottoms.end(), unknown) ||
                layer->infer_shapes(bottoms, tops) != kOk || tops.size() != layer->tops.size())
                continue;
            for (size_t i = 0; i < tops.size(); i++) {
                more |= sizes[layer->tops[i]].dims == 0 && tops[i].dims != 0;
                sizes[layer->tops[i]] = tops[i];
            }
        }
    }
    return sizes;
}

void show_blob(const Net& net, const char* kind, int blob, const Shape& size) {
    const Layer* layer = net.layers()[net.blobs()[blob].producer];
    const std::string axes = axes_text(size);
    printf("%s %s %s from %s %s\n", kind, blob_label(net, blob).c_str(),
           axes.empty() ? "(size not said)" : axes.c_str(), layer->type.c_str(),
           layer->name.c_str());
}

void show_io(const Net& net) {
    const std::vector<Shape> sizes = known_sizes(net);
    for (int blob : net.input_indexes()) show_blob(net, "input ", blob, sizes[blob]);
    for (int blob : net.output_indexes()) show_blob(net, "output", blob, sizes[blob]);
}

// Feeds the inputs and extracts the outputs of a fresh Extractor; the time in milliseconds.
int run_once(const Net& net, const std::vector<Port>& inputs, std::vector<Port>* outputs,
             double* ms, LayerObserver* observer = nullptr) {
    const auto begin = std::chrono::steady_clock::now();
    Extractor ex = net.create_extractor();
    ex.set_layer_observer(observer);
    for (const Port& port : inputs) QUOLL_RETURN_IF_ERROR(ex.input(port.blob, port.mat));
    for (Port& port : *outputs) QUOLL_RETURN_IF_ERROR(ex.extract(port.blob, port.mat));
    *ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return kOk;
}

int run_all(const Net& net, const Arguments& a, const std::vector<Port>& inputs,
            std::vector<Port>* outputs) {
    double ms = 0;
    FiniteCheck watch;
    QUOLL_RETURN_IF_ERROR(run_once(net, inputs, outputs, &ms, a.run.watches() ? &watch : nullptr));
    a.run.warn(watch);
    if (a.repeat < 1) return kOk;
    std::vector<double> times(a.repeat);
    Progress progress("run", a.repeat);
    for (size_t i = 0; i < times.size(); i++) {
        progress.update((long long)i);
        QUOLL_RETURN_IF_ERROR(run_once(net, inputs, outputs, &times[i]));
    }
    Progress::hide();
    std::sort(times.begin(), times.end());
    printf("first run %.3f ms; %d runs more: min %.3f median %.3f max %.3f ms\n", ms, a.repeat,
           times.front(), times[times.size() / 2], times.back());
    return kOk;
}

int run(const Arguments& a, MessageLog* log) {
    const auto fail = [&](const std::string& what) { return log->fail("enginerun", what); };
    Net net;
    std::string what;
    if (a.run.apply(&net, &what)) return fail(what);
    net.opt.lightmode = !a.no_light_mode;
    const bool binary = ends_with(a.param, ".param.bin");
    if (is_onnx(a.param)) {
        if (!a.bin.empty()) return fail("an ONNX model has no MODEL.bin");
        if (load_onnx_or_say(a.param, &net)) return fail("cannot load " + a.param);
    } else if (binary ? net.load_param_bin(a.param.c_str()) : net.load_param(a.param.c_str()))
        return fail("cannot load " + a.param);
    if (!is_onnx(a.param) && load_weights(&net, a.bin, &what)) return fail(what);
    if (a.run.check(net, &what)) return fail(what);
    if (a.show_io) show_io(net);

    std::vector<Port> inputs, outputs;
    if (!find_ports(net, a.inputs, &inputs, &what)) return fail("--input " + what);
    if (!find_ports(net, a.outputs, &outputs, &what)) return fail("--output " + what);
    for (Port& port : inputs) {
        const TensorSpec* array = array_of(net, port.blob);
        if (array ? read_npy(port.file, *array, &port.mat)
                  : read_npy(port.file, a.batch, &port.mat))
            return fail("--input " + blob_label(net, port.blob));
    }
    if (outputs.empty()) return a.show_io ? 0 : fail("nothing to do: give --output or --show-io");
    if (run_all(net, a, inputs, &outputs)) return fail("");
    std::vector<std::string> read = {a.param, a.bin};
    for (const Port& port : inputs) read.push_back(port.file);
    OutputFiles files(read);
    for (const Port& port : outputs) {
        const TensorSpec* array = array_of(net, port.blob);
        const std::string file = files.add(port.file);
        if (file.empty() || (array ? write_npy(file, *array, port.mat) : write_npy(file, port.mat)))
            return fail("--output " + blob_label(net, port.blob));
    }
    return files.commit() ? fail("") : 0;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Runs a model on arrays from .npy files.", "enginerun");
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    return without_exceptions("enginerun", [&] { return run(a, &log); });
}
