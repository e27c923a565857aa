#include "onnx/compact.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include <algorithm>

#include "layer/common/schema.h"
#include "layer/control/memorydata.h"
#include "quoll/status.h"
#include "runtime/weight_tags.h"

namespace quoll {
namespace onnx_tool {

namespace {

// Smaller ones are not worth another form.
const size_t kFewest = 64;

uint32_t bits_at(const Mat& m, size_t i) {
    uint32_t bits;
    memcpy(&bits, (const float*)m.data + i, 4);
    return bits;
}

// f16 has 10 bits of fraction behind the point, fewer below 2^-14, and none below 2^-24.
bool is_f16(uint32_t bits) {
    const uint32_t magnitude = bits & 0x7fffffff;
    const int exponent = (int)(magnitude >> 23) - 127;
    if (magnitude == 0 || magnitude == 0x7f800000) return true;
    if (exponent > 15 || exponent < -24) return false;
    const int lost = exponent >= -14 ? 13 : -1 - exponent;
    return ((magnitude & 0x7fffff) & ((1u << std::min(lost, 23)) - 1)) == 0;
}

bool is_bf16(uint32_t bits) { return (bits & 0xffff) == 0 && (bits & 0x7fffffff) <= 0x7f800000; }

bool all_are(const Mat& m, bool (*is)(uint32_t)) {
    const size_t count = m.logical_shape().total();
    for (size_t i = 0; i < count; i++)
        if (!is(bits_at(m, i))) return false;
    return true;
}

// The different values of a weight, as bits, and where each is in the table.
class ValueTable {
public:
    static const int kSize = 256;

    // The index of a value; -1 if it is one too many.
    int index_of(uint32_t bits) {
        const uint32_t hash = bits * 0x9e3779b9u;
        for (uint32_t at = hash >> 22;; at = (at + 1) % kSlots) {
            if (slots_[at] == 0) {
                if (values_.size() == kSize) return -1;
                values_.push_back(bits);
                slots_[at] = (uint16_t)values_.size();
            }
            if (values_[slots_[at] - 1u] == bits) return slots_[at] - 1;
        }
    }
    Mat table() const {
        Mat m(kSize);
        if (m.empty()) return m;
        memset(m.data, 0, kSize * 4);
        memcpy(m.data, values_.data(), values_.size() * 4);
        return m;
    }

private:
    static const uint32_t kSlots = 1024;
    uint16_t slots_[kSlots] = {};  // index + 1; 0: free
    std::vector<uint32_t> values_;
};

// True if it has so few values; *indexes is empty when memory runs out.
bool as_table(const Mat& m, StoredWeight* indexes) {
    const size_t count = m.logical_shape().total();
    if (count < 2 * ValueTable::kSize) return false;
    ValueTable values;
    for (size_t i = 0; i < count; i++)
        if (values.index_of(bits_at(m, i)) < 0) return false;
    Mat codes(Shape((int)count, DType::u8));
    for (size_t i = 0; i < count && !codes.empty(); i++)
        ((unsigned char*)codes.data)[i] = (unsigned char)values.index_of(bits_at(m, i));
    *indexes = StoredWeight(codes);
    indexes->table = values.table();
    return true;
}

// Values as the products of bytes and scales, or of what bytes differ from zero points by and
// scales: as models have them that were quantised channel by channel, or in blocks, and are
// computed in floats.
class ScaledInt8 {
public:
    explicit ScaledInt8(const Mat& m) : values_(m), count_((int)m.logical_shape().total()) {}

    // Rows as long as can be, or else columns, or else rows with zero points; false if there are
    // none.
    bool find(StoredWeight* to) {
        const int kShortest = 32, kShortestRow = 9;
        codes_.create(Shape(count_, DType::s8));
        if (codes_.empty()) return false;
        for (int scales = 1; scales <= count_ / kShortestRow; scales++)
            if (count_ % scales == 0 && fits(scales, kRows)) return make(scales, kTagInt8Rows, to);
        for (int scales = 2; scales <= count_ / kShortest; scales++)
            if (count_ % scales == 0 && fits(scales, kColumns))
                return make(scales, kTagInt8Columns, to);
        for (int scales = 1; scales <= count_ / kShortestRow; scales++)
            if (count_ % scales == 0 && fits(scales, kAffineRows))
                return make(scales, kTagInt8Affine, to);
        return false;
    }

private:
    enum Kind { kRows, kColumns, kAffineRows };

    bool fits(int scales, Kind kind) {
        // A few values tell nearly all that do not fit.
        const bool columns = kind == kColumns;
        const int kProbe = 64, length = count_ / scales, step = columns ? scales : 1;
        affine_ = kind == kAffineRows;
        scales_.clear(), zeros_.clear();
        if (!fit_row(0, step, std::min(length, kProbe))) return false;
        scales_.clear(), zeros_.clear();
        for (int r = 0; r < scales; r++)
            if (!fit_row(columns ? r : r * length, step, length)) return false;
        return true;
    }

