// What makes "an operator is defined once" work. An operator is a class with three static members:
//
//   class PReLU : public Operator<PReLU> {
//   public:
//       static void params(PReLU& s, ParamVisitor& v) {
//           v(0, "num_slope", s.num_slope, 0, "slopes: 1, or one per channel", at_least(1));
//       }
//       static void weights(PReLU& s, WeightVisitor& v) {
//           v(true, "slope_data", s.slope_data, s.num_slope, WeightKind::kRaw, "[num_slope]");
//       }
//       static int shape(const PReLU& s, const std::vector<Shape>& in, std::vector<Shape>& out);
//       int forward_inplace(Mat& blob, const Option& opt) const override;   // scalar reference
//       int num_slope;
//       Mat slope_data;
//   };
//
// Loading from text and binary, saving, range checks, the docs table, converters' checks, random
// cases and truncated-file fuzzing all follow from these three. Lines are evaluated in order, so a
// default (or a count) may be an earlier parameter.
//
// Other properties of an operator, which do not depend on what runs it (that it only moves values,
// which activation it is, how many multiplications it has), are given by overriding the virtuals of
// traits.h.
#ifndef QUOLL_LAYER_SCHEMA_H
#define QUOLL_LAYER_SCHEMA_H

#include <stdint.h>

#include <string>
#include <vector>

#include "layer/common/traits.h"
#include "quoll/platform.h"
#include "runtime/parts.h"

