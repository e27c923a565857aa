#include "layer/common/schema.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "quoll/datawriter.h"
#include "quoll/log.h"

namespace quoll {

namespace {

class LoadParams : public ParamVisitor {
public:
    LoadParams(const Layer& layer, const ParamDict& pd) : layer_(layer), pd_(pd) {}
    int status = kOk;

    void operator()(int id, const char* name, int& field, int def, Doc, Range range) override {
        const ParamDict::Type type = pd_.type(id);
        field = pd_.get(id, def);
        used_ |= 1u << id;
        if (type == ParamDict::kFloat && (float)field != pd_.get(id, 0.f))
            refuse("%s (%d): expected an integer, got %g", name, id, pd_.get(id, 0.f));
        expect_single(id, name, type);
        check(id, name, field, range);
    }
    void operator()(int id, const char* name, float& field, float def, Doc, Range range) override {
        field = pd_.get(id, def);
        used_ |= 1u << id;
        expect_single(id, name, pd_.type(id));
        if (range.low > -1e300 || range.high < 1e300) check(id, name, field, range);
    }
    void ints(int id, const char* name, Mat& field, Doc, Range range) override {
        expect_array(id, name);
        field = pd_.get_ints(id, Mat());
        expect_converted(id, name, field);
        for (int i = 0; i < field.w; i++) check(id, name, ((const int*)field.data)[i], range);
    }
    void floats(int id, const char* name, Mat& field, Doc, Range range) override {
        expect_array(id, name);
        field = pd_.get_floats(id, Mat());
        expect_converted(id, name, field);
        if (range.low <= -1e300 && range.high >= 1e300) return;
        for (int i = 0; i < field.w; i++) check(id, name, ((const float*)field.data)[i], range);
    }
    void operator()(int id, const char* name, std::string& field, const char* def, Doc) override {
        field = pd_.get(id, std::string(def));
        used_ |= 1u << id;
        const ParamDict::Type type = pd_.type(id);
        if (type != ParamDict::kNone && type != ParamDict::kString)
            refuse("%s (%d): expected a string", name, id);
    }

    // Parameters that the operator does not have: the file is newer, or has a mistake.
    void report_unknown() const {
        // 30 and 31 are shape hints and feature masks of any layer.
        for (int id = 0; id < 30; id++)
            if (pd_.type(id) != ParamDict::kNone && !(used_ >> id & 1))
                QUOLL_LOGW("[%s %s] parameter %d is not known and has no effect",
                           layer_.type.c_str(), layer_.name.c_str(), id);
    }

private:
    template <class... Args>
    void refuse(const char* format, Args... args) {
        char text[256];
        snprintf(text, sizeof(text), format, args...);
        status = layer_.fail("%s", text);
    }
    void expect_single(int id, const char* name, ParamDict::Type type) {
        if (type >= ParamDict::kNumberArray)
            refuse("%s (%d): expected one number, got %s", name, id,
                   type == ParamDict::kString ? "a string" : "an array");
    }
    void expect_array(int id, const char* name) {
        used_ |= 1u << id;
        const ParamDict::Type type = pd_.type(id);
        if (type != ParamDict::kNone &&
            (type < ParamDict::kNumberArray || type == ParamDict::kString))
            refuse("%s (%d): expected an array", name, id);
    }
    // Ints and floats are converted into a Mat of their own.
    void expect_converted(int id, const char* name, const Mat& field) {
        if (!field.empty() || pd_.get(id, Mat()).empty()) return;
        refuse("%s (%d): out of memory for its values", name, id);
        status = kOutOfMemory;
    }
    void check(int id, const char* name, double value, Range range) {
        if (value >= range.low && value <= range.high) return;
        if (range.high >= 1e300)
            refuse("%s (%d): expected at least %g, got %g", name, id, range.low, value);
        else
            refuse("%s (%d): expected %g to %g, got %g", name, id, range.low, range.high, value);
    }

    const Layer& layer_;
    const ParamDict& pd_;
    unsigned used_ = 0;
};

class LoadWeights : public WeightVisitor {
public:
    LoadWeights(const Layer& layer, const ModelBin& mb) : layer_(layer), mb_(mb) {}
    int status = kOk;

    void operator()(bool present, const char* name, Mat& field, WeightSize size, WeightKind kind,
                    Doc) override {
        field = Mat();
        if (!present || status != kOk) return;
        int count = 0;
        status = weight_count(layer_, name, size, &count);
        if (status != kOk) return;
        field = mb_.load(count, model_bin_type(kind));
        if (field.empty()) {
            status = layer_.fail("%s: needs %d values, the weights end or memory runs out before",
                                 name, count);
            return;
        }
        if (size.dims == 2) field = field.reshape((int)size.w, (int)size.h);
        if (size.dims == 3) field = field.reshape((int)size.w, (int)size.h, (int)size.c);
        if (size.dims == 4)
            field = field.reshape((int)size.w, (int)size.h, (int)size.d, (int)size.c);
        if (field.empty()) status = kOutOfMemory;
    }

private:
    const Layer& layer_;
    const ModelBin& mb_;
};

// Collects the parameters that differ from their default. With a ParamDict, the fields get its
// values first, so that defaults which refer to them are right.
class CollectParams : public ParamVisitor {
public:
    explicit CollectParams(const ParamDict* from) : from_(from) {}
    ParamDict params;

