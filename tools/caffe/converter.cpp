#include "caffe/converter.h"

#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "common/progress.h"
#include "layer/control/input.h"
#include "layer/tensor/tensorshape.h"

namespace quoll {

Shape CaffeLayer::shape(const std::string& blob) const {
    const auto it = shapes_->find(blob);
    return it == shapes_->end() ? Shape() : it->second;
}

int CaffeLayer::axis(int caffe_axis, int dims) {
    const int batch = packed_.empty() ? 1 : 0;
    const int a = caffe_axis >= batch ? caffe_axis - batch
                  : dims > 0          ? caffe_axis + dims
                                      : caffe_axis;
    if ((batch && caffe_axis == 0) || (dims > 0 && (a < 0 || a >= dims)))
        fail("axis " + std::to_string(caffe_axis) + ": expected one behind the batch, of " +
             std::to_string(dims + 1));
    return a;
}

std::string CaffeLayer::maker(size_t input) const {
    const int index = input < in.size() ? model_->producer(in[input]) : -1;
    return index < 0 || model_->layers[index].is<Input>() ? "" : model_->layers[index].type;
}

void CaffeLayer::unpack_batch() {
    for (size_t i = 0; i < in.size(); i++) {
        const std::string suffix = "unpack" + std::to_string(i);
        emit("BatchAxis", {in[i]}, {between(suffix)}, "_" + suffix).set("inverse", 1);
        in[i] = between(suffix);
    }
    packed_ = out;
    for (std::string& blob : out) blob += "__unpacked";
    infer();
}

void CaffeLayer::finish() {
    for (size_t i = 0; i < packed_.size(); i++)
        emit("BatchAxis", {out[i]}, {packed_[i]}, "_pack" + std::to_string(i));
    infer();
}

std::string CaffeLayer::constant(const std::string& suffix, const std::vector<int>& sizes,
                                 const Mat& data) {
    ModelLayer& m = emit("MemoryData", {}, {between(suffix)}, "_" + suffix);
    set_sizes(*this, m, std::vector<int64_t>(sizes.begin(), sizes.end()));
    m.set_weight("data", data);
    return m.outputs[0];
}

Mat filled(int count, float value) {
    Mat m(count);
    m.fill(value);
    return m;
}

namespace {

// Bytes of a value in raw_data, NVIDIA's form of a blob: doubles, floats or half floats. 0: others.
size_t raw_size(const caffe::BlobProto& b) {
    const int type = b.has_raw_data() ? b.raw_data_type() : -1;
    return type == 0 ? 8 : type == 1 ? 4 : type == 2 ? 2 : 0;
}

size_t value_count(const caffe::BlobProto& b) {
    if (b.data_size() || b.double_data_size()) return std::max(b.data_size(), b.double_data_size());
    return raw_size(b) ? b.raw_data().size() / raw_size(b) : 0;
}

template <class T>
T raw_value(const caffe::BlobProto& b, size_t k) {
    T value;
    memcpy(&value, b.raw_data().data() + k * sizeof(T), sizeof(T));
    return value;
}

float value_of(const caffe::BlobProto& b, size_t k) {
    if (b.data_size()) return b.data((int)k);
    if (b.double_data_size()) return (float)b.double_data((int)k);
    return raw_size(b) == 8   ? (float)raw_value<double>(b, k)
           : raw_size(b) == 4 ? raw_value<float>(b, k)
                              : float16_to_float32(raw_value<uint16_t>(b, k));
}

}  // namespace

std::vector<int64_t> CaffeLayer::blob_shape(int i) const {
    if (!has_blob(i)) return {};
    const caffe::BlobProto& b = blobs_[i];
    if (b.has_shape()) return {b.shape().dim().begin(), b.shape().dim().end()};
    if (b.has_num()) return {b.num(), b.channels(), b.height(), b.width()};
    return {(int64_t)value_count(b)};
}

Mat CaffeLayer::blob(int i, size_t count) {
    read_ = std::max(read_, i + 1);
    if (!has_blob(i)) {
        fail(blobs_.empty() ? "there are no weights for it in the caffemodel"
                            : "weight " + std::to_string(i) + " is missing in the caffemodel");
        return Mat();
    }
    const caffe::BlobProto& b = blobs_[i];
    const size_t size = value_count(b);
    if (size == 0 || size > 0x7fffffff || (count && size != count)) {
        fail("weight " + std::to_string(i) + ": expected " +
             (count ? std::to_string(count) : std::string("some")) + " values, got " +
             std::to_string(size));
        return Mat();
    }
    Mat m((int)size);
    if (m.empty()) fail("out of memory");
    for (size_t k = 0; k < size && !m.empty(); k++) m[k] = value_of(b, k);
    return m;
}

std::string caffe_name(const std::string& name) {
    std::string word = name;
    for (char& ch : word)
        if ((unsigned char)ch <= ' ' || ch == 127) ch = '_';
    return word;
}

ModelLayer& CaffeLayer::emit(const std::string& type, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs, const std::string& suffix) {
    if (inferred_ == (size_t)-1) inferred_ = model_->layers.size();
    if (layer_to_index(type.c_str()) < 0) fail("this engine has no " + type);
    const std::string name = caffe_name(p.name().empty() ? out[0] : p.name());
    return model_->add(type, name + suffix, inputs, outputs);
}

void CaffeLayer::infer() {
    for (; error.empty() && inferred_ < model_->layers.size(); inferred_++) {
        const ModelLayer& layer = model_->layers[inferred_];
        const std::unique_ptr<Layer> op = layer.make_operator();
        if (!op) return fail("its parameters are refused (see above)");
        std::vector<Shape> tops, bottoms;
        bool known = true;
        int items = 1;
        for (const std::string& name : layer.inputs) {
            bottoms.push_back(shape(name));
            known &= bottoms.back().dims > 0;
            items = std::max(items, bottoms.back().n);
            // One item at a time, but for the layer whose matter the batch is.
            if (!layer.is<BatchAxis>()) bottoms.back().n = 1;
        }
        if (!known) continue;
        if (op->infer_shapes(bottoms, tops) != 0)
            return fail("its inputs or weights do not fit (see above)");
        for (size_t i = 0; i < layer.outputs.size() && i < tops.size(); i++) {
            if (!layer.is<BatchAxis>()) tops[i].n = items;
            if (tops[i].dims) (*shapes_)[layer.outputs[i]] = tops[i];
        }
    }
}

CaffeMapper find_caffe_mapper(const std::string& type) {
    for (const auto& find : {find_window_mapper, find_elementwise_mapper, find_affine_mapper,
                             find_shape_mapper, find_detection_mapper, find_recurrent_mapper})
        if (const CaffeMapper mapper = find(type)) return mapper;
    return nullptr;
}

namespace {

bool is_one_of(const std::string& type, const char* words) {
    return strstr(words, (" " + type + " ").c_str()) != nullptr;
}

// Layers that bring data in: what is read of theirs becomes inputs of the net.
bool is_data(const std::string& type) {
    return is_one_of(type,
                     " Data ImageData HDF5Data WindowData DummyData MemoryData AnnotatedData "
                     "VideoData DenseImageData ");
}

// Entry i of a field that has one for each output of a layer, or one for all.
template <class Repeated>
auto entry_of(const Repeated& field, int i) -> decltype(field.Get(0)) {
    return field.Get(i < field.size() ? i : 0);
}

// The size of an item of output i that a data layer states, dims 0 if it states none.
Shape data_shape(const caffe::LayerParameter& layer, int i) {
    const caffe::MemoryDataParameter& m = layer.memory_data_param();
    const caffe::DummyDataParameter& d = layer.dummy_data_param();
    std::vector<int64_t> s(3, 0);
    if (layer.type() == "MemoryData") {
        if (i == 0) s = {m.channels(), m.height(), m.width()};  // the labels' blob comes next
    } else if (d.shape_size() && entry_of(d.shape(), i).dim_size() == 4) {
        const auto& dims = entry_of(d.shape(), i).dim();
        s.assign(dims.begin() + 1, dims.end());
    } else if (d.channels_size() && d.height_size() && d.width_size()) {
        s = {entry_of(d.channels(), i), entry_of(d.height(), i), entry_of(d.width(), i)};
    }
    for (int64_t size : s)
        if (size < 1 || size > (1 << 24)) return Shape();
    return Shape((int)s[2], (int)s[1], (int)s[0]);
}

bool is_for_training(const std::string& type) {
    return is_one_of(type,
                     " SoftmaxWithLoss EuclideanLoss HingeLoss ContrastiveLoss InfogainLoss "
                     "MultinomialLogisticLoss SigmoidCrossEntropyLoss SmoothL1Loss MultiBoxLoss "
                     "Accuracy Silence HDF5Output DetectionEvaluate ");
}

class Conversion {
public:
    Conversion(const caffe::NetParameter& net, const CaffeWeights& weights, Model* model,
               CaffeReport* report)
        : net_(net), weights_(weights), model_(model), report_(report) {}

