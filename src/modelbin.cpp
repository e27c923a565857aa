#include "modelbin.h"

#include <limits.h>
#include <string.h>

#include <vector>

#include "datareader.h"
#include "log.h"

namespace quoll {

namespace {

enum : unsigned {
    kTagFloat32 = 0,
    kTagFloat16 = 0x01306B47,
    kTagInt8 = 0x000D4B38,
    kTagScaledFloat32 = 0x0002C056,  // f32 whose scales ride along elsewhere
};

// A source of unknown length may announce any count: read it in steps, so that memory grows only
// with data that has really come.
const size_t kReadStep = 16 << 20;

// Reads `bytes` into a block from fast_malloc; null, with a message, when the source ends before.
void* read_block(const DataReader& dr, size_t bytes) {
    const size_t left = dr.remaining();
    if (left != (size_t)-1 && left < bytes) {
        QUOLL_LOGE("[ModelBin] a weight needs %zu bytes, but only %zu are left", bytes, left);
        return nullptr;
    }
    size_t capacity = left == (size_t)-1 && bytes > kReadStep ? kReadStep : bytes, have = 0;
    char* block = (char*)fast_malloc(capacity);
    while (block) {
        const size_t got = dr.read(block + have, capacity - have);
        have += got;
        if (have == bytes) return block;
        if (have < capacity) {
            QUOLL_LOGE("[ModelBin] a weight needs %zu bytes, but the source ends after %zu", bytes,
                       have);
            fast_free(block);
            return nullptr;
        }
        capacity = capacity > bytes / 2 ? bytes : capacity * 2;
        char* larger = (char*)fast_malloc(capacity);
        if (larger) memcpy(larger, block, have);
        fast_free(block);
        block = larger;
    }
    QUOLL_LOGE("[ModelBin] out of memory: %zu bytes for a weight", bytes);
    return nullptr;
}

struct Block {
    void* data;
    explicit Block(void* p) : data(p) {}
    ~Block() { fast_free(data); }
};

}  // namespace

ModelBin::~ModelBin() {}

// w * h * d * c as an int, or 0 when it does not fit.
static int count_of(int w, int h, int d, int c) {
    if (w <= 0 || h <= 0 || d <= 0 || c <= 0) return 0;
    const double count = (double)w * h * d * c;
    return count <= INT_MAX ? w * h * d * c : 0;
}

Mat ModelBin::load(int w, int h, int type) const {
    return load(count_of(w, h, 1, 1), type).reshape(w, h);
}
Mat ModelBin::load(int w, int h, int c, int type) const {
    return load(count_of(w, h, 1, c), type).reshape(w, h, c);
}
Mat ModelBin::load(int w, int h, int d, int c, int type) const {
    return load(count_of(w, h, d, c), type).reshape(w, h, d, c);
}

ModelBinFromDataReader::ModelBinFromDataReader(const DataReader& dr) : dr_(dr) {}

Mat ModelBinFromDataReader::load_f32(size_t count) const {
    const void* memory = nullptr;
    if (dr_.reference(count * 4, &memory) == count * 4) return Mat((int)count, (void*)memory, 4u);
    // A source of known length is read straight into the Mat.
    if (dr_.remaining() != (size_t)-1 && dr_.remaining() >= count * 4) {
        Mat m((int)count);
        if (m.empty() || dr_.read(m.data, count * 4) == count * 4) return m;
        QUOLL_LOGE("[ModelBin] the source ends inside a weight of %zu bytes", count * 4);
        return Mat();
    }
    Block raw(read_block(dr_, count * 4));
    if (!raw.data) return Mat();
    return Mat((int)count, raw.data, 4u).clone();
}

Mat ModelBinFromDataReader::load_f16(size_t count) const {
    Block raw(read_block(dr_, align_size(count * 2, 4)));
    return raw.data ? Mat::from_float16((const unsigned short*)raw.data, (int)count) : Mat();
}

Mat ModelBinFromDataReader::load_s8(size_t count) const {
    const size_t bytes = align_size(count, 4);
    const void* memory = nullptr;
    if (dr_.reference(bytes, &memory) == bytes) return Mat((int)count, (void*)memory, 1u);
    Block raw(read_block(dr_, bytes));
    return raw.data ? Mat((int)count, raw.data, 1u).clone() : Mat();
}

Mat ModelBinFromDataReader::load_table(size_t count) const {
    float table[256];
    if (dr_.read(table, sizeof(table)) != sizeof(table)) {
        QUOLL_LOGE("[ModelBin] the source ends inside the 1024-byte table of a quantized weight");
        return Mat();
    }
    Block raw(read_block(dr_, align_size(count, 4)));
    if (!raw.data) return Mat();
    Mat m((int)count);
    for (size_t i = 0; i < count && !m.empty(); i++)
        m[i] = table[((const unsigned char*)raw.data)[i]];
    return m;
}

Mat ModelBinFromDataReader::load(int w, int type) const {
    if (w <= 0 || type < 0 || type > 3) {
        QUOLL_LOGE("[ModelBin] load: %d values of type %d", w, type);
        return Mat();
    }
    const size_t count = w;
    if (type == 1) return load_f32(count);
    if (type == 2) return load_f16(count);
    if (type == 3) return load_s8(count);
    unsigned tag = 0;
    if (dr_.read(&tag, 4) != 4) {
        QUOLL_LOGE("[ModelBin] the source ends before the tag of a weight of %d values", w);
        return Mat();
    }
    switch (tag) {
        case kTagFloat16:
            return load_f16(count);
        case kTagInt8:
            return load_s8(count);
        case kTagFloat32:
        case kTagScaledFloat32:
            return load_f32(count);
        default:
            return load_table(count);
    }
}

ModelBinFromMatArray::ModelBinFromMatArray(const Mat* weights) : next_(weights) {}

Mat ModelBinFromMatArray::load(int w, int) const {
    if (!next_) return Mat();
    const Mat& m = *next_++;
    if (!m.empty() && m.total() == (size_t)w) return m.reshape(w);
    const size_t count = m.logical_shape().total();
    if (count == (size_t)w && m.elempack == 1) return m.reshape(w);
    QUOLL_LOGE("[ModelBin] a weight needs %d values, got %zu", w, count);
    return Mat();
}

}  // namespace quoll
