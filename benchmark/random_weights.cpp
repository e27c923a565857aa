#include "random_weights.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <memory>

#include "graph/model.h"
#include "layer/common/block_quant.h"
#include "layer/common/schema.h"

namespace quoll {

// Weights of fewer values than this are taken for per-channel ones.
static const size_t kFewestKernelValues = 512;

// SplitMix64, Steele et al., "Fast splittable pseudorandom number generators", 2014.
static uint64_t next(uint64_t* state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void fill_random(float* values, size_t count, float low, float high, uint64_t* state) {
    const float step = (high - low) / 16777215.f;  // 24 bits, what a float holds exactly
    for (size_t i = 0; i < count; i++) values[i] = low + step * (float)(next(state) >> 40);
}

// The largest of so many random values.
static float most_of(size_t count) {
    return count < kFewestKernelValues ? 0.4f : 1.f / sqrtf(sqrtf((float)count));
}

namespace {

// Where in a file of fp32 weights the scales of int8 values are, and what they should be.
class FindScales : public WeightVisitor {
public:
    explicit FindScales(std::map<uint64_t, float>* scales) : scales_(scales) {}
    void begin_layer(Layer& layer) { layer_ = &layer, weights_ = 1; }

    void operator()(bool present, const char* name, Mat&, WeightSize size, WeightKind kind,
                    const char*) override {
        // Blobs stay within a few times 1.
        const float kLargestByte = 127, kLargestValue = 4;
        int count = 0;
        if (!present || weight_count(*layer_, name, size, &count) != kOk) return;
        if (kind == WeightKind::kTagged) offset_ += 4;
        if (strstr(name, "quantize_scales"))
            (*scales_)[offset_] = largest_digit() / most_of(weights_);
        else if (!strstr(name, "int8_scale"))
            weights_ = std::max(weights_, (size_t)count);
        else
            (*scales_)[offset_] =
                kLargestByte / (strstr(name, "weight") ? most_of(weights_) : kLargestValue);
        offset_ += kind == WeightKind::kInt8 ? ((uint64_t)count + 3) / 4 * 4 : 4 * (uint64_t)count;
    }

private:
    // For weights in blocks of few bits.
    float largest_digit() const {
        const int bits = BlockQuant(params_of(*layer_).get(18, 0)).bits;
        return (float)((1 << std::max(bits - 1, 1)) - 1);
    }
    std::map<uint64_t, float>* scales_;
    Layer* layer_ = nullptr;
    size_t weights_ = 1;  // the longest weight of the layer
    uint64_t offset_ = 0;
};

}  // namespace

RandomWeights::RandomWeights(const Model& model, FILE* copy) : copy_(copy) {
    FindScales find(&scales_);
    for (const ModelLayer& layer : model.layers) {
        const std::unique_ptr<Layer> op = layer.custom() ? nullptr : layer.make_operator();
        if (!op) return;  // what follows has no known place
        find.begin_layer(*op);
        op->visit_weights(find);
    }
}

size_t RandomWeights::read(void* buf, size_t size) const {
    const size_t count = size / 4;
    memset(buf, 0, size);
    const auto scale = scales_.find(offset_);
    offset_ += size;
    if (scale != scales_.end()) {
        fill_random((float*)buf, count, 0.9f * scale->second, scale->second, &state_);
    } else if (count > 1 && count < kFewestKernelValues) {
        fill_random((float*)buf, count, 0.2f, 0.4f, &state_);
    } else if (count > 1) {
        fill_random((float*)buf, count, -most_of(count), most_of(count), &state_);
    }
    if (copy_ && fwrite(buf, 1, size, copy_) != size) copied_ = false;
    return size;
}

}  // namespace quoll
