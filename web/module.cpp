// The functions that quoll.mjs calls: one Session a model. What fails returns null or -1, and
// quoll_js_message() says why.
#include <quoll/log.h>
#include <quoll/net.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace {

std::string g_message;

void keep_message(quoll::LogLevel, const char* message, void*) {
    if (!g_message.empty()) g_message += '\n';
    g_message += message;
}

double now_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

class LayerTimes : public quoll::LayerObserver {
public:
    std::string text;  // type, name and milliseconds of each layer that ran, a line each

    void before(const quoll::Layer&) override { begin_ = now_ms(); }
    void after(const quoll::Layer& layer, const std::vector<quoll::Mat>&) override {
        const double ms = now_ms() - begin_;
        text += layer.type + "\t" + layer.name + "\t" + std::to_string(ms) + "\n";
    }

private:
    double begin_ = 0;
};

struct Output {
    std::vector<int> sizes;  // outermost first
    std::vector<float> values;
};

// Integers become floats.
Output values_of(const quoll::Mat& m) {
    Output out;
    if (m.dims == 4) out.sizes = {m.c, m.d, m.h, m.w};
    if (m.dims == 3) out.sizes = {m.c, m.h, m.w};
    if (m.dims == 2) out.sizes = {m.h, m.w};
    if (m.dims == 1) out.sizes = {m.w};
    const size_t plane = (size_t)m.w * m.h * m.d;
    for (int q = 0; q < m.c; q++) {
        const unsigned char* from = (const unsigned char*)m.data + (size_t)q * m.cstep * m.elemsize;
        for (size_t k = 0; k < plane; k++) {
            if (m.dtype == quoll::DType::s32)
                out.values.push_back((float)((const int*)from)[k]);
            else
                out.values.push_back(((const float*)from)[k]);
        }
    }
    return out;
}

struct Session {
    quoll::Net net;
    std::vector<quoll::Mat> inputs;
    std::vector<Output> outputs;
    std::string text;
    LayerTimes times;
};

std::string lines(const std::vector<const char*>& names) {
    std::string text;
    for (const char* name : names) text += std::string(name) + "\n";
    return text;
}

int input_index(const Session& s, const char* name) {
    const auto& names = s.net.input_names();
    for (size_t i = 0; i < names.size(); i++)
        if (std::string(names[i]) == name) return (int)i;
    std::string all = lines(names);
    for (char& ch : all) ch = ch == '\n' ? ' ' : ch;
    g_message = std::string("there is no input '") + name + "'; inputs: " + all;
    return -1;
}

const int kBinaryMagic = 7767517;

bool is_binary(const unsigned char* param, size_t size) {
    return size >= 4 &&
           (param[0] | param[1] << 8 | param[2] << 16 | param[3] << 24) == kBinaryMagic;
}

}  // namespace

extern "C" {

const char* quoll_js_message() { return g_message.c_str(); }

// param: text that ends in 0, or a binary one. Both stay with the Session, which frees nothing.
Session* quoll_js_load(const unsigned char* param, size_t param_size, const unsigned char* bin,
                       size_t bin_size, int threads) {
    quoll::set_log_sink(keep_message, nullptr);
    g_message.clear();
    Session* const s = new Session;
    s->net.opt.num_threads = threads;
    const bool loaded = is_binary(param, param_size)
                            ? s->net.load_param(param, param_size) > 0
                            : s->net.load_param_mem((const char*)param) == 0;
    if (loaded && (s->net.load_model(bin, bin_size) > 0 || s->net.is_ready())) {
        s->inputs.resize(s->net.input_names().size());
        return s;
    }
    delete s;
    return nullptr;
}

void quoll_js_free(Session* s) { delete s; }

// One name a line.
const char* quoll_js_inputs(Session* s) { return (s->text = lines(s->net.input_names())).c_str(); }
const char* quoll_js_outputs(Session* s) {
    return (s->text = lines(s->net.output_names())).c_str();
}

// sizes: of the axes, outermost first (NumPy's order); values lie in that order.
int quoll_js_input(Session* s, const char* name, const float* values, const int* sizes, int dims) {
    g_message.clear();
    const int i = input_index(*s, name);
    if (i < 0) return -1;
    if (dims < 1 || dims > 4) return g_message = "expected 1 to 4 axes", -1;
    const int w = sizes[dims - 1], h = dims > 1 ? sizes[dims - 2] : 1, c = dims > 2 ? sizes[0] : 1;
    const int d = dims > 3 ? sizes[1] : 1;
    quoll::Mat& m = s->inputs[(size_t)i];
    if (dims == 1) m = quoll::Mat(w);
    if (dims == 2) m = quoll::Mat(w, h);
    if (dims == 3) m = quoll::Mat(w, h, c);
    if (dims == 4) m = quoll::Mat(w, h, d, c);
    if (m.empty()) return g_message = "no memory for the input", -1;
    const size_t plane = (size_t)w * h * d;
    for (int q = 0; q < c; q++) {
        float* to = dims > 2 ? (float*)m.channel(q) : (float*)m.data;
        for (size_t k = 0; k < plane; k++) to[k] = values[q * plane + k];
    }
    return 0;
}

// RGBA pixels, resized to width x height; order 0: RGB, 1: BGR, 2: grey. mean_norm: a mean and a
// factor for each channel of x -> (x - mean) * factor.
int quoll_js_pixels(Session* s, const char* name, const unsigned char* rgba, int w, int h,
                    int order, int width, int height, const float* mean_norm) {
    g_message.clear();
    const int i = input_index(*s, name);
    if (i < 0) return -1;
    const int types[] = {quoll::Mat::PIXEL_RGBA2RGB, quoll::Mat::PIXEL_RGBA2BGR,
                         quoll::Mat::PIXEL_RGBA2GRAY};
    quoll::Mat& m = s->inputs[(size_t)i];
    m = quoll::Mat::from_pixels_resize(rgba, types[order], w, h, width, height);
    if (m.empty()) return -1;
    float mean[3], norm[3];
    for (int c = 0; c < m.c; c++) mean[c] = mean_norm[2 * c], norm[c] = mean_norm[2 * c + 1];
    m.substract_mean_normalize(mean, norm);
    return 0;
}

// Runs the model for all outputs.
int quoll_js_run(Session* s) {
    g_message.clear();
    s->times.text.clear();
    s->outputs.assign(s->net.output_names().size(), Output());
    quoll::Extractor ex = s->net.create_extractor();
    ex.set_layer_observer(&s->times);
    for (size_t i = 0; i < s->inputs.size(); i++)
        if (!s->inputs[i].empty() && ex.input(s->net.input_indexes()[i], s->inputs[i])) return -1;
    for (size_t i = 0; i < s->outputs.size(); i++) {
        quoll::Mat out;
        if (ex.extract(s->net.output_indexes()[i], out)) return -1;
        s->outputs[i] = values_of(out);
    }
    return 0;
}

// The number of axes of output i, and its sizes, outermost first, in sizes[4].
int quoll_js_output_sizes(Session* s, int i, int* sizes) {
    const Output& out = s->outputs[(size_t)i];
    for (size_t k = 0; k < out.sizes.size(); k++) sizes[k] = out.sizes[k];
    return (int)out.sizes.size();
}
const float* quoll_js_output(Session* s, int i) { return s->outputs[(size_t)i].values.data(); }

// Of the last run: type, name and milliseconds of each layer, with tabs between, a line each.
const char* quoll_js_times(Session* s) { return s->times.text.c_str(); }

}  // extern "C"
