#include "layer_test.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../kernel/guarded.h"
#include "layer_test_private.h"
#include "quoll/cpu.h"
#include "quoll/datareader.h"
#include "quoll/net.h"
#include "runtime/cpu_features.h"

namespace quoll {

namespace {

// Epsilon (twice the unit roundoff) of a type.
double epsilon_of(DType dtype) {
    return dtype == DType::f16 ? 1.0 / 1024 : dtype == DType::bf16 ? 1.0 / 128 : FLT_EPSILON;
}

void fill_random(Mat& m, ValueRange range, Random& random) {
    for (int q = 0; q < m.c; q++) {
        unsigned char* p = (unsigned char*)m.data + (size_t)q * m.cstep * m.elemsize;
        for (int i = 0; i < m.w * m.h * m.d; i++) {
            if (m.dtype == DType::f32) ((float*)p)[i] = random.uniform(range);
            const int whole = random.integer((int)range.low, (int)range.high);
            if (m.dtype == DType::s32) ((int*)p)[i] = whole;
            if (m.dtype == DType::s8 || m.dtype == DType::u8) p[i] = (unsigned char)whole;
        }
    }
}

double largest(const Mat& m) {
    double most = 0;
    for (int q = 0; q < m.c && m.dtype == DType::f32; q++) {
        const float* p = m.channel(q);
        for (int i = 0; i < m.w * m.h * m.d; i++)
            if (isfinite(p[i])) most = std::max(most, (double)fabsf(p[i]));
    }
    return most;
}

double value_at(const Mat& m, size_t i) {
    switch (m.dtype) {
        case DType::f32:
            return ((const float*)m.data)[i];
        case DType::s32:
            return ((const int*)m.data)[i];
        case DType::s8:
            return ((const signed char*)m.data)[i];
        case DType::u8:
            return ((const unsigned char*)m.data)[i];
        case DType::f16:
            return float16_to_float32(((const unsigned short*)m.data)[i]);
        case DType::bf16:
            return bfloat16_to_float32(((const unsigned short*)m.data)[i]);
    }
    return 0;
}

bool value_holds(double got, double want, DType dtype, const Tolerance& tolerance) {
    if (isnan(want)) return isnan(got);
    if (isinf(want)) return got == want;
    if (fabs(want) > tolerance.most && got == copysign(INFINITY, want)) return true;
    if (dtype == DType::s8) return fabs(got - want) <= tolerance.ties;
    if (dtype == DType::s32 || dtype == DType::u8) return got == want;
    return fabs(got - want) <= tolerance.of(want);
}

Mat planar(const Mat& m) {
    Mat p = m;
    if (m.elempack != 1) convert_packing(m, p, 1);
    return p;
}

std::string array_text(const std::vector<Shape>& shapes) {
    std::string text;
    for (const Shape& s : shapes)
        text += (text.empty() ? "" : ", ") + shape_text(s) + " " + dtype_name(s.dtype);
    return text;
}

bool is_masked() {
    const char* mask = getenv("QUOLL_CPU_MASK");
    return mask && *mask;
}

class CollectWeights : public WeightVisitor {
public:
    std::vector<WeightNeed> needs;
    void operator()(bool present, const char* name, Mat&, WeightSize size, WeightKind kind,
                    const char*) override {
        if (present) needs.push_back({name, size.w * size.h * size.d * size.c, kind});
    }
};

bool ends_with(const std::string& text, const char* end) {
    const size_t n = strlen(end);
    return text.size() >= n && text.compare(text.size() - n, n, end) == 0;
}

// One layer, made for one ISA level, over packs, threads, in place and not; sometimes in memory
// between pages that fault.
void check_layer(const Layer& layer, const PreparedCase& p, const std::vector<Mat>& want) {
    for (int pack : kPacks) {
        if (pack != 1 && (!layer.support_packing || (p.stored && pack != 0))) continue;
        const std::vector<Mat> inputs = packed(p.inputs, pack);
        std::vector<Shape> inferred;
        ASSERT_TRUE(p.stored || layer.infer_shapes(logical_shapes(inputs), inferred) == 0);
        for (int mode = p.stored ? 2 : 0; mode < 4; mode++) {
            const bool inplace = mode & 1, guard = (mode & 2) && pack <= 1;
            if (inplace && !runs_in_place(layer)) continue;
            GuardedAllocator guarded(pack != 1);
            Option opt;
            opt.num_threads = mode & 2 ? 2 : 1;
            if (guard) opt.blob_allocator = opt.workspace_allocator = &guarded;
            SCOPED_TRACE("elempack " + std::to_string(pack) + " (0: mixed), " +
                         std::to_string(opt.num_threads) + " threads" +
                         (inplace ? ", in place" : ""));
            const std::vector<Mat> before = cloned(inputs);
            std::vector<Mat> got;
            ASSERT_EQ(0, run_status(layer, inputs, &got, opt, inplace));
            ASSERT_EQ(want.size(), got.size());
            for (size_t i = 0; i < got.size(); i++)
                ASSERT_TRUE(nearly_equal(from_storage(got[i]), want[i], p.tolerance))
                    << "output " << i;
            ASSERT_TRUE(p.stored || shapes_hold(inferred, got));
            ASSERT_TRUE(same_values(before, inputs)) << "an input was overwritten";
            got.clear();
            ASSERT_EQ(0, guarded.damage()) << "written behind the end of a blob";
        }
    }
}

void check_matches_reference(const char* type, const std::vector<LayerCase>& cases) {
    const std::vector<const char*>& levels = isa_levels();
    for (size_t i = 0; i < cases.size(); i++) {
        PreparedCase p;
        if (!prepare(type, cases[i], i, &p)) continue;
        SCOPED_TRACE(p.text);
        const LayerPtr reference = make_case_layer(type, cases[i], p, true);
        const std::vector<Mat> want = run_layer(*reference, p.inputs);
        ASSERT_FALSE(want.empty()) << "the reference failed";
        if (!is_masked()) {
            SCOPED_TRACE("the reference itself");
            check_layer(*reference, p, want);
        }
        for (const char* level : levels) {
            SCOPED_TRACE(std::string("ISA level ") + level);
            set_cpu_mask(level);
            const LayerPtr fast = make_case_layer(type, cases[i], p, false);
            if (fast) check_layer(*fast, p, want);
            set_cpu_mask(nullptr);
            ASSERT_TRUE(fast != nullptr);
        }
        if (testing::Test::HasFatalFailure()) return;
    }
}

void check_net(const char* type, const LayerCase& c, const PreparedCase& p, DType storage,
               const std::vector<Mat>& want) {
    Net net;
    net.opt.use_fp16_arithmetic = p.tolerance.arithmetic_epsilon > 0;
    net.opt.use_fp16_storage = storage == DType::f16;
    net.opt.use_bf16_storage = storage == DType::bf16;
    const std::vector<unsigned> words = weight_words(p);
    const unsigned char* mem = (const unsigned char*)words.data();
    ASSERT_EQ(0, net.load_param_mem(net_text(type, c).c_str()));
    ASSERT_EQ(0, net.load_model(DataReaderFromMemory(mem, words.size() * 4)));
    for (int pack : kPacks) {
        SCOPED_TRACE("elempack " + std::to_string(pack) + " (0: mixed)");
        const std::vector<Mat> inputs = packed(p.inputs, pack);
        ExpectAsPlanned as_planned;
        Extractor ex = net.create_extractor();
        ex.set_layer_observer(&as_planned);
        ex.set_num_threads(pack == 16 ? 2 : 1);  // waking threads up is most of the time here
        for (size_t i = 0; i < inputs.size(); i++)
            ASSERT_EQ(0, ex.input(("in" + std::to_string(i)).c_str(), inputs[i]));
        for (size_t i = 0; i < want.size(); i++) {
            Mat got;
            ASSERT_EQ(0, ex.extract(("out" + std::to_string(i)).c_str(), got));
            ASSERT_TRUE(nearly_equal(got, want[i], p.tolerance)) << "output " << i;
        }
    }
}

// Layers that take blobs of a storage type, on every ISA.
void check_stored(const char* type, const LayerCase& c, const PreparedCase& p, DType storage,
                  const std::vector<Mat>& want) {
    Option opt;
    opt.use_fp16_storage = storage == DType::f16;
    opt.use_bf16_storage = storage == DType::bf16;
    opt.use_fp16_arithmetic = p.tolerance.arithmetic_epsilon > 0;
    for (const char* level : isa_levels()) {
        SCOPED_TRACE(std::string("ISA level ") + level);
        set_cpu_mask(level);
        const LayerPtr layer = make_case_layer(type, c, p, false, opt);
        const bool takes = layer && (storage == DType::f16 ? layer->support_fp16_storage
                                                           : layer->support_bf16_storage);
        if (takes) check_layer(*layer, p, want);
        set_cpu_mask(nullptr);
        ASSERT_TRUE(layer != nullptr);
        if (testing::Test::HasFatalFailure()) return;
    }
}

// Blobs of f32, f16 and bf16, by themselves and through a Net.
void check_storage(const char* type, const std::vector<LayerCase>& cases) {
    for (size_t i = 0; i < cases.size(); i++) {
        PreparedCase p;
        if (!prepare(type, cases[i], i, &p)) continue;
        for (DType storage : {DType::f32, DType::f16, DType::bf16}) {
            SCOPED_TRACE(p.text + ", blobs of " + dtype_name(storage));
            std::vector<Mat> want;
            const PreparedCase stored = stored_case(type, cases[i], p, storage, &want);
            ASSERT_FALSE(want.empty()) << "the reference failed";
            check_net(type, cases[i], stored, storage, want);
            if (storage != DType::f32) check_stored(type, cases[i], stored, storage, want);
            if (testing::Test::HasFatalFailure()) return;
            if (storage != DType::f16 || !cpu_support_arm_asimdhp()) continue;
            SCOPED_TRACE("with arithmetic of half floats");
            PreparedCase added = stored;
            added.tolerance.arithmetic_epsilon = epsilon_of(DType::f16);
            check_net(type, cases[i], added, storage, want);
            check_stored(type, cases[i], added, storage, want);
            if (testing::Test::HasFatalFailure()) return;
        }
    }
}

// What params_to_text writes reads back as the same layer.
void check_round_trip(const char* type, const std::vector<LayerCase>& cases) {
    if (!forms_tested().front()) GTEST_SKIP() << "the same on all processors";
    for (size_t i = 0; i < cases.size(); i++) {
        PreparedCase p;
        if (!prepare(type, cases[i], i, &p)) continue;
        SCOPED_TRACE(p.text);
        const LayerPtr first = make_case_layer(type, cases[i], p, true);
        const std::string text = params_to_text(*first);
        SCOPED_TRACE("as text:" + text);
        LayerCase again = cases[i];
        again.params = text;
        const LayerPtr second = make_case_layer(type, again, p, true);
        ASSERT_TRUE(second != nullptr);
        EXPECT_EQ(text, params_to_text(*second));
        EXPECT_TRUE(same_values(run_layer(*first, p.inputs), run_layer(*second, p.inputs)));
    }
}

class LayerTestBody : public testing::Test {
public:
    LayerTestBody(LayerCheck check, const char* type, const std::vector<LayerCase>& cases)
        : check_(check), type_(type), cases_(cases) {}
    void TestBody() override {
        if (layer_to_index(type_) < 0) GTEST_SKIP() << type_ << " is not in this build";
        check_(type_, cases_);
    }

private:
    const LayerCheck check_;
    const char* const type_;
    const std::vector<LayerCase>& cases_;
};

}  // namespace

PreparedCase stored_case(const char* type, const LayerCase& c, const PreparedCase& p, DType storage,
                         std::vector<Mat>* want) {
    PreparedCase stored = p;
    std::vector<Mat> wide;
    for (Mat& m : stored.inputs) {
        m = to_storage(m, storage);
        wide.push_back(from_storage(m));
    }
    const LayerPtr reference = make_case_layer(type, c, p, true);
    *want = run_layer(*reference, wide);
    if (storage == DType::f32) return stored;
    stored.stored = true;
    stored.tolerance.output_epsilon = epsilon_of(storage);
    stored.tolerance.most = storage == DType::f16 ? 65504 : 3.3895e38;
    stored.tolerance.weight_epsilon = p.weights.empty() ? 0 : epsilon_of(storage);
    return stored;
}

static std::vector<const char*> find_isa_levels() {
#if defined(__x86_64__) || defined(__i386__)
    const char* const all[] = {"scalar",     "sse4",       "avx2",       "avxvnni", "avx512",
                               "avx512vnni", "avx512bf16", "avx512fp16", "amx"};
#elif defined(__aarch64__)
    const char* const all[] = {"scalar", "neon", "asimdhp", "asimddp",
                               "i8mm",   "sve",  "sve2",    "sme"};
#elif defined(__arm__)
    const char* const all[] = {"scalar", "neon"};
#elif defined(__wasm__)
    const char* const all[] = {"scalar", "simd128"};
#elif defined(__riscv)
    const char* const all[] = {"scalar", "rvv"};
#else
    const char* const all[] = {"scalar"};
#endif
    std::vector<const char*> levels;
    uint64_t previous = ~(uint64_t)0;
    for (const char* level : all) {
        set_cpu_mask(level);
        const uint64_t bits = host_cpu_features().bits;
        if (bits != previous) levels.push_back(level);
        previous = bits;
    }
    set_cpu_mask(nullptr);
    if (is_masked()) levels.erase(levels.begin(), levels.end() - 1);
    return levels;
}

const std::vector<const char*>& isa_levels() {
    static const std::vector<const char*> levels = find_isa_levels();
    return levels;
}

const std::vector<bool>& forms_tested() {
#ifdef QUOLL_EMULATED_CPU
    const bool fast_alone = true;
#else
    const bool fast_alone = is_masked();
#endif
    static const std::vector<bool> forms =
        fast_alone ? std::vector<bool>{false} : std::vector<bool>{true, false};
    return forms;
}

static bool same_bits(const Mat& a, const Mat& b) {
    if (a.logical_shape() != b.logical_shape() || a.elempack != b.elempack) return false;
    const size_t bytes = (size_t)a.w * a.h * a.d * a.elemsize;
    for (int i = 0; i < a.n && !a.empty(); i++)
        for (int q = 0; q < a.c; q++)
            if (memcmp((const char*)a.data + (i * a.nstep + q * a.cstep) * a.elemsize,
                       (const char*)b.data + (i * b.nstep + q * b.cstep) * b.elemsize, bytes) != 0)
                return false;
    return true;
}

bool same_values(const std::vector<Mat>& a, const std::vector<Mat>& b) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); i++)
        if (!same_bits(a[i], b[i])) return false;
    return a.size() == b.size();
}

