// Checks with things that go wrong: memory, inputs, params. Whatever happens, a layer answers with
// a negative code or with a result; under the sanitizers this also shows what is read out of
// bounds.
#include <limits.h>
#include <math.h>

#include <atomic>

#include "failing_heap.h"
#include "layer_test_private.h"
#include "quoll/datareader.h"
#include "quoll/net.h"

namespace quoll {

namespace {

// Odd params are tried on this many cases of an operator.
const size_t kOddParamCases = 6;
// A layer with odd params gets weights and blobs up to this many bytes, no more.
const size_t kMostBytes = 8 << 20;

// Fails one allocation, and all above a size.
class FailingAllocator : public Allocator {
public:
    FailingAllocator(int at, size_t most) : left_(at), most_(most), failed_(false) {}
    void* fastMalloc(size_t size) override {
        if (left_-- != 0 && size <= most_) return fast_malloc(size);
        failed_ = true;
        return nullptr;
    }
    void fastFree(void* ptr) override { fast_free(ptr); }
    bool failed() const { return failed_; }

private:
    std::atomic<int> left_;
    const size_t most_;
    std::atomic<bool> failed_;
};

class CopyingReader : public DataReaderFromMemory {
public:
    using DataReaderFromMemory::DataReaderFromMemory;
    size_t reference(size_t, const void**) const override { return 0; }
};

// Any weight that is asked for, up to kMostBytes.
class AnyWeights : public ModelBin {
public:
    using ModelBin::load;
    Mat load(int w, int) const override {
        Mat m;
        if ((size_t)w * 4 <= kMostBytes) m.create(w);
        m.fill(0.5f);
        return m;
    }
};

// Values a hostile file may hold.
class OddParams : public ParamVisitor {
public:
    std::vector<ParamDict> variants;
    explicit OddParams(const ParamDict& base) : base_(base) {}

    void operator()(int id, const char*, int&, int, const char*, Range) override {
        for (int v : {INT_MIN, -234, -233, -1, 0, 1, 2, 3, 7, 101, 65536, INT_MAX}) set(id, v);
        set(id, std::string("text"));
        set(id, ints({1, 2}));
    }
    void operator()(int id, const char*, float&, float, const char*, Range) override {
        for (float v : {-INFINITY, -1.f, 0.f, 1e-30f, 1e30f, INFINITY, NAN}) set(id, v);
        set(id, ints({1, 2}));
    }
    void ints(int id, const char*, Mat&, const char*, Range) override {
        for (int v : {INT_MIN, -5, -1, 0, 1, 5, INT_MAX})
            for (int n : {1, 2, 3, 4, 9}) set(id, ints(std::vector<int>(n, v)));
        set(id, ints({3, 2, 1, 0}));
        set(id, Mat());
        set(id, 1);
    }
    void floats(int id, const char*, Mat&, const char*, Range) override {
        for (float v : {-INFINITY, -1.f, 0.f, 1e30f, NAN})
            for (int n : {1, 2, 3, 9}) set(id, mat_of(Shape(n), std::vector<float>(n, v)));
        set(id, Mat());
        set(id, 1.f);
    }
    void operator()(int id, const char*, std::string&, const char*, const char*) override {
        for (const char* v : {"", "x", "%s%n", ",,", "->", "ij,jk->ik", "aaaaaaaaaaaaaaaaaaaaaaaa"})
            set(id, std::string(v));
        set(id, 1);
    }

private:
    template <class T>
    void set(int id, const T& value) {
        variants.push_back(base_);
        variants.back().set(id, value);
    }
    static Mat ints(const std::vector<int>& values) {
        return mat_of(Shape((int)values.size(), DType::s32),
                      std::vector<float>(values.begin(), values.end()));
    }
    const ParamDict& base_;
};

// An emulator takes minutes for all failures of an operator. What a layer allocates hardly depends
// on the processor: there each fourth allocation fails, beginning with another one in each case.
#ifdef QUOLL_EMULATED_CPU
constexpr int kStep = 4;
#else
constexpr int kStep = 1;
#endif

// Every allocation of one forward in turn.
void fail_each_allocation(const Layer& layer, const PreparedCase& p, int pack,
                          const std::vector<Mat>& want) {
    const std::vector<Mat> inputs = packed(p.inputs, pack);
    for (int k = 0;; k++) {
        SCOPED_TRACE("allocation " + std::to_string(k) + ", elempack " + std::to_string(pack));
        ASSERT_LT(k, 10000);
        FailingAllocator allocator(k, SIZE_MAX);
        Option opt;
        opt.num_threads = k & 1 ? 2 : 1;
        opt.blob_allocator = opt.workspace_allocator = &allocator;
        std::vector<Mat> got;
        const int status = run_status(layer, inputs, &got, opt, false);
        ASSERT_LE(status, 0);
        ASSERT_TRUE(allocator.failed() || status == 0);
        if (status == 0) {
            ASSERT_EQ(want.size(), got.size());
            for (size_t i = 0; i < got.size(); i++)
                ASSERT_TRUE(nearly_equal(got[i], want[i], p.tolerance));
        }
        if (!allocator.failed()) return;
    }
}

void run_odd(const Layer& layer, const std::vector<Mat>& inputs) {
    SCOPED_TRACE([&] {
        std::string text = "inputs";
        for (const Shape& s : logical_shapes(inputs))
            text += " [" + shape_text(s) + " " + dtype_name(s.dtype) + "]";
        return text;
    }());
    FailingAllocator allocator(-1, kMostBytes);
    Option opt;
    opt.num_threads = 1;
    opt.blob_allocator = opt.workspace_allocator = &allocator;
    std::vector<Shape> inferred;
    const int inferable = layer.infer_shapes(logical_shapes(inputs), inferred);
    EXPECT_LE(inferable, 0);
    std::vector<Mat> got;
    const int status = run_status(layer, inputs, &got, opt, false);
    EXPECT_LE(status, 0);
    if (status != 0) return;
    EXPECT_EQ(0, inferable) << "infer_shapes refuses what forward takes";
    if (inferable == 0) {
        EXPECT_TRUE(shapes_hold(inferred, got));
    }
}

// A case as a net, with all that takes memory to write down.
struct NetOfCase {
    std::string text;
    std::vector<unsigned> words;
    std::vector<std::string> inputs, outputs;