    void run() {
        count_versions();
        find_shared();
        Progress progress("convert", net_.layer_size());
        int done = 0;
        for (const caffe::LayerParameter& layer : net_.layer()) {
            progress.update(done++, layer.name());
            if (is_data(layer.type()))
                add_data(layer);
            else if (is_for_training(layer.type()))
                note(layer, "left out: it is for training");
            else
                add_layer(layer);
        }
        if (model_->layers.empty() && report_->errors.empty())
            report_->errors.push_back("no layers are left");
        if (report_->errors.empty()) insert_splits();
    }

private:
    void note(const caffe::LayerParameter& layer, const std::string& what) {
        report_->notes.push_back(layer.type() + " " + layer.name() + ": " + what);
    }
    void error(const caffe::LayerParameter& layer, const std::string& what) {
        report_->errors.push_back(layer.type() + " " + layer.name() + ": " + what);
    }
    bool is_read(const std::string& blob) const {
        for (const caffe::LayerParameter& layer : net_.layer())
            if (!is_for_training(layer.type()) &&
                std::count(layer.bottom().begin(), layer.bottom().end(), blob))
                return true;
        return false;
    }
    void count_versions() {
        for (const caffe::LayerParameter& layer : net_.layer())
            for (const std::string& top : layer.top()) {
                versions_[top]++;
                if (versions_[top] == 1 && (layer.type() == "Input" || is_data(layer.type())))
                    inputs_.insert(top);
                used_.insert(top);
            }
    }