std::vector<Mat> cloned(const std::vector<Mat>& mats) {
    std::vector<Mat> copies;
    for (const Mat& m : mats) copies.push_back(m.clone());
    return copies;
}

Mat to_storage(const Mat& m, DType storage) {
    Mat narrow = m;
    if (m.dtype == DType::f32 && storage == DType::f16) cast_float32_to_float16(m, narrow);
    if (m.dtype == DType::f32 && storage == DType::bf16) cast_float32_to_bfloat16(m, narrow);
    return narrow;
}

Mat from_storage(const Mat& m) {
    Mat wide = m;
    if (m.dtype == DType::f16) cast_float16_to_float32(m, wide);
    if (m.dtype == DType::bf16) cast_bfloat16_to_float32(m, wide);
    return wide;
}

unsigned seed_of(const char* type, size_t index) {
    const char* more = getenv("QUOLL_TEST_SEED");
    unsigned seed = (unsigned)index * 2654435761u + (more ? (unsigned)atoi(more) : 0u);
    for (; *type; type++) seed = seed * 31 + (unsigned char)*type;
    return seed;
}

double Tolerance::of(double want) const {
    const double u = arithmetic_epsilon > 0 ? arithmetic_epsilon : FLT_EPSILON;
    const double relative = (kFunctionUlps + sqrt(terms)) * u + output_epsilon;
    return relative * fabs(want) + growth * u * terms * magnitude +
           weight_epsilon * sqrt(terms) * magnitude + absolute;
}