    NetOfCase(const char* type, const LayerCase& c, const PreparedCase& p)
        : text(net_text(type, c)), words(weight_words(p)) {
        for (size_t i = 0; i < c.inputs.size(); i++) inputs.push_back("in" + std::to_string(i));
        for (int i = 0; i < c.output_count; i++) outputs.push_back("out" + std::to_string(i));
    }
    // Weights come as a file has them, from a reader that copies.
    int load(Net* net) const {
        QUOLL_RETURN_IF_ERROR(net->load_param_mem(text.c_str()));
        const unsigned char* weights = (const unsigned char*)words.data();
        return net->load_model(CopyingReader(weights, words.size() * 4));
    }
    int run(const Net& net, const PreparedCase& p, std::vector<Mat>* got) const {
        Extractor ex = net.create_extractor();
        for (size_t i = 0; i < inputs.size(); i++)
            if (p.inputs[i].dims != 0)
                QUOLL_RETURN_IF_ERROR(ex.input(inputs[i].c_str(), p.inputs[i]));
        for (size_t i = 0; i < outputs.size(); i++)
            QUOLL_RETURN_IF_ERROR(ex.extract(outputs[i].c_str(), (*got)[i]));
        return kOk;
    }
};

void expect_near(const std::vector<Mat>& got, const std::vector<Mat>& want, const PreparedCase& p) {
    for (size_t i = 0; i < got.size(); i++) ASSERT_TRUE(nearly_equal(got[i], want[i], p.tolerance));
}

// Every allocation of a layer's life in a Net in turn, small ones too, from reading its params on.
// A failure must end in a negative code, or the result must be right without that memory; either
// way the Net goes on: it runs when it is loaded, or loads.
void fail_each_malloc(const char* type, const LayerCase& c, const PreparedCase& p, bool reference,
                      const std::vector<Mat>& want, int first) {
    const NetOfCase model(type, c, p);
    for (int k = first % kStep;; k += kStep) {
        SCOPED_TRACE("allocation " + std::to_string(k) + " from params to outputs" +
                     (reference ? ", reference" : ", fast"));
        ASSERT_LT(k, 10000);
        std::vector<Mat> got(model.outputs.size());
        Net net;
        net.opt.num_threads = 1;
        net.opt.use_reference_layers = reference;
        const FailingHeap heap(k);
        const int loaded = model.load(&net);
        const int status = loaded ? loaded : model.run(net, p, &got);
        const bool failed = heap.failed();
        heap.mend();
        ASSERT_LE(status, 0);
        ASSERT_TRUE(failed || status == 0);
        if (status == 0) expect_near(got, want, p);
        if (!failed) return;
        if (loaded != 0) {
            ASSERT_TRUE(net.layers().empty());
            ASSERT_EQ(kOk, model.load(&net));
            // Nothing of the failure is left; reference layers, which take long, show it now and
            // then.
            if (reference && k % 8 != 0) continue;
        }
        ASSERT_EQ(kOk, model.run(net, p, &got));
        expect_near(got, want, p);
        if (testing::Test::HasFatalFailure()) return;
    }
}

Mat filled(const Shape& shape) {
    Mat m(shape);
    if (shape.dtype == DType::f32) m.fill(0.5f);
    if (shape.dtype == DType::s32) m.fill(1);
    if (shape.dtype == DType::s8 || shape.dtype == DType::u8) m.fill<signed char>(1);
    return m;
}

// Shapes near to `shape` and far from it.
std::vector<Shape> odd_shapes(const Shape& shape) {
    std::vector<Shape> odd = {Shape(1),          Shape(2),       Shape(2, 3),    Shape(1, 1),
                              Shape(2, 3, 4),    Shape(1, 1, 1), Shape(3, 1, 2), Shape(2, 3, 1, 4),
                              Shape(1, 1, 1, 1), Shape(16, 16)};
    for (int axis = 0; axis < shape.dims; axis++) {
        for (int change : {-1, 1}) {
            Shape s = shape;
            s.set_size(axis, s.size(axis) + change);
            if (s.size(axis) > 0) odd.push_back(s);
        }
        Shape s = shape;
        s.set_size(axis, 1);
        odd.push_back(s);
    }
    for (DType dtype : {DType::f32, DType::s32, DType::s8}) {
        Shape s = shape;
        s.dtype = dtype;
        odd.push_back(s);
    }
    return odd;
}

}  // namespace

void check_allocation_failure(const char* type, const std::vector<LayerCase>& cases) {
    const Silence silence;
    for (size_t i = 0; i < cases.size(); i++) {
        PreparedCase p;
        if (!prepare(type, cases[i], i, &p)) continue;
        SCOPED_TRACE(p.text);
        const LayerPtr reference = make_case_layer(type, cases[i], p, true);
        const std::vector<Mat> want = run_layer(*reference, p.inputs);
        const LayerPtr fast = make_case_layer(type, cases[i], p, false);
        ASSERT_TRUE(fast != nullptr);
        for (const bool is_reference : forms_tested()) {
            fail_each_allocation(is_reference ? *reference : *fast, p, 1, want);
            fail_each_malloc(type, cases[i], p, is_reference, want, (int)i);
        }
        if (fast->support_packing) fail_each_allocation(*fast, p, 16, want);
        for (int k = 0, failed = 1; failed; k++) {  // while the layer is being made
            FailingAllocator allocator(k, SIZE_MAX);
            Option opt;
            opt.blob_allocator = opt.workspace_allocator = &allocator;
            LayerPtr layer = make_case_layer(type, cases[i], p, false, opt);
            failed = allocator.failed();
            ASSERT_TRUE(failed || layer);
            layer.reset();  // before its allocator
        }
        if (testing::Test::HasFatalFailure()) return;
    }
}

void check_odd_inputs(const char* type, const std::vector<LayerCase>& cases) {
    const Silence silence;
    for (size_t i = 0; i < cases.size(); i++) {
        PreparedCase p;
        if (!prepare(type, cases[i], i, &p)) continue;
        SCOPED_TRACE(p.text);
        for (const bool reference : forms_tested()) {
            const LayerPtr layer = make_case_layer(type, cases[i], p, reference);
            ASSERT_TRUE(layer != nullptr);
            for (size_t j = 0; j < p.inputs.size(); j++) {
                for (const Shape& odd : odd_shapes(cases[i].inputs[j])) {
                    std::vector<Mat> inputs = p.inputs;
                    inputs[j] = filled(odd);
                    run_odd(*layer, inputs);
                }
            }
            std::vector<Mat> fewer = p.inputs, more = p.inputs;
            if (!fewer.empty()) fewer.pop_back();
            more.push_back(filled(Shape(2, 3, 4)));
            run_odd(*layer, fewer);
            run_odd(*layer, more);
        }
    }
}

void check_odd_params(const char* type, const std::vector<LayerCase>& cases) {
    const Silence silence;
    for (size_t i = 0; i < std::min(cases.size(), kOddParamCases); i++) {
        PreparedCase p;
        if (!prepare(type, cases[i], i, &p)) continue;
        SCOPED_TRACE(p.text);
        for (const bool reference : forms_tested()) {
            const LayerPtr model = make_case_layer(type, cases[i], p, reference);
            ASSERT_TRUE(model != nullptr);
            ParamDict base;
            const unsigned char* text = (const unsigned char*)cases[i].params.c_str();
            base.load_param(DataReaderFromMemory(text, cases[i].params.size()));
            OddParams odd(base);
            model->visit_params(odd);
            for (const ParamDict& pd : odd.variants) {
                const LayerPtr layer(reference ? create_layer_reference(type) : create_layer(type));
                layer->bottoms = model->bottoms;
                layer->tops = model->tops;
                if (layer->load_param(pd) != 0) continue;
                SCOPED_TRACE("params" + params_to_text(*layer));
                FailingAllocator allocator(-1, kMostBytes);
                Option opt;
                opt.blob_allocator = opt.workspace_allocator = &allocator;
                if (layer->load_model(AnyWeights()) != 0 || layer->create_pipeline(opt) != 0)
                    continue;
                run_odd(*layer, p.inputs);
            }
        }
    }
}

}  // namespace quoll
