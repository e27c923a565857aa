// Layers by themselves with params that their schemas let us make up: each operator of the
// registry, on small inputs of any rank. Whatever the reference answers, the fast form has to
// answer, with fusion and without, in any number of threads, from inputs packed by any elempack,
// and with half floats: an error as an error, sizes as sizes, values as values as far as rounding
// explains them.
//   random_layers [--counts] FIRST COUNT [OPERATOR]
// --counts: how many cases of each operator the reference answered.
// Case n is the same one in every run. A crash or an answer that takes too long prints its case.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fitting_inputs.h"
#include "harness.h"
#include "layer/common/schema.h"
#include "quoll/datawriter.h"
#include "quoll/layer.h"
#include "random.h"

namespace {

using namespace quoll;

const unsigned kMostSeconds = 60;  // on a busy, emulated machine, too
// Of a blob. Dilated deconvolutions read inputs with wide borders.
const size_t kMostMemory = 128 << 20;
const double kMostWeights = 1 << 16;
// Of an answer: wide dilated deconvolutions of more take an emulated processor too long.
const double kMostAnswered = 1 << 20;
const int kMostDraws = 100;
const uint32_t kShort = 0xffff0000;  // of a float's bits: sign, exponent and 8 binary digits

// Params in the ranges of the schema, many of them as they are by default, few of them odd. Numbers
// of weights and channels mostly are what fits the input.
class DrawParams : public ParamVisitor {
public:
    DrawParams(Random* random, const Shape& input)
        : random_(*random), input_(input), change_one_in_(random->number(2, 6)) {}
    ParamDict params;

    // Knows all params by then.
    void fit_weights(const std::string& type) {
        if (weights_id_ < 0 || random_.one_in(20)) return;
        const auto starts = [&](const char* with) {
            return type.compare(0, strlen(with), with) == 0;
        };
        const double made = value("num_output", value("embed_dim", 1));
        const double gates = type == "LSTM" ? 4 : type == "GRU" ? 3 : 1;
        double count = made * input_.w;
        if (starts("Conv") || starts("Deconv")) {
            const double across = value("kernel_w", 1), high = value("kernel_h", 1);
            count = made * outermost() * across * high * value("kernel_d", 1) / value("group", 1);
        } else if (type == "InnerProduct" && input_.dims != 2) {
            count = made * input_.w * input_.h * input_.d * input_.c;
        } else if (type == "Embed") {
            count = made * value("input_dim", 1);
        } else if (type == "LSTM" || type == "GRU" || type == "RNN") {
            const double each = type == "LSTM" ? value("hidden_size", made) : made;
            count = gates * each * input_.w * (value("direction", 0) == 2 ? 2 : 1);
        }
        if (count >= 1 && count < kMostWeights) params.set(weights_id_, (int)count);
    }

