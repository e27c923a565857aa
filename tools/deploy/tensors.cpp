#include "deploy/tensors.h"

#include <math.h>

#include <random>

#include "common/model_files.h"
#include "common/npy.h"

namespace quoll {

std::string sizes_text(const std::vector<int64_t>& sizes) {
    std::string text;
    for (int64_t size : sizes) text += (text.empty() ? "" : ",") + std::to_string(size);
    return text;
}

static bool channels_last(const DeployTensor& tensor) {
    return tensor.format == "NHWC" && tensor.sizes.size() >= 4;
}

std::vector<int64_t> engine_order(const DeployTensor& tensor) {
    std::vector<int64_t> sizes = tensor.sizes;
    if (channels_last(tensor)) {
        sizes.insert(sizes.begin() + 1, sizes.back());
        sizes.pop_back();
    }
    return sizes;
}

bool same_but_ones(const std::vector<int64_t>& sizes, const Shape& shape) {
    std::vector<int64_t> ours, theirs;
    for (int64_t size : sizes)
        if (size != 1) ours.push_back(size);
    for (int i = 0; i < shape.dims; i++)
        if (shape.size(i) != 1) theirs.push_back(shape.size(i));
    return ours == theirs;
}

int blob_shape(const DeployTensor& tensor, bool batched, const Shape& known, Shape* shape,
               std::string* why) {
    std::vector<int64_t> sizes = engine_order(tensor);
    const std::string said =
        "'" + tensor.name + "' is " + sizes_text(tensor.sizes) + " " + tensor.format + " here";
    if (known.dims > 0) {
        *shape = known;
        if (same_but_ones(sizes, known)) return 0;
        *why = said + ", expected " + size_text(known) + " and a batch of 1, as the model says";
        if (channels_last(tensor)) *why += " (input_data_formats is NHWC unless it is given)";
        return -1;
    }
    if (batched && sizes.size() > 1) {
        if (sizes[0] != 1) {
            *why = said + ", expected a batch of 1: it is given when the model runs";
            return -1;
        }
        sizes.erase(sizes.begin());
    }
    if (sizes.size() > 4) {
        *why = said + ", expected at most 4 axes besides the batch";
        return -1;
    }
    *shape = Shape(1);
    shape->dims = (int)sizes.size();
    for (size_t i = 0; i < sizes.size(); i++) shape->set_size((int)i, (int)sizes[i]);
    return 0;
}

// The elements of an array in the engine's order of axes.
template <class T>
static std::vector<T> ordered(const Mat& array, bool last_to_front) {
    std::vector<T> values;
    const size_t count = (size_t)array.w * array.h * array.d;
    for (int b = 0; b < array.n; b++) {
        std::vector<T> item;
        for (int q = 0; q < array.c; q++) {
            const T* p = (const T*)array.data + (size_t)b * array.nstep + (size_t)q * array.cstep;
            item.insert(item.end(), p, p + count);
        }
        const size_t channels = last_to_front ? (size_t)array.w : 1,
                     pixels = item.size() / channels;
        for (size_t q = 0; q < channels; q++)
            for (size_t i = 0; i < pixels; i++) values.push_back(item[i * channels + q]);
    }
    return values;
}

template <class T>
static void fill(const std::vector<T>& values, Mat* blob) {
    const size_t count = (size_t)blob->w * blob->h * blob->d;
    for (int q = 0; q < blob->c; q++)
        for (size_t i = 0; i < count; i++)
            ((T*)blob->data)[q * blob->cstep + i] = values[q * count + i];
}

static std::vector<float> random_values(const DeployTensor& tensor, size_t count, unsigned seed) {
    std::mt19937 rng(seed);
    std::vector<float> values(count);
    std::uniform_real_distribution<double> next(tensor.low, tensor.high);
    for (float& value : values) value = (float)(tensor.integer ? rint(next(rng)) : next(rng));
    return values;
}

int make_blob(const DeployTensor& tensor, const Shape& shape, unsigned seed, Mat* blob,
              std::string* why) {
    Shape typed = shape;
    typed.dtype = tensor.integer ? DType::s32 : DType::f32;
    blob->create(typed);
    if (blob->empty()) return *why = "out of memory", -1;
    const size_t count = (size_t)blob->w * blob->h * blob->d * blob->c;
    if (tensor.array.empty()) {
        const std::vector<float> values = random_values(tensor, count, seed);
        if (tensor.integer)
            fill(std::vector<int>(values.begin(), values.end()), blob);
        else
            fill(values, blob);
        return 0;
    }
    TensorSpec spec;
    spec.rank = (int)tensor.sizes.size();
    spec.element_type = tensor.integer ? 7 : 1;  // ONNX's int64 and float32
    spec.batch = spec.rank > 1;
    Mat array;
    *why = tensor.array;
    if (read_npy(tensor.array, spec, &array)) return -1;
    const Shape got = array.logical_shape();
    std::vector<int64_t> sizes;
    if (spec.batch) sizes.push_back(got.n);
    for (int i = 0; i < got.dims; i++) sizes.push_back(got.size(i));
    if (sizes != tensor.sizes) {
        *why += ": sizes " + sizes_text(sizes) + ", expected " + sizes_text(tensor.sizes) +
                " of '" + tensor.name + "'";
        return -1;
    }
    if (tensor.integer)
        fill(ordered<int>(array, channels_last(tensor)), blob);
    else
        fill(ordered<float>(array, channels_last(tensor)), blob);
    return 0;
}

}  // namespace quoll
