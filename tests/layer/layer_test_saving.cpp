// Saving: whatever params the schema allows, a Model writes them so that they read back, leaves out
// what is a default, and writes the same bytes again; so for weights in every storage form.
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include <map>
#include <set>

#include "graph/model.h"
#include "graph/optimize.h"
#include "layer_test_private.h"
#include "quoll/datareader.h"
#include "quoll/datawriter.h"

namespace quoll {

namespace {

// Random params tried for an operator, and the ones with them that get weights, up to this size.
const int kVariants = 300;
const size_t kMostWeightBytes = 1 << 18;

// Every field, bit by bit.
class Dump : public ParamVisitor {
public:
    std::string text;
    std::map<std::string, bool> is_default;

    void operator()(int, const char* name, int& field, int def, const char*, Range) override {
        add(name, std::to_string(field), field == def);
    }
    void operator()(int, const char* name, float& field, float def, const char*, Range) override {
        unsigned bits[2];
        memcpy(&bits[0], &field, 4);
        memcpy(&bits[1], &def, 4);
        add(name, "bits " + std::to_string(bits[0]), bits[0] == bits[1]);
    }
    void ints(int, const char* name, Mat& field, const char*, Range) override {
        array(name, field);
    }
    void floats(int, const char* name, Mat& field, const char*, Range) override {
        array(name, field);
    }
    void operator()(int, const char* name, std::string& field, const char* def,
                    const char*) override {
        add(name, field, field == def);
    }

private:
    void add(const char* name, const std::string& value, bool def) {
        text += std::string(name) + " " + value + "\n";
        is_default[name] = def;
    }
    void array(const char* name, const Mat& m) {
        std::string value = dtype_name(m.dtype);
        for (int i = 0; i < (m.empty() ? 0 : m.w); i++) {
            unsigned bits;
            memcpy(&bits, (const char*)m.data + 4 * (size_t)i, 4);
            value += " " + std::to_string(bits);
        }
        add(name, m.empty() ? "" : value, m.empty());
    }
};

// Puts random values, in range and near to useful ones, into some of the params.
class Mutate : public ParamVisitor {
public:
    Mutate(const ParamDict& base, Random& random, int one_in)
        : params(base), random_(random), one_in_(one_in) {}
    ParamDict params;

    void operator()(int id, const char*, int&, int, const char*, Range range) override {
        if (chosen()) params.set(id, int_in(range));
    }
    void operator()(int id, const char*, float&, float, const char*, Range range) override {
        if (chosen()) params.set(id, float_in(range));
    }
    void ints(int id, const char*, Mat&, const char*, Range range) override {
        if (!chosen()) return;
        Mat m(Shape(random_.integer(1, 5), DType::s32));
        for (int i = 0; i < m.w; i++) ((int*)m.data)[i] = int_in(range);
        params.set(id, m);
    }
    void floats(int id, const char*, Mat&, const char*, Range range) override {
        if (!chosen()) return;
        Mat m(random_.integer(1, 5));
        for (int i = 0; i < m.w; i++) m[i] = float_in(range);
        params.set(id, m);
    }
    void operator()(int id, const char*, std::string&, const char*, const char*) override {
        const char* const texts[] = {"", "1", "0w", "+(0w,1)", "0w,1h", "3,4", "ij,jk->ik", "a b"};
        if (chosen()) params.set(id, std::string(texts[random_.integer(0, 7)]));
    }

private:
    bool chosen() { return random_.integer(1, one_in_) == 1; }
    int int_in(Range range) {
        const int useful[] = {-233, -2, -1, 0,   1,   2,   3,    4,    8,
                              16,   36, 72, 144, 288, 576, 1152, 65537};
        const double v = random_.integer(0, 3) ? useful[random_.integer(0, 16)]
                                               : random_.integer(-1000000, 1000000);
        const double low = fmax(range.low, INT_MIN), high = fmin(range.high, INT_MAX);
        if (v >= low && v <= high) return (int)v;
        // A range may be empty, as one up to another param that is not set yet.
        return (int)(low + random_.integer(0, (int)fmax(0, fmin(high - low, 3))));
    }
    float float_in(Range range) {
        float v = ldexpf(random_.uniform({-1, 1}), random_.integer(-140, 120));
        if (random_.integer(0, 1)) v = random_.uniform({-3, 3});
        const double low = fmax(range.low, -FLT_MAX), high = fmin(range.high, FLT_MAX);
        if (v >= low && v <= high) return v;
        return (float)(low + (fmin(high, low + 2) - low) * random_.uniform({0, 1}));
    }