testing::AssertionResult nearly_equal(const Mat& got_packed, const Mat& want_packed,
                                      const Tolerance& of_all, const Mat& more) {
    Tolerance tolerance = of_all;
    const Mat got = planar(got_packed), want = planar(want_packed);
    if (got.logical_shape() != want.logical_shape())
        return testing::AssertionFailure() << "shape " << array_text({got.logical_shape()})
                                           << ", expected " << array_text({want.logical_shape()});
    for (int qn = 0; qn < want.n * want.c && !want.empty(); qn++) {
        const int n = qn / want.c, q = qn % want.c;
        for (int i = 0; i < want.w * want.h * want.d; i++) {
            const double g = value_at(got, n * got.nstep + q * got.cstep + i),
                         w = value_at(want, n * want.nstep + q * want.cstep + i);
            if (!more.empty())
                tolerance.absolute = value_at(more, n * more.nstep + q * more.cstep + i);
            if (!value_holds(g, w, want.dtype, tolerance))
                return testing::AssertionFailure()
                       << "at w " << i % want.w << " h " << i / want.w % want.h << " d "
                       << i / want.w / want.h << " c " << q << " n " << n << ": got " << g
                       << ", expected " << w << ", may differ by " << tolerance.of(w);
        }
    }
    return testing::AssertionSuccess();
}