    void operator()(int id, const char* name, int& field, int def, const char*,
                    Range range) override {
        field = def;
        const std::string text = name;
        if (text == "weight_data_size") weights_id_ = id;
        const bool needed = def < range.low || text == "num_output" || text == "kernel_w";
        const bool channels = text == "channels" || text == "num_slope" || text == "affine_size" ||
                              text == "scale_data_size" || text == "bias_data_size";
        const bool int8 = text.find("scale_term") != text.npos || text == "quantize_term";
        if (needed || channels || (int8 ? random_.one_in(20) : changes())) {
            field = channels && !random_.one_in(10) ? outermost() : whole(range);
            if (needed && field < 1 && !random_.one_in(20)) field = random_.number(1, 9);
            params.set(id, field);
        }
        values_[text] = field;
    }
    void operator()(int id, const char*, float& field, float def, const char*,
                    Range range) override {
        field = def;
        if (!changes()) return;
        field = real(range);
        params.set(id, field);
    }
    void ints(int id, const char*, Mat& field, const char*, Range range) override {
        if (!changes()) return;
        const bool characters = range.low == ' ' && !random_.one_in(20);
        const std::string text = characters ? equation() : std::string((size_t)length(), ' ');
        Mat m(Shape((int)text.size(), DType::s32));
        for (int i = 0; i < m.w; i++)
            ((int*)m.data)[i] = characters ? text[(size_t)i] : whole(range);
        params.set(id, m);
        field = m;
    }
    void floats(int id, const char*, Mat& field, const char*, Range range) override {
        if (!changes()) return;
        Mat m(length());
        for (int i = 0; i < m.w; i++) m[i] = real(range);
        params.set(id, m);
        field = m;
    }
    void operator()(int id, const char*, std::string& field, const char* def,
                    const char*) override {
        static const char* const kTexts[] = {"*(0w,2)", "0h,0w", "ij,jk->ik", "ij->ji", "-1,0c"};
        field = def;
        if (!changes()) return;
        field = kTexts[random_.number(0, 4)];
        params.set(id, field);
    }

private:
    bool changes() { return random_.one_in(change_one_in_); }
    int length() { return random_.one_in(6) ? random_.number(5, 12) : random_.number(1, 4); }
    std::string equation() {
        std::string text, letters;
        for (int i = 0, terms = random_.number(1, 3); i < terms; i++) {
            if (i) text += ',';
            for (int k = 0, rank = random_.number(1, 4); k < rank; k++)
                text += (char)('i' + random_.number(0, 4));
        }
        for (char ch = 'i'; ch <= 'm'; ch++)
            if (text.find(ch) != text.npos && !random_.one_in(3)) letters += ch;
        return random_.one_in(4) ? text : text + "->" + letters;
    }
    double value(const char* name, double absent) const {
        const auto found = values_.find(name);
        return found == values_.end() ? absent : found->second;
    }
    int outermost() const {
        return input_.dims > 2 ? input_.c : input_.dims == 2 ? input_.h : input_.w;
    }
    int whole(Range range) {
        static const int kOdd[] = {-1, -2, -233, -234, 0, 7, 16, 33, 100, 2147483647};
        if (random_.one_in(60)) return kOdd[random_.number(0, 9)];
        if (random_.one_in(4)) {
            const int size = random_.size(12);
            if (size >= range.low && size <= range.high) return size;
        }
        const double low = fmax(range.low, -2), high = fmin(range.high, fmax(low, 0) + 8);
        return (int)low + random_.number(0, (int)fmax(0, fmin(high - low, 12)));
    }
    float real(Range range) {
        static const float kOdd[] = {0.f, -0.f, 1e-20f, -1e-20f, 1e20f, -1e20f, 1.f, 2.f};
        if (random_.one_in(20)) return kOdd[random_.number(0, 7)];
        const float low = (float)fmax(range.low, -2), high = (float)fmin(range.high, low + 4);
        return random_.real(low, fmaxf(low, high));
    }
    Random& random_;
    const Shape input_;
    const int change_one_in_;
    int weights_id_ = -1;
    std::map<std::string, int> values_;
};

// The weights that a layer asks for, as a file has them.
class DrawWeights : public WeightVisitor {
public:
    // int8: the layer's weights, biases aside, are to be bytes. short_ones: they have 8 binary
    // digits, which half floats of either kind hold.
    DrawWeights(Random* random, bool int8, bool short_ones)
        : random_(*random), int8_(int8), short_ones_(short_ones) {}
    std::vector<uint32_t> words;
    bool too_many = false;