namespace quoll {

// The values a number may take, ends included.
struct Range {
    double low, high;
};
inline Range any_value() { return Range{-1e300, 1e300}; }
inline Range at_least(double low) { return Range{low, 1e300}; }
inline Range between(double low, double high) { return Range{low, high}; }

// Descriptions, which programs print; a library without texts has none.
#if QUOLL_STRING
typedef const char* Doc;
#else
struct Doc {
    Doc(const char*) {}
};
#endif

// Called once for each parameter: id in the param file, field name, field, default, description for
// the docs.
class ParamVisitor {
public:
    virtual ~ParamVisitor() {}
    virtual void operator()(int id, const char* name, int& field, int def, Doc doc,
                            Range range = any_value()) = 0;
    virtual void operator()(int id, const char* name, float& field, float def, Doc doc,
                            Range range = any_value()) = 0;
    // An array; ints come as dtype s32, floats as f32. Absent: an empty Mat.
    virtual void ints(int id, const char* name, Mat& field, Doc doc, Range range = any_value()) = 0;
    virtual void floats(int id, const char* name, Mat& field, Doc doc,
                        Range range = any_value()) = 0;
    virtual void operator()(int id, const char* name, std::string& field, const char* def,
                            Doc doc) = 0;
};

enum class WeightKind {
    kTagged,  // a 4-byte tag tells f32, f16, int8 or table (ModelBin type 0)
    kRaw,     // f32 without tag (type 1)
    kInt8,    // int8 without tag (type 3)
};
inline int model_bin_type(WeightKind kind) {
    return kind == WeightKind::kTagged ? 0 : kind == WeightKind::kRaw ? 1 : 3;
}

// The size of a weight in scalars; one int64_t stands for a 1-D weight.
struct WeightSize {
    int64_t w, h, d, c;
    int dims;
    WeightSize(int64_t w) : w(w), h(1), d(1), c(1), dims(1) {}
    WeightSize(int dims, int64_t w, int64_t h, int64_t d, int64_t c)
        : w(w), h(h), d(d), c(c), dims(dims) {}
};

// Called once for each weight in file order; a weight whose condition is false is not in the file.
class WeightVisitor {
public:
    virtual ~WeightVisitor() {}
    virtual void operator()(bool present, const char* name, Mat& field, WeightSize size,
                            WeightKind kind, Doc doc) = 0;
};

// Load an operator through its schema; both log and return a negative code on bad values.
int load_params_by_schema(Layer& layer, const ParamDict& pd);
int load_weights_by_schema(Layer& layer, const ModelBin& mb);
// The parameters that differ from their default. params_of: those of the layer. canonical_params:
// those of `pd`, with the types that the schema gives, and those that the schema does not know; it
// does not check ranges (load_params_by_schema does) and leaves the values in the layer's fields.
ParamDict params_of(Layer& layer);
ParamDict canonical_params(Layer& layer, const ParamDict& pd);
// True if the schema has a parameter of this id.
bool schema_knows(Layer& layer, int id);
// params_of as " id=value ..." text.
std::string params_to_text(Layer& layer);
// The number of scalars of a weight; an error, with a message, if the size is invalid.
int weight_count(const Layer& layer, const char* name, const WeightSize& size, int* count);

// The number of outputs for which a shape rule is called: those of the graph; for a layer in no
// Net, as many as `out` has on entry, at least 1.
inline size_t output_count(const Layer& layer, const std::vector<Shape>& out) {
    return !layer.tops.empty() ? layer.tops.size() : out.empty() ? 1 : out.size();
}
// Creates top_blobs[i] with infer_shapes' sizes (elempack 1). For reference forwards.
int create_tops(const Layer& layer, const std::vector<Mat>& bottom_blobs,
                std::vector<Mat>& top_blobs, const Option& opt);

// An error, with a message, if an input is empty that may not be (see Layer::support_absent_inputs
// and support_zero_size), or if one is larger than any memory, so that shape rules can multiply
// sizes.
int check_input_sizes(const Layer& layer, const std::vector<Shape>& bottoms);

// Base of every built-in operator. T's constructor sets one_blob_only, support_inplace and similar
// flags.
template <class T>
class Operator : public Layer {
public:
    typedef T Class;
    bool is_a(const void* id) const override { return id == class_id<T>(); }
    int load_param(const ParamDict& pd) override { return load_params_by_schema(*this, pd); }
    int load_model(const ModelBin& mb) override { return load_weights_by_schema(*this, mb); }
    void visit_params(ParamVisitor& v) override { T::params(static_cast<T&>(*this), v); }
    void visit_weights(WeightVisitor& v) override { T::weights(static_cast<T&>(*this), v); }
    // shape() never gets impossible sizes. It may get axes of size 0, but not while the operator's
    // own forward runs, unless that supports them.
    int infer_shapes(const std::vector<Shape>& bottoms, std::vector<Shape>& tops) const override {
        QUOLL_RETURN_IF_ERROR(check_input_sizes(*this, bottoms));
        return T::shape(static_cast<const T&>(*this), bottoms, tops);
    }
    int infer_empty_shapes(const std::vector<Shape>& bottoms,
                           std::vector<Shape>& tops) const override {
        return T::shape(static_cast<const T&>(*this), bottoms, tops);
    }
};

// True for f32, and for the storage types that the layer takes itself; its outputs then have the
// same dtype.
inline bool accepts_float(const Layer& layer, DType dtype) {
    return dtype == DType::f32 ||
           (kHasHalfStorage && ((dtype == DType::f16 && layer.support_fp16_storage) ||
                                (dtype == DType::bf16 && layer.support_bf16_storage)));
}
// Values of one item of a batch.
inline size_t item_total(const Shape& s) { return (size_t)s.w * s.h * s.d * s.c; }
// A shape rule for operators whose outputs are like their inputs.
int same_shapes(const Layer& layer, const std::vector<Shape>& in, std::vector<Shape>& out);
std::vector<Shape> shapes_of(const std::vector<Mat>& blobs);
// "w x h x c" for messages.
std::string shape_text(const Shape& shape);

}  // namespace quoll

// In <op>.cpp: the creator that layer/layer_list.inc refers to.
#define QUOLL_DEFINE_LAYER(name) \
    Layer* create_##name##_layer() { return new name; }

#endif
