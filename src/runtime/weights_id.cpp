#include "runtime/weights_id.h"

#include <algorithm>

#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

static const int kParamId = 29;
// The first of the values, so that a parameter of a custom layer is not taken for this one.
static const int kKind = 0x57454947;

static uint64_t wide(int low, int high) { return (uint64_t)(uint32_t)high << 32 | (uint32_t)low; }

WeightsId take_weights_id(ParamDict* params) {
    WeightsId id;
    const ParamDict::Type type = params->type(kParamId);
    if (type != ParamDict::kIntArray && type != ParamDict::kNumberArray) return id;
    const Mat values = params->get_ints(kParamId, Mat());
    const int* v = values;
    if (values.empty() || values.w != 5 || v[0] != kKind) return id;
    params->copy(kParamId, ParamDict());
    id.size = wide(v[1], v[2]), id.hash = wide(v[3], v[4]);
    return id;
}

void put_weights_id(const WeightsId& id, ParamDict* params) {
    Mat values(Shape(5, DType::s32));
    if (values.empty() || id.size == 0 || params->type(kParamId) != ParamDict::kNone) return;
    int* v = values;
    v[0] = kKind;
    v[1] = (int)(uint32_t)id.size, v[2] = (int)(uint32_t)(id.size >> 32);
    v[3] = (int)(uint32_t)id.hash, v[4] = (int)(uint32_t)(id.hash >> 32);
    params->set(kParamId, values);
}

// 256 samples of 256 bytes; up to 64 KB all.
static const int kSamples = 256;
static const size_t kSample = 256;

int WeightsHash::count() const { return size_ <= kSamples * kSample ? 1 : kSamples; }
size_t WeightsHash::length() const { return count() == 1 ? (size_t)size_ : kSample; }
uint64_t WeightsHash::begin(int i) const {
    if (count() == 1) return 0;
    return i == kSamples - 1 ? size_ - kSample : (size_ - kSample) / (kSamples - 1) * (uint64_t)i;
}

static void add(uint64_t* hash, const unsigned char* bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        *hash = (*hash ^ bytes[i]) * 0x9e3779b97f4a7c15ull;
        *hash ^= *hash >> 32;
    }
}

size_t WeightsHash::write(const void* data, size_t size) const {
    const unsigned char* const bytes = (const unsigned char*)data;
    const uint64_t end = at_ + size, step = std::max<uint64_t>(begin(1), 1);
    const int first = count() == 1 ? 0 : (int)std::min<uint64_t>(at_ / step, kSamples - 2);
    for (int i = first; i < count() && begin(i) < end; i++) {
        const uint64_t from = std::max(begin(i), at_), to = std::min(begin(i) + length(), end);
        if (from < to) add(&hash_, bytes + (from - at_), (size_t)(to - from));
    }
    at_ = end;
    return size;
}

uint64_t WeightsHash::of_samples(uint64_t size, const unsigned char* samples, size_t bytes) {
    uint64_t hash = size;
    add(&hash, samples, bytes);
    return hash;
}

WeightsId weights_id_of(const unsigned char* weights, size_t size) {
    const WeightsHash hash(size);
    hash.write(weights, size);
    WeightsId id;
    id.size = size, id.hash = hash.hash();
    return id;
}

int check_weights_id(const WeightsId& param, const WeightsId& weights) {
    if (param.size == 0 || (param.size == weights.size && param.hash == weights.hash)) return kOk;
    QUOLL_LOGE(
        "[Net] load_model: these weights (%llu bytes, %016llx) are not those that the param was "
        "written with (%llu bytes, %016llx): the files come from different runs of a program. "
        "Without its parameter -233%d the param takes any that fit",
        (unsigned long long)weights.size, (unsigned long long)weights.hash,
        (unsigned long long)param.size, (unsigned long long)param.hash, kParamId);
    return kError;
}

int check_all_read(const DataReader& dr, size_t size) {
    const size_t left = dr.remaining();
    if (left == 0 || left == (size_t)-1) return kOk;
    QUOLL_LOGE(
        "[Net] load_model: the layers read %zu bytes of weights, and %zu of %zu are left over: "
        "they are another model's, or more than one",
        size - left, left, size);
    return kError;
}

}  // namespace quoll
