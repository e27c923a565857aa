// From Caffe's layers to a Model.
#ifndef QUOLL_TOOLS_CAFFE_CONVERTER_H
#define QUOLL_TOOLS_CAFFE_CONVERTER_H

#include <map>
#include <set>
#include <string>
#include <vector>

#include "caffe/net_file.h"
#include "graph/model.h"

namespace quoll {

// The engine's limit for all numbers of a window.
const int kMostPositions = 1 << 24;

// A name as a .param can hold it: without spaces.
std::string caffe_name(const std::string& name);

// One layer on its way. Blobs are (batch, ...) in Caffe and (...) here: axis k becomes axis k - 1.
// The first failure is kept; what comes after it does nothing.
class CaffeLayer {
public:
    CaffeLayer(const caffe::LayerParameter& param, const CaffeBlobs& blobs, Model* model,
               std::map<std::string, Shape>* shapes)
        : p(param), model_(model), shapes_(shapes), blobs_(blobs) {}

    const caffe::LayerParameter& p;
    std::vector<std::string> in, out;  // names in the Model
    std::string error;                 // why it cannot be converted
    std::vector<std::string> notes;

    void fail(const std::string& why) {
        if (error.empty()) error = why;
    }
    // The size of an input, dims 0 when it is not known; n is the number of items in Caffe's net.
    Shape shape(size_t input) const { return shape(input < in.size() ? in[input] : ""); }
    Shape shape(const std::string& blob) const;
    void set_shape(const std::string& blob, const Shape& shape) { (*shapes_)[blob] = shape; }
    // Axis k of Caffe, which may be negative, of a blob with `dims` axes (unknown: 0) as an axis of
    // the engine that is not negative where dims is known. Fails on the batch axis, unless
    // unpack_batch() was called.
    int axis(int caffe_axis, int dims);
    // Is it the batch, as far as is known?
    bool is_batch(int caffe_axis) const {
        return caffe_axis == 0 || (shape(0).dims > 0 && caffe_axis == -shape(0).dims - 1);
    }
    // For what mixes the items: turns the batch of all inputs into an axis, so that axes have
    // Caffe's numbers, and the first axis of the outputs back into the batch.
    void unpack_batch();
    // The type of the layer that makes an input, "" if it is an input of the net.
    std::string maker(size_t input) const;
    bool has_blob(int i) const { return i < blobs_.size(); }
    int blobs_read() const { return read_; }
    // Its sizes in the file; one of all values if it does not say.
    std::vector<int64_t> blob_shape(int i) const;
    // Weight i as a 1-D array; fails when it is missing, empty or not of `count` values (if given).
    Mat blob(int i, size_t count = 0);

    // A constant; sizes count from the outermost axis.
    std::string constant(const std::string& suffix, const std::vector<int>& sizes, const Mat& data);
    // A layer that reads `in` and makes `out`. Its name is that of the Caffe layer, and `suffix`.
    ModelLayer& emit(const std::string& type) { return emit(type, in, out, ""); }
    ModelLayer& emit(const std::string& type, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const std::string& suffix);
    // The name of a blob between two layers made from this one.
    std::string between(const std::string& suffix) const { return out[0] + "__" + suffix; }
    // Works out the shapes of what was emitted since the last call.
    void infer();
    // To be called when all is emitted.
    void finish();

private:
    Model* model_;
    std::map<std::string, Shape>* shapes_;
    const CaffeBlobs& blobs_;
    int read_ = 0;  // of the blobs
    size_t inferred_ = (size_t)-1;
    std::vector<std::string> packed_;  // the outputs' names, if the batch was unpacked
};

// Sets w, h, d, c from sizes counted from the outermost axis.
void set_sizes(CaffeLayer& l, ModelLayer& m, const std::vector<int64_t>& sizes);
// A Reshape of `from`; sizes as above, -1 for what is left.
void emit_reshape(CaffeLayer& l, const std::string& from, const std::string& to,
                  const std::string& suffix, const std::vector<int64_t>& sizes);
Mat filled(int count, float value);

typedef void (*CaffeMapper)(CaffeLayer& layer);

// The function that converts a type, null if there is none. Each table is in a map_*.cpp.
CaffeMapper find_caffe_mapper(const std::string& type);
CaffeMapper find_window_mapper(const std::string& type);
CaffeMapper find_elementwise_mapper(const std::string& type);
CaffeMapper find_affine_mapper(const std::string& type);
CaffeMapper find_recurrent_mapper(const std::string& type);
CaffeMapper find_shape_mapper(const std::string& type);
CaffeMapper find_detection_mapper(const std::string& type);

template <size_t N>
CaffeMapper find_in(const std::pair<const char*, CaffeMapper> (&table)[N],
                    const std::string& type) {
    for (const auto& entry : table)
        if (type == entry.first) return entry.second;
    return nullptr;
}

struct CaffeReport {
    std::vector<std::string> notes;   // layers left out, details that differ
    std::vector<std::string> errors;  // one per layer; the Model is of no use then
};

// Converts a net that read_prototxt made.
void convert_caffe(const caffe::NetParameter& net, const CaffeWeights& weights, Model* model,
                   CaffeReport* report);

}  // namespace quoll

#endif