    void operator()(int id, const char*, int& field, int def, Doc, Range) override {
        if (take(id)) field = from_->get(id, def);
        if (field != def) params.set(id, field);
    }
    void operator()(int id, const char*, float& field, float def, Doc, Range) override {
        if (take(id)) field = from_->get(id, def);
        if (memcmp(&field, &def, sizeof(float)) != 0) params.set(id, field);
    }
    void ints(int id, const char*, Mat& field, Doc, Range) override {
        if (take(id)) field = from_->get_ints(id, Mat());
        set_array(id, field);
    }
    void floats(int id, const char*, Mat& field, Doc, Range) override {
        if (take(id)) field = from_->get_floats(id, Mat());
        set_array(id, field);
    }
    void operator()(int id, const char*, std::string& field, const char* def, Doc) override {
        if (take(id)) field = from_->get(id, std::string(def));
        if (field != def) params.set(id, field);
    }

    // Those that the operator does not know stay as they are.
    void keep_unknown() {
        for (int id = 0; id <= kMaxParamId; id++)
            if (!knows(id)) params.copy(id, *from_);
    }
    bool knows(int id) const { return known_ >> id & 1; }

private:
    void set_array(int id, const Mat& field) {
        if (!field.empty())
            params.set(id, field);
        else if (from_)
            keep_unconverted(id);
    }
    // If memory runs out, the values stay as they are. An empty array is the default.
    void keep_unconverted(int id) {
        if (!from_->get(id, Mat()).empty()) params.copy(id, *from_);
    }
    bool take(int id) {
        known_ |= 1u << id;
        return from_ != nullptr;
    }
    const ParamDict* from_;
    unsigned known_ = 0;
};

}  // namespace

int load_params_by_schema(Layer& layer, const ParamDict& pd) {
    LoadParams load(layer, pd);
    layer.visit_params(load);
    if (load.status == kOk) load.report_unknown();
    return load.status;
}

int load_weights_by_schema(Layer& layer, const ModelBin& mb) {
    LoadWeights load(layer, mb);
    layer.visit_weights(load);
    return load.status;
}

ParamDict params_of(Layer& layer) {
    CollectParams collect(nullptr);
    layer.visit_params(collect);
    return collect.params;
}

ParamDict canonical_params(Layer& layer, const ParamDict& pd) {
    CollectParams collect(&pd);
    layer.visit_params(collect);
    collect.keep_unknown();
    return collect.params;
}

bool schema_knows(Layer& layer, int id) {
    CollectParams collect(nullptr);
    layer.visit_params(collect);
    return collect.knows(id);
}

std::string params_to_text(Layer& layer) {
    std::vector<unsigned char> text;
    params_of(layer).save_param(DataWriterToMemory(&text));
    return std::string(text.begin(), text.end());
}

int weight_count(const Layer& layer, const char* name, const WeightSize& size, int* count) {
    const double total = (double)size.w * size.h * size.d * size.c;
    if (size.w <= 0 || size.h <= 0 || size.d <= 0 || size.c <= 0 || total > INT_MAX)
        return layer.fail("%s: cannot have %.0f values", name, total);
    *count = (int)total;
    return kOk;
}

int create_tops(const Layer& layer, const std::vector<Mat>& bottom_blobs,
                std::vector<Mat>& top_blobs, const Option& opt) {
    std::vector<Shape> in = shapes_of(bottom_blobs), out(top_blobs.size());
    QUOLL_RETURN_IF_ERROR(layer.infer_shapes(in, out));
    top_blobs.resize(out.size());
    for (size_t i = 0; i < out.size(); i++) {
        if (out[i].total() == 0)
            return layer.fail("output %zu would be empty: %s", i, shape_text(out[i]).c_str());
        top_blobs[i].create(out[i], 1, opt.blob_allocator);
        if (top_blobs[i].empty()) return kOutOfMemory;
    }
    return kOk;
}

int check_input_sizes(const Layer& layer, const std::vector<Shape>& bottoms) {
    for (size_t i = 0; i < bottoms.size(); i++) {
        const Shape& s = bottoms[i];
        const bool allowed = s.dims == 0 ? layer.support_absent_inputs : layer.support_zero_size;
        if (s.total() == 0 && !allowed)
            return layer.fail("input %zu is empty: %s", i, shape_text(s).c_str());
        if ((double)s.w * s.h * s.d * s.c * s.n > (double)(INT64_MAX / 64))
            return layer.fail("input %zu is too large: %s", i, shape_text(s).c_str());
    }
    return kOk;
}

int same_shapes(const Layer&, const std::vector<Shape>& in, std::vector<Shape>& out) {
    out = in;
    return kOk;
}

std::vector<Shape> shapes_of(const std::vector<Mat>& blobs) {
    std::vector<Shape> shapes(blobs.size());
    for (size_t i = 0; i < blobs.size(); i++) shapes[i] = blobs[i].logical_shape();
    return shapes;
}

std::string shape_text(const Shape& s) {
    std::string text = s.dims == 0 ? "none" : std::to_string(s.w);
    if (s.dims >= 2) text += " x " + std::to_string(s.h);
    if (s.dims >= 4) text += " x " + std::to_string(s.d);
    if (s.dims >= 3) text += " x " + std::to_string(s.c);
    if (s.n > 1) text += " (n " + std::to_string(s.n) + ")";
    return text;
}

}  // namespace quoll