    void operator()(bool present, const char* name, Mat&, WeightSize size, WeightKind kind,
                    const char* doc) override {
        if (!present) return;
        const double count = (double)size.w * size.h * size.d * size.c;
        too_many = too_many || !(count > 0 && count < kMostWeights);
        if (too_many) return;
        const bool named = strncmp(doc, "int8", 4) == 0 || (int8_ && !strstr(name, "bias"));
        const bool tagged = kind == WeightKind::kTagged;
        const bool bytes = kind == WeightKind::kInt8 || (tagged && named);
        if (tagged) words.push_back(bytes ? kTagOfInt8 : 0);
        for (size_t i = 0; i < (bytes ? ((size_t)count + 3) / 4 : (size_t)count); i++) {
            uint32_t word = 0;
            const float value = random_.real(-1.f, 1.f);
            for (int k = 0; bytes && k < 4; k++)
                word = word << 8 | (uint32_t)random_.number(0, 255);
            if (!bytes) memcpy(&word, &value, 4);
            words.push_back(short_ones_ && !bytes ? word & kShort : word);
        }
    }

private:
    static const uint32_t kTagOfInt8 = 0x000d4b38;
    Random& random_;
    const bool int8_, short_ones_;
};

struct Case {
    std::string param;
    std::vector<uint32_t> weights;
    std::vector<Mat> inputs;
    int outputs = 1;
    int pack = 1;             // of inputs that it divides
    bool short_ones = false;  // half floats hold inputs and weights
};

// f(values, how many) for each channel of each item.
template <class F>
void for_each_plane(const Mat& m, const F& f) {
    for (int b = 0; b < m.n; b++) {
        const Mat item = m.batch(b);
        for (int q = 0; q < item.c; q++)
            f((char*)item.data + (size_t)q * item.cstep * item.elemsize, item.w * item.h * item.d);
    }
}

// whole_one_in: how many are of whole numbers.
Shape draw_shape(Random* random, int whole_one_in) {
    const int rank = random->number(1, 4);
    Shape s(random->size(12));
    if (rank > 1) s = Shape(random->size(9), random->size(9));
    if (rank == 3) s = Shape(random->size(9), random->size(9), random->size(17));
    if (rank == 4) s = Shape(random->size(6), random->size(6), random->size(4), random->size(9));
    static const DType kWhole[] = {DType::s32, DType::u8, DType::s8};
    if (random->one_in(whole_one_in))
        s.dtype = kWhole[random->one_in(2) ? 0 : random->number(1, 2)];
    return s;
}

// Often of the first one's sizes, or all of them but one.
Shape draw_like(Random* random, const Shape& first, int whole_one_in) {
    Shape s = draw_shape(random, whole_one_in);
    const DType dtype = s.dtype;
    if (random->one_in(3)) return s;
    s = first;
    if (random->one_in(3)) s.set_size(random->number(0, s.dims - 1), random->size(9));
    if (!random->one_in(3)) s.dtype = dtype;
    return s;
}

Mat draw_input(Random* random, const Wanted& wanted) {
    Mat m(wanted.shape);
    const int low = random->one_in(2) ? 0 : random->number(-3, 0), high = random->number(0, 4);
    static const float kOdd[] = {NAN, INFINITY, -INFINITY, -0.f};
    const bool odd = random->one_in(6) && !wanted.finite;
    const float most = random->one_in(4) ? 20.f : 2.f;
    for_each_plane(m, [&](void* plane, int values) {
        for (int i = 0; i < values; i++) {
            if (m.dtype == DType::f32)
                ((float*)plane)[i] = odd && random->one_in(9) ? kOdd[random->number(0, 3)]
                                                              : random->real(-most, most);
            else if (m.dtype == DType::s32)
                ((int*)plane)[i] = random->number(low, high);
            else
                ((uint8_t*)plane)[i] = (uint8_t)random->number(0, m.dtype == DType::u8 ? 1 : 255);
        }
    });
    return m;
}

// The first ones of the blob, from the outermost axis on.
void give_values(const std::vector<int>& values, Mat* m) {
    size_t given = 0;
    for_each_plane(*m, [&](void* plane, int count) {
        for (int i = 0; i < count && given < values.size(); i++) ((int*)plane)[i] = values[given++];
    });
}

// Cuts off the digits that half floats do not hold.
void shorten(Mat* m) {
    if (m->dtype != DType::f32) return;
    for_each_plane(*m, [](void* plane, int values) {
        for (int i = 0; i < values; i++) {
            uint32_t bits;
            memcpy(&bits, (const float*)plane + i, 4);
            bits &= kShort;
            if (!isnan(((const float*)plane)[i])) memcpy((float*)plane + i, &bits, 4);
        }
    });
}

// Often one that divides the first input's outermost axis.
int draw_pack(Random* random, const Mat& first) {
    static const int kPacks[] = {2, 3, 4, 5, 8, 16};
    if (random->one_in(2)) return 1;
    std::vector<int> fitting;
    for (int pack : kPacks)
        if (first.logical_shape().size(0) % pack == 0) fitting.push_back(pack);
    return fitting.empty() ? 1 : fitting[(size_t)random->number(0, (int)fitting.size() - 1)];
}

std::string input_line(size_t i, const Mat& m) {
    std::string line = "Input in" + std::to_string(i) + " 0 1 x" + std::to_string(i);
    const Shape s = m.logical_shape();
    line += " 0=" + std::to_string(s.w);
    if (s.dims > 1) line += " 1=" + std::to_string(s.h);
    if (s.dims > 3) line += " 11=" + std::to_string(s.d);
    if (s.dims > 2) line += " 2=" + std::to_string(s.c);
    return line + "\n";
}

int number_of_inputs(Random* random) {
    if (random->one_in(12)) return 0;
    return random->one_in(6) ? random->number(4, 7) : random->number(1, 3);
}

enum class Drawn { kRefused, kWrongSizes, kFits };

// Inputs and params: those of operators with rules of their own, or what the schema and chance
// give.
ParamDict draw_inputs(const std::string& type, Layer* op, Random* random, Case* c) {
    const bool one = op->one_blob_only;
    const int inputs = one ? 1 : number_of_inputs(random);
    c->outputs = one || !random->one_in(4) ? 1 : random->number(2, 3);
    const bool batch = random->one_in(6);
    const int whole_one_in = random->one_in(3) ? 2 : 12;
    std::vector<Wanted> wanted;
    for (int i = 0; i < inputs; i++)
        wanted.push_back({i == 0 ? draw_shape(random, whole_one_in)
                                 : draw_like(random, wanted[0].shape, whole_one_in),
                          {},
                          false});
    DrawParams params(random, inputs ? wanted[0].shape : Shape(1));
    op->visit_params(params);
    params.fit_weights(type);
    const bool fitted =
        !random->one_in(20) && fitting_inputs(type, random, &params.params, &wanted, &c->outputs);
    for (Wanted& w : wanted) {
        if (batch && !fitted) w.shape.n = 2;
        c->inputs.push_back(draw_input(random, w));
        give_values(w.values, &c->inputs.back());
        if (c->short_ones) shorten(&c->inputs.back());
    }
    if (!c->inputs.empty()) c->pack = draw_pack(random, c->inputs[0]);
    return params.params;
}

bool wants_int8(Layer* op, const ParamDict& params) {
    class Find : public ParamVisitor {
    public:
        explicit Find(const ParamDict& params) : params_(params) {}
        bool found = false;
        void operator()(int id, const char* name, int&, int def, const char*, Range) override {
            if (strcmp(name, "int8_scale_term") == 0) found = params_.get(id, def) != 0;
        }
        void operator()(int, const char*, float&, float, const char*, Range) override {}
        void ints(int, const char*, Mat&, const char*, Range) override {}
        void floats(int, const char*, Mat&, const char*, Range) override {}
        void operator()(int, const char*, std::string&, const char*, const char*) override {}

    private:
        const ParamDict& params_;
    } find(params);
    op->visit_params(find);
    return find.found;
}

// Whether the operator takes the params, without asking for too much, and then the inputs' sizes.
Drawn draw(const std::string& type, Random* random, Case* c) {
    const std::unique_ptr<Layer> op(create_layer_reference(type.c_str()));
    c->short_ones = random->one_in(3);
    const ParamDict params = draw_inputs(type, op.get(), random, c);
    const int inputs = (int)c->inputs.size();
    for (size_t i = 0; i < c->inputs.size(); i++) c->param += input_line(i, c->inputs[i]);
    c->param += type + " l " + std::to_string(inputs) + " " + std::to_string(c->outputs);
    for (int i = 0; i < inputs; i++) c->param += " x" + std::to_string(i);
    for (int i = 0; i < c->outputs; i++) c->param += " y" + std::to_string(i);
    std::vector<unsigned char> text;
    if (params.save_param(DataWriterToMemory(&text)) != 0) return Drawn::kRefused;
    c->param = "7767517\n" + std::to_string(inputs + 1) + " " +
               std::to_string(inputs + c->outputs) + "\n" + c->param +
               std::string(text.begin(), text.end()) + "\n";
    for (int i = 0; i < inputs; i++) op->bottoms.push_back(i);
    for (int i = 0; i < c->outputs; i++) op->tops.push_back(inputs + i);
    if (op->load_param(params) != 0) return Drawn::kRefused;
    DrawWeights weights(random, wants_int8(op.get(), params), c->short_ones);
    op->visit_weights(weights);
    if (weights.too_many) return Drawn::kRefused;
    c->weights = std::move(weights.words);
    std::vector<Shape> in, out;
    for (const Mat& m : c->inputs) in.push_back(m.logical_shape());
    if (op->infer_shapes(in, out) != 0) return Drawn::kWrongSizes;
    for (const Shape& s : out)
        if ((double)s.w * s.h * s.d * s.c * s.n > kMostAnswered) return Drawn::kRefused;
    return Drawn::kFits;
}

// Draws until the sizes fit, since few do by chance; one case in four is as it comes.
bool draw_one(const std::string& type, Random* random, Case* c) {
    Drawn drawn = Drawn::kRefused;
    for (int left = random->one_in(4) ? 1 : kMostDraws; left > 0 && drawn != Drawn::kFits; left--) {
        *c = Case();
        random->new_sizes();
        drawn = draw(type, random, c);
    }
    return drawn != Drawn::kRefused;
}

struct Way {
    const char* name;
    bool reference, fusion, packed;
    int threads;
    DType storage;
    // How far an answer may be from the reference's, of its range, as long as rounding the inputs
    // to one in so many does not move that one farther.
    double tolerance, rounding;
};
const Way kReference = {"reference", true, false, false, 1, DType::f32, 0, 0};

// Packed inputs are those of an application, in whatever elempack it has them.
Mat as_packed(const Mat& m, int pack) {
    Mat packed;
    convert_packing(m, packed, pack);
    return packed;
}

// What each output's extract says, or nothing if the net cannot be loaded.
std::vector<fuzz::Answer> run(const Case& c, const Way& way, const std::vector<Mat>& inputs) {
    fuzz::LimitedAllocator allocator(kMostMemory);
    Net net;
    net.opt.use_reference_layers = way.reference;
    net.opt.use_graph_fusion = way.fusion;
    net.opt.num_threads = way.threads;
    net.opt.use_fp16_storage = way.storage == DType::f16;
    net.opt.use_bf16_storage = way.storage == DType::bf16;
    std::vector<fuzz::Answer> answers;
    if (net.load_param_mem(c.param.c_str()) != 0) return answers;
    const unsigned char* p = (const unsigned char*)c.weights.data();
    if (net.load_model(DataReaderFromMemory(p, c.weights.size() * 4)) != 0) return answers;
    Extractor ex = net.create_extractor();
    ex.set_blob_allocator(&allocator);
    ex.set_workspace_allocator(&allocator);
    bool given = true;
    for (size_t i = 0; i < inputs.size(); i++)
        given = ex.input(("x" + std::to_string(i)).c_str(),
                         way.packed ? as_packed(inputs[i], c.pack) : inputs[i]) == 0 &&
                given;
    for (int i = 0; i < c.outputs && given; i++) {
        fuzz::Answer answer;
        answer.status = ex.extract(("y" + std::to_string(i)).c_str(), answer.blob);
        answer.blob = answer.blob.clone();  // of the allocator's memory
        answers.push_back(answer);
    }
    return answers;
}

std::vector<float> values_of(const Mat& m) {
    std::vector<float> values;
    for_each_plane(m, [&](const void* plane, int count) {
        for (int i = 0; i < count; i++)
            values.push_back(m.dtype == DType::f32   ? ((const float*)plane)[i]
                             : m.dtype == DType::s32 ? (float)((const int*)plane)[i]
                             : m.elemsize == 1       ? (float)((const uint8_t*)plane)[i]
                                                     : 0.f);
    });
    return values;
}

// How far values are from one another in relation to the largest; infinite where one is NaN alone.
double distance(const Mat& a, const Mat& b) {
    const std::vector<float> x = values_of(a), y = values_of(b);
    double most = 0, range = 1e-3;
    if (x.size() != y.size()) return INFINITY;
    for (float v : y)
        if (isfinite(v)) range = fmax(range, fabs(v));
    for (size_t i = 0; i < x.size(); i++) {
        // In another order sums of infinities may be NaN, or not.
        if (x[i] == y[i] || (!isfinite(x[i]) && !isfinite(y[i]))) continue;
        const double off = fabs((double)x[i] - y[i]);
        most = fmax(most, isfinite(off) ? off / range : INFINITY);
    }
    return most;
}

std::vector<Mat> disturbed(const std::vector<Mat>& inputs, float by) {
    std::vector<Mat> all;
    for (const Mat& m : inputs) {
        all.push_back(m.clone());
        unsigned state = 1;
        if (m.dtype != DType::f32) continue;
        for_each_plane(all.back(), [&](void* plane, int count) {
            for (int i = 0; i < count; i++) {
                state = state * 1664525u + 1013904223u;
                ((float*)plane)[i] *= 1.f + (state >> 31 ? by : -by);
            }
        });
    }
    return all;
}

bool report(const char* what, const Way& way) {
    fprintf(stderr, "%s, %s:\n%s", what, way.name, fuzz::current_case.c_str());
    return false;
}

// What is beyond half floats is infinite in them.
bool fits_storage(const Mat& m, DType storage) {
    if (storage != DType::f16) return true;
    for (float v : values_of(m))
        if (fabsf(v) > 60000.f && isfinite(v)) return false;
    return true;
}

// Answer number i of that way.
bool check_answer(const Case& c, const Way& way, size_t i, const fuzz::Answer& have,
                  const fuzz::Answer& want) {
    if ((have.status == 0) != (want.status == 0))
        return report(want.status ? "runs where the reference does not"
                                  : "does not run as the reference does",
                      way);
    if (want.status != 0) return true;
    const Mat &x = have.blob, &y = want.blob;
    if (!(x.logical_shape() == y.logical_shape()) || x.n != y.n || x.dtype != y.dtype)
        return report("another size or type", way);
    if (!fits_storage(y, way.storage)) return true;
    const double off = distance(x, y);
    if (off <= way.tolerance) return true;
    const std::vector<fuzz::Answer> moved =
        run(c, kReference, disturbed(c.inputs, (float)way.rounding));
    const bool known = i < moved.size() && moved[i].status == 0;
    const double rounding = known ? distance(moved[i].blob, y) : INFINITY;
    if (off <= way.tolerance + (way.storage == DType::f32 ? 100 : 10) * rounding) return true;
    fprintf(stderr, "off by %g of the range, rounding explains %g. ", off, rounding);
    return report("other values", way);
}

// *ran: the reference answered.
bool check(const Case& c, bool* ran) {
    static const Way kWays[] = {
        {"fast", false, false, false, 1, DType::f32, 1e-3, 1e-6},
        {"fast with fusion, 3 threads", false, true, false, 3, DType::f32, 1e-3, 1e-6},
        {"fast, packed inputs", false, true, true, 1, DType::f32, 1e-3, 1e-6},
        {"fp16 storage", false, true, false, 1, DType::f16, 4e-3, 1e-3},
        {"bf16 storage, packed inputs", false, true, true, 2, DType::bf16, 3e-2, 8e-3},
    };
    const std::vector<fuzz::Answer> want = run(c, kReference, c.inputs);
    *ran = !want.empty() && want[0].status == 0;
    for (const Way& way : kWays) {
        if ((way.storage != DType::f32 && !c.short_ones) ||
            (way.storage == DType::f32 && way.packed && c.pack == 1))
            continue;
        const std::vector<fuzz::Answer> have = run(c, way, c.inputs);
        if (have.size() != want.size()) return report("loaded by one alone", way);
        for (size_t i = 0; i < want.size(); i++)
            if (!check_answer(c, way, i, have[i], want[i])) return false;
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const bool counts = argc > 1 && strcmp(argv[1], "--counts") == 0;
    argc -= counts, argv += counts;
    if (argc < 3 || argc > 4)
        return fprintf(stderr, "usage: random_layers [--counts] FIRST COUNT [OPERATOR]\n"), 2;
    fuzz::print_case_of_crashes();
    std::vector<std::string> types;
    for (int index = 0; index < 4096; index++)
        if (const char* type = layer_type_name(index))
            if (strcmp(type, "Input") != 0) types.push_back(type);
    const unsigned first = (unsigned)atoi(argv[1]), count = (unsigned)atoi(argv[2]);
    if (count > 1) fuzz::quiet();  // of a single case the messages are shown
    unsigned answered = 0, wrong = 0;
    std::map<std::string, std::pair<unsigned, unsigned>> by_type;  // answered, of so many
    for (unsigned n = first; n - first < count; n++) {
        Random random(n);
        const std::string type = argc > 3 ? argv[3] : types[n % types.size()];
        Case c;
        by_type[type].second++;
        if (!draw_one(type, &random, &c)) continue;
        fuzz::current_case =
            "case " + std::to_string(n) + ", packed by " + std::to_string(c.pack) + "\n" + c.param;
        alarm(kMostSeconds);
        bool ran = false;
        wrong += !check(c, &ran);
        answered += ran;
        by_type[type].first += ran;
        alarm(0);
    }
    for (const auto& entry : by_type)
        if (counts)
            printf("%s %u of %u\n", entry.first.c_str(), entry.second.first, entry.second.second);
    printf("%u cases, %u of them answered, %u wrong\n", count, answered, wrong);
    return wrong != 0;
}