    // A layer in place overwrites a blob: the last version has the blob's name, for that is what
    // Caffe has under it in the end, or the first, if it is an input of the net.
    std::string new_version(const std::string& top, const std::string& layer) {
        const int version = made_[top]++;
        const bool plain = inputs_.count(top) ? version == 0 : version + 1 == versions_[top];
        std::string name = caffe_name(plain ? top : top + "_" + layer);
        while (!plain && !used_.insert(name).second) name += "_";
        return current_[top] = name;
    }

    void add_data(const caffe::LayerParameter& layer) {
        for (int i = 0; i < layer.top_size(); i++) {
            const std::string& top = layer.top(i);
            if (!is_read(top)) continue;
            const std::string blob = new_version(top, layer.name());
            ModelLayer& input = model_->add("Input", caffe_name(top), {}, {blob});
            const Shape shape = data_shape(layer, i);
            if (shape.dims) {
                input.set("w", shape.w), input.set("h", shape.h), input.set("c", shape.c);
                shapes_[blob] = shape;
            }
            note(layer, "left out; '" + top + "' is an input of the net");
        }
    }

    // Blobs that have names (`param { name: "w" }`) are one for all layers that name them, and a
    // file may have them of one layer alone.
    void find_shared() {
        for (const caffe::LayerParameter& layer : net_.layer()) {
            const auto blobs = weights_.find(layer.name());
            if (blobs == weights_.end()) continue;
            for (int i = 0; i < std::min(layer.param_size(), blobs->second.size()); i++)
                if (!layer.param(i).name().empty())
                    shared_.emplace(layer.param(i).name(), &blobs->second[i]);
        }
    }
    CaffeBlobs shared_blobs(const caffe::LayerParameter& layer) const {
        CaffeBlobs blobs;
        for (const caffe::ParamSpec& spec : layer.param()) {
            const auto found = shared_.find(spec.name());
            if (found == shared_.end()) break;
            *blobs.Add() = *found->second;
        }
        return blobs;
    }

