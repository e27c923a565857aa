#include <string.h>

#include "log.h"
#include "status.h"
#include "weights_end_private.h"

namespace quoll {

static const int kParamId = 29;
// The first of the three values, so that a parameter of a custom layer is not taken for this one.
static const int kKind = 0x57454e44;
static const char kEndWord[] = "quollend";

uint64_t take_weights_id(ParamDict* params) {
    const ParamDict::Type type = params->type(kParamId);
    if (type != ParamDict::kIntArray && type != ParamDict::kNumberArray) return 0;
    const Mat values = params->get_ints(kParamId, Mat());
    const int* v = values;
    if (values.empty() || values.w != 3 || v[0] != kKind) return 0;
    params->copy(kParamId, ParamDict());
    return (uint64_t)(uint32_t)v[2] << 32 | (uint32_t)v[1];
}

void put_weights_id(uint64_t id, ParamDict* params) {
    Mat values(Shape(3, DType::s32));
    if (values.empty() || id == 0 || params->type(kParamId) != ParamDict::kNone) return;
    int* v = values;
    v[0] = kKind, v[1] = (int)(uint32_t)id, v[2] = (int)(uint32_t)(id >> 32);
    params->set(kParamId, values);
}

int write_weights_end(uint64_t id, const DataWriter& dw) {
    unsigned char end[kWeightsEndSize];
    memcpy(end, kEndWord, 8);
    for (int i = 0; i < 8; i++) end[8 + i] = (unsigned char)(id >> (8 * i));
    if (dw.write(end, sizeof(end)) == sizeof(end)) return kOk;
    QUOLL_LOGE("[Model] save_model: the end could not be written");
    return kError;
}

uint64_t weights_id_of(const unsigned char end[kWeightsEndSize]) {
    uint64_t id = 0;
    if (memcmp(end, kEndWord, 8) != 0) return 0;
    for (int i = 0; i < 8; i++) id |= (uint64_t)end[8 + i] << (8 * i);
    return id;
}

int refuse_other_weights(uint64_t id, uint64_t theirs) {
    if (theirs)
        QUOLL_LOGE(
            "[Net] load_model: these weights (%016llx) are not those that the param was written "
            "with (%016llx): the two files come from different runs of a program",
            (unsigned long long)theirs, (unsigned long long)id);
    else
        QUOLL_LOGE(
            "[Net] load_model: these weights do not end as those that the param was written with "
            "(%016llx): they are cut off, or another model's. Without its parameter %d the param "
            "takes any that fit",
            (unsigned long long)id, kParamId);
    return kError;
}

int check_weights_end(const DataReader& dr, uint64_t id, bool whole, size_t size) {
    const size_t unknown = (size_t)-1, left = dr.remaining();
    const bool wanted = whole && left != unknown ? left == kWeightsEndSize : id != 0;
    uint64_t theirs = 0;
    if (wanted && left >= kWeightsEndSize) {
        unsigned char end[kWeightsEndSize] = {};
        if (dr.read(end, sizeof(end)) == sizeof(end)) theirs = weights_id_of(end);
    }
    if (whole && left != unknown && left != 0 && theirs == 0) {
        QUOLL_LOGE(
            "[Net] load_model: the layers read %zu bytes of weights, and %zu of %zu are left over: "
            "they are another model's, or more than one",
            size - left, left, size);
        return kError;
    }
    // A source of unknown length may be one that makes weights up.
    if (id == 0 || theirs == id || (theirs == 0 && left == unknown)) return kOk;
    return refuse_other_weights(id, theirs);
}

void WeightsHash::add_word(uint64_t word) const {
    hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15ull;
    hash_ ^= hash_ >> 32;
}

size_t WeightsHash::write(const void* data, size_t size) const {
    const unsigned char* p = (const unsigned char*)data;
    size_t left = size;
    for (; left > 0 && (size_ % 8 != 0 || left < 8); p++, left--) {
        word_ |= (uint64_t)*p << (size_++ % 8 * 8);
        if (size_ % 8 != 0) continue;
        add_word(word_);
        word_ = 0;
    }
    for (; left >= 8; p += 8, left -= 8, size_ += 8) {
        uint64_t word = 0;
        memcpy(&word, p, 8);
        add_word(word);
    }
    for (; left > 0; p++, left--) word_ |= (uint64_t)*p << (size_++ % 8 * 8);
    return size;
}

uint64_t WeightsHash::id() const {
    if (size_ == 0) return 0;
    WeightsHash end = *this;
    end.add_word(word_);
    end.add_word(size_);
    return end.hash_ ? end.hash_ : 1;
}

}  // namespace quoll