void DestroyLayer::operator()(Layer* layer) const {
    layer->destroy_pipeline(Option());
    delete layer;
}

std::vector<WeightNeed> weights_needed(Layer& layer) {
    CollectWeights collect;
    layer.visit_weights(collect);
    return collect.needs;
}

LayerPtr make_layer(const char* type, const std::string& params, const std::vector<Mat>& weights,
                    int inputs, int outputs, bool reference, const Option& opt) {
    LayerPtr layer(reference ? create_layer_reference(type) : create_layer(type));
    if (!layer) return layer;
    layer->name = "test";
    for (int i = 0; i < inputs; i++) layer->bottoms.push_back(i);
    for (int i = 0; i < outputs; i++) layer->tops.push_back(inputs + i);
    ParamDict pd;
    const unsigned char* text = (const unsigned char*)params.c_str();
    const DataReaderFromMemory reader(text, params.size());
    const ModelBinFromMatArray model(weights.data());
    if (pd.load_param(reader, type) != 0 || layer->load_param(pd) != 0 ||
        weights_needed(*layer).size() != weights.size() || layer->load_model(model) != 0 ||
        layer->create_pipeline(opt) != 0)
        layer.reset();
    return layer;
}

LayerPtr make_case_layer(const char* type, const LayerCase& c, const PreparedCase& p,
                         bool reference, const Option& opt) {
    return make_layer(type, c.params, p.weights, (int)c.inputs.size(), c.output_count, reference,
                      opt);
}