    void add_layer(const caffe::LayerParameter& param) {
        static const CaffeBlobs kNone;
        const auto blobs = weights_.find(param.name());
        const CaffeBlobs shared = blobs == weights_.end() ? shared_blobs(param) : kNone;
        CaffeLayer layer(param, blobs == weights_.end() ? shared : blobs->second, model_, &shapes_);
        for (const std::string& bottom : param.bottom()) {
            const auto it = current_.find(bottom);
            if (it == current_.end()) layer.fail("no layer makes its input '" + bottom + "'");
            layer.in.push_back(it == current_.end() ? bottom : it->second);
        }
        for (const std::string& top : param.top()) {
            const bool in_place = std::count(param.bottom().begin(), param.bottom().end(), top) > 0;
            if (made_[top] > 0 && !in_place)
                layer.fail("'" + top + "' is made by a layer before it");
            layer.out.push_back(new_version(top, param.name()));
        }
        const CaffeMapper mapper = find_caffe_mapper(param.type());
        if (!mapper) layer.fail("layers of this type are not supported");
        if (mapper && layer.out.empty()) layer.fail("it has no output");
        const bool source = param.type() == "Input" || param.type() == "Parameter";
        if (mapper && layer.in.empty() && !source) layer.fail("it has no input");
        if (layer.error.empty()) mapper(layer);
        layer.finish();
        if (!layer.error.empty()) error(param, layer.error);
        // Caffe would not take them: they are of another prototxt, or of a fork's form of the
        // layer.
        const int extra = blobs == weights_.end() ? 0 : blobs->second.size() - layer.blobs_read();
        if (layer.error.empty() && layer.blobs_read() > 0 && extra > 0)
            note(param, "the last " + std::to_string(extra) + " of its weights are not read");
        for (const std::string& text : layer.notes) note(param, text);
    }

    // Blobs that are read more than once go through a Split, as in ncnn's files.
    void insert_splits() {
        std::map<std::string, int> readers, next;
        for (const ModelLayer& layer : model_->layers)
            for (const std::string& blob : layer.inputs) readers[blob]++;
        const auto part = [](const std::string& blob, int i) {
            return blob + "_splitncnn_" + std::to_string(i);
        };
        Model split;
        int splits = 0;
        for (ModelLayer& layer : model_->layers) {
            for (std::string& blob : layer.inputs)
                if (readers[blob] > 1) blob = part(blob, next[blob]++);
            split.layers.push_back(layer);
            for (const std::string& blob : layer.outputs) {
                std::vector<std::string> parts;
                for (int i = 0; i < readers[blob]; i++) parts.push_back(part(blob, i));
                if (parts.size() > 1)
                    split.add("Split", "splitncnn_" + std::to_string(splits++), {blob}, parts);
            }
        }
        std::swap(model_->layers, split.layers);
    }

    const caffe::NetParameter& net_;
    const CaffeWeights& weights_;
    Model* const model_;
    CaffeReport* const report_;
    std::map<std::string, Shape> shapes_;
    std::map<std::string, int> versions_, made_;  // of Caffe's blobs
    std::map<std::string, std::string> current_;  // the newest version's name
    std::set<std::string> inputs_, used_;
    std::map<std::string, const caffe::BlobProto*> shared_;  // by the names of blobs
};

}  // namespace

void convert_caffe(const caffe::NetParameter& net, const CaffeWeights& weights, Model* model,
                   CaffeReport* report) {
    Conversion(net, weights, model, report).run();
}

}  // namespace quoll