    Random& random_;
    const int one_in_;
};

enum Part { kText, kBinary, kWeights };

std::string saved(const Model& model, Part part) {
    std::vector<unsigned char> bytes;
    const DataWriterToMemory writer(&bytes);
    const int status = part == kText     ? model.save_param(writer)
                       : part == kBinary ? model.save_param_bin(writer)
                                         : model.save_model(writer);
    EXPECT_EQ(0, status);
    return std::string(bytes.begin(), bytes.end());
}

int load(Model* model, Part part, const std::string& bytes) {
    const unsigned char* p = (const unsigned char*)bytes.data();
    const DataReaderFromMemory reader(p, bytes.size());
    return part == kText     ? model->load_param(reader)
           : part == kBinary ? model->load_param_bin(reader)
                             : model->load_model(reader);
}

std::string fields_of(const ModelLayer& layer) {
    const std::unique_ptr<Layer> op = layer.make_operator();
    if (!op) return "refused";
    Dump dump;
    op->visit_params(dump);
    return dump.text;
}

// Inputs for the layer, and the layer, which is the last one.
Model model_of(const char* type, const LayerCase& c, const ParamDict& params) {
    Model model;
    std::vector<std::string> inputs, outputs;
    for (size_t i = 0; i < c.inputs.size(); i++) inputs.push_back("in" + std::to_string(i));
    for (int i = 0; i < c.output_count; i++) outputs.push_back("out" + std::to_string(i));
    for (const std::string& input : inputs) model.add("Input", input, {}, {input});
    model.add(type, "test", inputs, outputs).params = params;
    return model;
}

// Weights as a file holds them, random bits.
std::string random_weights(Layer& op, Random& random, int form) {
    std::string bytes;
    const auto word = [&](unsigned v) { bytes.append((const char*)&v, 4); };
    const unsigned tags[] = {0, 0x01306B47, 0x000D4B38, 0x00000105, 0x0002C056};
    for (const WeightNeed& need : weights_needed(op)) {
        const int f = need.kind == WeightKind::kTagged ? form
                      : need.kind == WeightKind::kInt8 ? 2
                                                       : 0;
        const size_t scalar = f == 1 ? 2 : f == 2 || f == 3 ? 1 : 4;
        if (need.kind == WeightKind::kTagged) word(tags[f]);
        if (f == 3)
            for (int i = 0; i < 256; i++) word((unsigned)random.integer(0, 1 << 30));
        std::string data(need.count * scalar, '\0');
        for (char& ch : data) ch = (char)random.integer(0, 255);
        data.resize(align_size(data.size(), 4));
        bytes += data;
    }
    return bytes;
}

size_t weight_bytes(Layer& op) {
    double bytes = 0;
    for (const WeightNeed& need : weights_needed(op)) {
        if (need.count <= 0) return SIZE_MAX;
        bytes += 4.0 * (double)need.count;
    }
    return bytes < 1e9 ? (size_t)bytes : SIZE_MAX;
}

void check_params(const char* type, const LayerCase& c, const ParamDict& params,
                  const std::string& fields) {
    const Model model = model_of(type, c, params);
    const std::string text = saved(model, kText), binary = saved(model, kBinary);
    SCOPED_TRACE(text);
    Model from_text, from_binary;
    ASSERT_EQ(0, load(&from_text, kText, text));
    ASSERT_EQ(0, load(&from_binary, kBinary, binary));
    EXPECT_EQ(text, saved(from_text, kText));
    EXPECT_EQ(binary, saved(from_text, kBinary));
    EXPECT_EQ(binary, saved(from_binary, kBinary));
    EXPECT_EQ(fields, fields_of(from_text.layers.back()));
    EXPECT_EQ(fields, fields_of(from_binary.layers.back()));
    const ParamDict& kept = from_text.layers.back().params;
    for (int id = 0; id <= kMaxParamId; id++) {
        if (kept.type(id) == ParamDict::kNone) continue;
        ModelLayer less = from_text.layers.back();
        less.params.copy(id, ParamDict());
        EXPECT_NE(fields, fields_of(less)) << "parameter " << id << " is a default, yet written";
    }
}

// The graph passes leave a layer that they have nothing to do with as it was, params and weights.
void check_passes(const Model& model) {
    const ModelLayer& layer = model.layers.back();
    // Random bits may be weights that the operator refuses.
    if (!layer.make_operator(true)) return;
    Model passed = model;
    OptimizeReport report;
    ASSERT_EQ(0, run_graph_passes(&passed, {}, &report));
    if (!report.empty()) return;
    EXPECT_EQ(saved(model, kText), saved(passed, kText));
    EXPECT_EQ(saved(model, kWeights), saved(passed, kWeights));
}

void check_weights(const char* type, const LayerCase& c, const ParamDict& params, Layer& op,
                   Random& random) {
    if (weight_bytes(op) > kMostWeightBytes) return;
    for (int form = 0; form < 5; form++) {
        Model model = model_of(type, c, params);
        const std::string weights = random_weights(op, random, form);
        ASSERT_EQ(0, load(&model, kWeights, weights));
        EXPECT_EQ(weights, saved(model, kWeights)) << "form " << form;
        check_passes(model);
        if (weights.empty()) return;
        EXPECT_NE(0, load(&model, kWeights, weights.substr(0, weights.size() - 1)));
    }
}

// Operators whose flags depend on params want other counts of blobs; those are not the question.
LayerCase with_fitting_blobs(const LayerCase& c, const Layer& op) {
    LayerCase fitting = c;
    if (!op.one_blob_only) return fitting;
    fitting.inputs.assign(1, Shape(1));
    return fitting.outputs(1);
}

}  // namespace

void check_saving(const char* type, const std::vector<LayerCase>& cases) {
    const Silence silence;
    Random random(seed_of(type, cases.size()));
    std::set<std::string> varied, all;
    for (int i = 0; i < kVariants + (int)cases.size(); i++) {
        const LayerCase& c = cases[i % cases.size()];
        ParamDict base;
        const unsigned char* text = (const unsigned char*)c.params.c_str();
        ASSERT_EQ(0, base.load_param(DataReaderFromMemory(text, c.params.size())));
        const LayerPtr op(create_layer_reference(type));
        Mutate mutate(base, random, 1 + i / 2 % 5);
        if (i >= (int)cases.size()) op->visit_params(mutate);
        if (op->load_param(mutate.params) != 0) continue;
        Dump dump;
        op->visit_params(dump);
        for (const auto& param : dump.is_default) {
            all.insert(param.first);
            if (!param.second) varied.insert(param.first);
        }
        SCOPED_TRACE(std::string(type) + " variant " + std::to_string(i) + "\n" + dump.text);
        const LayerCase fitting = with_fitting_blobs(c, *op);
        check_params(type, fitting, mutate.params, dump.text);
        check_weights(type, fitting, mutate.params, *op, random);
        if (testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(all, varied) << type << ": some params were never tried with another value";
}

// Operators that the Extractor runs, so that they have no case table.
TEST(LayerTest, saving_of_operators_without_cases) {
    check_saving("Input", {LayerCase({}, "")});
    check_saving("Split", {LayerCase({Shape(1)}, "").outputs(3)});
}

}  // namespace quoll