    // The largest magnitude is some number of steps, most often 127.
    bool fit_row(int begin, int step, int length) {
        float most = 0;
        for (int i = 0; i < length; i++) most = std::max(most, fabsf(at(begin + i * step)));
        if (!(most < INFINITY)) return false;
        if (most == 0) return codes_of(begin, step, length, 1.f);
        for (int k = affine_ ? 255 : 128; k > 0; k--) {
            // The scale is a neighbour of the quotient, which is rounded.
            const float near = most / (float)k;
            for (float s : {near, nextafterf(near, 0.f), nextafterf(near, INFINITY)})
                if (s >= FLT_MIN && (float)k * s == most && codes_of(begin, step, length, s))
                    return true;
        }
        return false;
    }

    // The smallest and largest number of steps; false if some value is no such number.
    bool steps_of(int begin, int step, int length, float scale, int* low, int* high) const {
        const int most = affine_ ? 255 : 128;
        *low = *high = 0;
        for (int i = 0; i < length; i++) {
            const float& value = at(begin + i * step);
            const float steps = rintf(value / scale);
            if (!(fabsf(steps) <= (float)most)) return false;
            const float back = (float)(int)steps * scale;  // never -0, as when it is read again
            if (memcmp(&back, &value, 4) != 0) return false;
            *low = std::min(*low, (int)steps), *high = std::max(*high, (int)steps);
        }
        return affine_ ? *high - *low <= 255 : *high <= 127;
    }

    bool codes_of(int begin, int step, int length, float scale) {
        int low = 0, high = 0;
        if (!steps_of(begin, step, length, scale, &low, &high)) return false;
        const int zero = affine_ ? -128 - low : 0;
        signed char* const codes = (signed char*)codes_.data;
        for (int i = 0; i < length; i++) {
            const int to = begin + i * step;
            codes[to] = (signed char)((int)rintf(at(to) / scale) + zero);
        }
        scales_.push_back(scale);
        zeros_.push_back((float)zero);
        return true;
    }

    bool make(int scales, unsigned tag, StoredWeight* to) {
        Mat table(affine_ ? 2 * scales : scales);
        if (table.empty()) return false;
        memcpy(table.data, scales_.data(), (size_t)scales * 4);
        if (affine_) memcpy((float*)table.data + scales, zeros_.data(), (size_t)scales * 4);
        *to = StoredWeight(codes_);
        to->table = table, to->tag = tag;
        return true;
    }

    const float& at(int i) const { return ((const float*)values_.data)[i]; }

    const Mat values_;
    const int count_;
    bool affine_ = false;
    Mat codes_;
    std::vector<float> scales_, zeros_;
};

// The weight in fewer bytes; false if there is no such form.
bool compacted(const Mat& m, bool own_forms, StoredWeight* to) {
    if (m.empty() || m.dtype != DType::f32 || m.elempack != 1 ||
        m.logical_shape().total() < kFewest || m.total() != m.logical_shape().total())
        return false;
    if (as_table(m, to) || (own_forms && ScaledInt8(m).find(to))) return true;
    Mat narrow;
    if (all_are(m, is_f16))
        cast_float32_to_float16(m, narrow);
    else if (own_forms && all_are(m, is_bf16))
        cast_float32_to_bfloat16(m, narrow);
    else
        return false;
    *to = StoredWeight(narrow);
    return true;
}

class CompactWeights : public WeightVisitor {
public:
    CompactWeights(ModelLayer* layer, bool own_forms) : layer_(layer), own_forms_(own_forms) {}
    int status = kOk;

    void operator()(bool present, const char* name, Mat&, WeightSize, WeightKind kind,
                    const char*) override {
        // A constant may have a tag; what else has none never has.
        const bool constant =
            layer_->is<MemoryData>() && kind == WeightKind::kRaw && layer_->params.get(22, 0) == 0;
        if (!present || status != kOk || (kind != WeightKind::kTagged && !constant)) return;
        for (ModelWeight& weight : layer_->weights) {
            StoredWeight compact;
            if (weight.name != name || !compacted(weight.stored.data, own_forms_, &compact))
                continue;
            if (compact.data.empty() || (compact.data.dtype == DType::u8 && compact.table.empty()))
                status = kOutOfMemory;
            weight.stored = compact;
            if (constant) layer_->set("load_type", 0);
        }
    }

private:
    ModelLayer* layer_;
    const bool own_forms_;
};

}  // namespace

int compact_weights(Model* model, bool own_forms) {
    for (ModelLayer& layer : model->layers) {
        if (layer.weights.empty()) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        if (!op) return kError;
        CompactWeights compact(&layer, own_forms);
        op->visit_weights(compact);
        QUOLL_RETURN_IF_ERROR(compact.status);
    }
    return kOk;
}

}  // namespace onnx_tool
}  // namespace quoll
