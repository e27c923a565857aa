#include "quoll/modelbin.h"

#include <limits.h>
#include <string.h>

#include <vector>

#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/turned_weight.h"
#include "runtime/weight_tags.h"

namespace quoll {

namespace {

const int kTableSize = 256;

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
Mat ModelBin::load(int, int) const { return Mat(); }

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

Mat ModelBinFromDataReader::load_values(size_t count, DType dtype) const {
    const size_t bytes = count * dtype_size(dtype), padded = align_size(bytes, 4);
    const void* memory = nullptr;
    Mat m;
    if (dr_.reference(padded, &memory) == padded) {
        m = Mat((int)count, (void*)memory, dtype_size(dtype));
    } else if (dr_.remaining() != (size_t)-1 && dr_.remaining() >= padded) {
        // A source of known length is read straight into the Mat, which has room for the padding.
        m.create(Shape((int)count, dtype));
        if (!m.empty() && dr_.read(m.data, padded) != padded) {
            QUOLL_LOGE("[ModelBin] the source ends inside a weight of %zu bytes", bytes);
            return Mat();
        }
    } else {
        Block raw(read_block(dr_, padded));
        if (raw.data) m = Mat((int)count, raw.data, dtype_size(dtype)).clone();
    }
    m.dtype = dtype;
    return m;
}

// Values in the table for each scale; 0 if the tag's weights have none.
static int values_for_scale(unsigned tag) {
    if (tag == kTagInt8Affine) return 2;
    return tag == kTagInt8Rows || tag == kTagInt8Columns ? 1 : 0;
}

StoredWeight ModelBinFromDataReader::load_stored(int w) const {
    StoredWeight stored;
    if (dr_.read(&stored.tag, 4) != 4) {
        QUOLL_LOGE("[ModelBin] the source ends before the tag of a weight of %d values", w);
        return stored;
    }
    if (stored.tag == kTagFloat32 || stored.tag == kTagScaledFloat32) {
        stored.data = load_values(w, DType::f32);
    } else if (stored.tag == kTagFloat16) {
        stored.data = load_values(w, DType::f16);
    } else if (stored.tag == kTagBFloat16) {
        stored.data = load_values(w, DType::bf16);
    } else if (stored.tag == kTagInt8) {
        stored.data = load_values(w, DType::s8);
    } else if (const int each = values_for_scale(stored.tag)) {
        int scales = 0;
        if (dr_.read(&scales, 4) != 4 || scales < 1 || scales > INT_MAX / each || w % scales != 0)
            QUOLL_LOGE("[ModelBin] %d scales for a weight of %d values", scales, w);
        else
            stored.table = load_values((size_t)scales * each, DType::f32);
        if (!stored.table.empty()) stored.data = load_values(w, DType::s8);
    } else {
        stored.table = load_values(kTableSize, DType::f32);
        if (!stored.table.empty()) stored.data = load_values(w, DType::u8);
    }
    return stored;
}

Mat ModelBinFromDataReader::load(int w, int type) const {
    if (w <= 0 || type < 0 || type > 3) {
        QUOLL_LOGE("[ModelBin] load: %d values of type %d", w, type);
        return Mat();
    }
    if (type == 1) return load_values(w, DType::f32);
    if (type == 3) return load_values(w, DType::s8);
    StoredWeight stored;
    if (type == 2)
        stored.data = load_values(w, DType::f16);
    else
        stored = load_stored(w);
    return stored.widened();
}

StoredWeight::StoredWeight(const Mat& values) : data(values), tag(0) {
    if (values.dtype == DType::f16) tag = kTagFloat16;
    if (values.dtype == DType::bf16) tag = kTagBFloat16;
    if (values.dtype == DType::s8) tag = kTagInt8;
    if (values.dtype == DType::u8) tag = kTagTable;
}

static void scale_int8(const StoredWeight& from, const Mat& flat, Mat* m) {
    const bool columns = from.tag == kTagInt8Columns;
    const int scales = from.table.w / values_for_scale(from.tag), count = flat.w;
    const int length = columns ? scales : count / scales;
    const signed char* const values = (const signed char*)flat.data;
    const float* const s = from.table;
    const float* const zeros = from.tag == kTagInt8Affine ? s + scales : nullptr;
    for (int begin = 0, row = 0; begin < count && !m->empty(); begin += length, row++) {
        const float zero = zeros ? zeros[row] : 0.f;
        for (int i = 0; i < length; i++)
            (*m)[begin + i] = ((float)values[begin + i] - zero) * s[columns ? i : row];
    }
}

StoredWeight StoredWeight::int8(const Mat& values, const Mat& scales, bool columns) {
    StoredWeight w(values);
    w.table = scales;
    w.tag = columns ? kTagInt8Columns : kTagInt8Rows;
    return w;
}

Mat StoredWeight::widened() const {
    if (tag == kTagByInputs) return WeightByInputs(data).turned();
    const bool scaled = data.dtype == DType::s8 && !table.empty() && values_for_scale(tag) != 0;
    if (data.empty() || data.dtype == DType::f32 || (data.dtype == DType::s8 && !scaled))
        return data;
    const Mat flat = data.reshape((int)data.logical_shape().total());
    if (flat.empty()) return Mat();
    if (data.dtype == DType::f16) return Mat::from_float16(flat, flat.w);
    Mat m;
    if (data.dtype == DType::bf16) {
        cast_bfloat16_to_float32(flat, m);
        return m;
    }
    m.create(flat.w);
    if (scaled) {
        scale_int8(*this, flat, &m);
        return m;
    }
    for (int i = 0; i < flat.w && !m.empty(); i++)
        m[i] = table[((const unsigned char*)flat.data)[i]];
    return m;
}

int StoredWeight::save(const DataWriter& dw, bool tagged) const {
    if (tag == kTagByInputs) return StoredWeight(widened()).save(dw, tagged);
    const Mat flat = data.dims == 1 ? data : data.reshape((int)data.logical_shape().total());
    const bool indexes = data.dtype == DType::u8;
    const int each = values_for_scale(tag), scales = each ? table.w / each : 0;
    if (flat.empty() || flat.elempack != 1) {
        QUOLL_LOGE("[ModelBin] save: a weight of %zu values with elempack %d",
                   data.logical_shape().total(), data.elempack);
        return kError;
    }
    if (data.dtype == DType::s32 ||
        (!tagged && data.dtype != DType::f32 && data.dtype != DType::s8) ||
        (indexes && (table.w != kTableSize || table.dtype != DType::f32)) ||
        (each && (!tagged || data.dtype != DType::s8 || table.dtype != DType::f32 || scales < 1 ||
                  table.w % each != 0 || flat.w % scales != 0))) {
        QUOLL_LOGE("[ModelBin] save: expected %s, got %s with a table of %d values",
                   tagged ? "f32, f16, bf16, s8 or u8 with a table of 256" : "f32 or s8",
                   dtype_name(data.dtype), table.empty() ? 0 : table.w);
        return kError;
    }
    const unsigned char padding[4] = {0, 0, 0, 0};
    const size_t bytes = flat.w * flat.elemsize, gap = align_size(bytes, 4) - bytes;
    const bool written = (!tagged || dw.write(&tag, 4) == 4) &&
                         (!each || (dw.write(&scales, 4) == 4 &&
                                    dw.write(table.data, 4u * table.w) == 4u * table.w)) &&
                         (!indexes || dw.write(table.data, kTableSize * 4) == kTableSize * 4) &&
                         dw.write(flat.data, bytes) == bytes && dw.write(padding, gap) == gap;
    if (written) return kOk;
    QUOLL_LOGE("[ModelBin] save: %zu bytes could not be written", bytes);
    return kError;
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