std::vector<Mat> random_inputs(const LayerCase& c, Random& random) {
    std::vector<Mat> inputs;
    for (size_t i = 0; i < c.inputs.size(); i++) {
        inputs.emplace_back(c.inputs[i]);
        fill_random(inputs[i], i < c.input_ranges.size() ? c.input_ranges[i] : c.input_range,
                    random);
    }
    if (c.filler) c.filler(inputs);
    return inputs;
}

bool prepare(const char* type, const LayerCase& c, size_t index, PreparedCase* p) {
    p->seed = seed_of(type, index);
    p->text = std::string(type) + " " + c.params + " on " + array_text(c.inputs) + ", case " +
              std::to_string(index) + ", seed " + std::to_string(p->seed);
    Random random(p->seed);
    double most_input = 0, most_weight = 0;
    p->inputs = random_inputs(c, random);
    for (const Mat& m : p->inputs) most_input = std::max(most_input, largest(m));

    const LayerPtr layer(create_layer_reference(type));
    ParamDict pd;
    const unsigned char* text = (const unsigned char*)c.params.c_str();
    if (pd.load_param(DataReaderFromMemory(text, c.params.size()), type) ||
        layer->load_param(pd) != 0) {
        ADD_FAILURE() << p->text << ": the params were refused";
        return false;
    }
    for (const WeightNeed& need : weights_needed(*layer)) {
        const bool scales = ends_with(need.name, "_int8_scales");
        const bool int8 = need.kind == WeightKind::kInt8 ||
                          (c.weights_are_int8 && need.kind == WeightKind::kTagged);
        ValueRange range = scales ? ValueRange{100, 127} : ValueRange{-1, 1};
        if (int8) range = {-127, 127};
        for (const auto& named : c.weight_ranges)
            if (named.first == need.name) range = named.second;
        p->weights.emplace_back(Shape((int)need.count, int8 ? DType::s8 : DType::f32));
        p->kinds.push_back(need.kind);
        fill_random(p->weights.back(), range, random);
        if (!scales) most_weight = std::max(most_weight, largest(p->weights.back()));
    }
    p->tolerance.terms = c.term_count;
    p->tolerance.growth = c.growth;
    p->tolerance.ties = p->weights.empty() ? 0 : 1;  // others move values or compute with integers
    const double product = std::max(1.0, most_input) * std::max(1.0, most_weight);
    p->tolerance.magnitude = c.largest_term > 0 ? c.largest_term : product;
    return true;
}

std::vector<unsigned> weight_words(const PreparedCase& p) {
    const unsigned kTagInt8 = 0x000D4B38;
    std::vector<unsigned> words;
    for (size_t i = 0; i < p.weights.size(); i++) {
        const Mat& m = p.weights[i];
        if (p.kinds[i] == WeightKind::kTagged) words.push_back(m.dtype == DType::s8 ? kTagInt8 : 0);
        const size_t bytes = (size_t)m.w * m.elemsize, at = words.size();
        words.resize(at + (bytes + 3) / 4);
        memcpy(&words[at], m.data, bytes);
    }
    return words;
}

int run_status(const Layer& layer, const std::vector<Mat>& inputs, std::vector<Mat>* outputs,
               const Option& opt, bool inplace) {
    if (layer.one_blob_only && inputs.size() == 1) {
        outputs->resize(1);
        if (!inplace) return layer.forward(inputs[0], (*outputs)[0], opt);
        (*outputs)[0] = inputs[0].clone();
        return layer.forward_inplace((*outputs)[0], opt);
    }
    if (inplace) {
        *outputs = cloned(inputs);
        return layer.forward_inplace(*outputs, opt);
    }
    outputs->resize(layer.tops.size());
    return layer.forward(inputs, *outputs, opt);
}

std::vector<Mat> run_layer(const Layer& layer, const std::vector<Mat>& inputs, const Option& opt) {
    std::vector<Mat> outputs;
    if (run_status(layer, inputs, &outputs, opt, false) != 0) outputs.clear();
    return outputs;
}

std::vector<Mat> packed(const std::vector<Mat>& inputs, int pack) {
    std::vector<Mat> result = inputs;
    const int mixed[] = {8, 1, 4, 16};
    for (size_t i = 0; i < inputs.size(); i++) {
        const int wanted = pack ? pack : mixed[i % 4];
        if (inputs[i].logical_shape().size(0) % wanted == 0)
            convert_packing(inputs[i], result[i], wanted);
    }
    return result;
}

std::vector<Shape> logical_shapes(const std::vector<Mat>& mats) {
    std::vector<Shape> shapes;
    for (const Mat& m : mats) shapes.push_back(m.logical_shape());
    return shapes;
}

testing::AssertionResult shapes_hold(const std::vector<Shape>& inferred,
                                     const std::vector<Mat>& produced) {
    const std::vector<Shape> got = logical_shapes(produced);
    bool hold = inferred.size() == got.size();
    for (size_t i = 0; hold && i < got.size(); i++)
        hold = inferred[i].dims == 0 || inferred[i] == got[i];
    if (hold) return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << "infer_shapes says " << array_text(inferred) << ", produced " << array_text(got);
}

// 2^31 stands for the largest int, which no float is.
static int to_int(float value) { return value >= 2147483648.f ? INT_MAX : (int)value; }

Mat mat_of(const Shape& shape, const std::vector<float>& values) {
    Mat m(shape);
    EXPECT_EQ(shape.total(), values.size());
    const size_t each = (size_t)shape.w * shape.h * shape.d;
    for (size_t i = 0; i < std::min(values.size(), shape.total()); i++) {
        const size_t at = i / each * m.cstep + i % each;
        if (shape.dtype == DType::f32) ((float*)m.data)[at] = values[i];
        if (shape.dtype == DType::s32) ((int*)m.data)[at] = to_int(values[i]);
        if (shape.dtype == DType::s8) ((signed char*)m.data)[at] = (signed char)values[i];
        if (shape.dtype == DType::u8) ((unsigned char*)m.data)[at] = (unsigned char)values[i];
    }
    return m;
}

void expect_values(const char* type, const std::string& params, const std::vector<Mat>& weights,
                   const std::vector<Mat>& inputs, const Mat& want) {
    if (layer_to_index(type) < 0) GTEST_SKIP() << type << " is not in this build";
    Tolerance tolerance;
    tolerance.terms = 1e-5 / FLT_EPSILON;
    tolerance.magnitude = largest(want);
    for (bool reference : {true, false}) {
        SCOPED_TRACE(std::string(type) + " " + params + (reference ? ", reference" : ", fast"));
        const LayerPtr layer = make_layer(type, params, weights, (int)inputs.size(), 1, reference);
        ASSERT_TRUE(layer != nullptr);
        const std::vector<Mat> got = run_layer(*layer, inputs);
        ASSERT_EQ(1u, got.size());
        EXPECT_TRUE(nearly_equal(got[0], want, tolerance));
    }
}

// Made on first use, since tables register before main().
static CaseTables& tables() {
    static CaseTables all;
    return all;
}
const CaseTables& case_tables() { return tables(); }

bool add_layer_tests(const char* type, const std::vector<LayerCase>& cases, const char* file,
                     int line) {
    const struct {
        const char* name;
        LayerCheck check;
    } checks[] = {
        {"matches_reference", check_matches_reference},
        {"storage", check_storage},
        {"vulkan", check_vulkan},
        {"batch", check_batch},
        {"round_trip", check_round_trip},
        {"in_a_net", check_in_a_net},
        {"empty_inputs", check_empty_inputs},
        {"saving", check_saving},
        {"allocation_failure", check_allocation_failure},
        {"odd_inputs", check_odd_inputs},
        {"odd_params", check_odd_params},
    };
    tables()[type] = &cases;
    for (const auto& c : checks)
        testing::RegisterTest(
            type, c.name, nullptr, nullptr, file, line,
            [=, &cases]() -> testing::Test* { return new LayerTestBody(c.check, type, cases); });
    return true;
}

// Input and Split have none: the Extractor runs them.
TEST(LayerTest, every_operator_has_a_case_table) {
    for (const std::string& type : layer_types())
        EXPECT_TRUE(tables().count(type) || type == "Input" || type == "Split") << type;
}

}  // namespace quoll
