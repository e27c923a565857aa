#include "npy.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "layer/common/elementtype.h"
#include "quoll/log.h"
#include "quoll/status.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they are");

namespace quoll {

namespace {

const char kMagic[] = "\x93NUMPY";
const size_t kMagicSize = 6;
// A header is a short dict; real ones have 118 bytes.
const size_t kLongestHeader = 1 << 16;
// Four axes and the batch.
const size_t kMostAxes = 5;

struct FileCloser {
    void operator()(FILE* fp) const { fclose(fp); }
};
using File = std::unique_ptr<FILE, FileCloser>;

int fail(const std::string& path, const std::string& why) {
    QUOLL_LOGE("[npy %s] %s", path.c_str(), why.c_str());
    return kError;
}

struct Header {
    std::string descr;
    bool fortran_order = false;
    std::vector<uint64_t> shape;
};

// The header is a Python dict of a string, a bool and a tuple of ints. A parser of just that.
class HeaderParser {
public:
    explicit HeaderParser(const std::string& text) : p_(text.c_str()) {}

    bool parse(Header* header) {
        bool seen_descr = false, seen_order = false, seen_shape = false;
        if (!take('{')) return false;
        while (!take('}')) {
            std::string key;
            if (!string(&key) || !take(':')) return false;
            bool* seen = key == "descr"           ? &seen_descr
                         : key == "fortran_order" ? &seen_order
                         : key == "shape"         ? &seen_shape
                                                  : nullptr;
            if (!seen || *seen) return false;
            *seen = true;
            const bool read = seen == &seen_descr   ? string(&header->descr)
                              : seen == &seen_order ? boolean(&header->fortran_order)
                                                    : tuple(&header->shape);
            if (!read) return false;
            if (!take(',') && !peek('}')) return false;
        }
        return seen_descr && seen_order && seen_shape;
    }

private:
    bool peek(char ch) {
        while (*p_ == ' ' || *p_ == '\n' || *p_ == '\t') p_++;
        return *p_ == ch;
    }
    bool take(char ch) {
        if (!peek(ch)) return false;
        p_++;
        return true;
    }
    bool string(std::string* s) {
        const char quote = peek('"') ? '"' : '\'';
        if (!take(quote)) return false;
        const char* end = strchr(p_, quote);
        if (!end) return false;
        s->assign(p_, end);
        p_ = end + 1;
        return true;
    }
    bool boolean(bool* value) {
        peek(' ');
        *value = strncmp(p_, "True", 4) == 0;
        if (!*value && strncmp(p_, "False", 5) != 0) return false;
        p_ += *value ? 4 : 5;
        return true;
    }
    bool tuple(std::vector<uint64_t>* values) {
        if (!take('(')) return false;
        while (!take(')')) {
            uint64_t v = 0;
            peek(' ');
            const char* begin = p_;
            for (; *p_ >= '0' && *p_ <= '9'; p_++) {
                if (v > UINT64_MAX / 16) return false;
                v = v * 10 + (uint64_t)(*p_ - '0');
            }
            if (p_ == begin) return false;
            take('L');  // Python 2 wrote 3L
            values->push_back(v);
            if (!take(',') && !peek(')')) return false;
        }
        return true;
    }

    const char* p_;
};

int read_header(const std::string& path, FILE* fp, Header* header) {
    unsigned char start[kMagicSize + 2], length[4] = {0, 0, 0, 0};
    if (fread(start, 1, sizeof(start), fp) != sizeof(start) ||
        memcmp(start, kMagic, kMagicSize) != 0)
        return fail(path, ferror(fp) ? strerror(errno)
                                     : "not a .npy file: it does not begin with \\x93NUMPY");
    const int version = start[kMagicSize];
    if (version < 1 || version > 3)
        return fail(path,
                    "expected format version 1, 2 or 3, got version " + std::to_string(version));
    const size_t length_size = version == 1 ? 2 : 4;
    if (fread(length, 1, length_size, fp) != length_size)
        return fail(path, "the file ends inside the header");
    const size_t size = length[0] | length[1] << 8 | length[2] << 16 | (size_t)length[3] << 24;
    if (size > kLongestHeader)
        return fail(path, "the header has " + std::to_string(size) + " bytes, expected at most " +
                              std::to_string(kLongestHeader));
    std::string text(size, ' ');
    if (fread(&text[0], 1, size, fp) != size) return fail(path, "the file ends inside the header");
    if (!HeaderParser(text).parse(header))
        return fail(path, "the header is not a dict of descr, fortran_order and shape");
    return kOk;
}

std::string shape_of(const Header& header) {
    std::string text = "(";
    for (uint64_t v : header.shape) text += std::to_string(v) + ",";
    return text + ")";
}

// The element types that are read: the Mat's type, and the bytes of an element in the file.
struct ElementType {
    const char* descr;
    DType dtype;
    size_t file_size;
};
const ElementType kElementTypes[] = {
    {"<f4", DType::f32, 4}, {"<f2", DType::f32, 2}, {"<i4", DType::s32, 4}, {"<i8", DType::s32, 8},
    {"|i1", DType::s8, 1},  {"|u1", DType::u8, 1},  {"<i1", DType::s8, 1},  {"<u1", DType::u8, 1},
    {"<f8", DType::f32, 8}, {"|b1", DType::u8, 1},  {"<i2", DType::s32, 2}, {"<u2", DType::s32, 2},
    {"<u4", DType::s32, 4}, {"<u8", DType::s32, 8},
};
// The first of them are for everybody.
const size_t kPlainElementTypes = 10;

int find_type(const std::string& path, const Header& header, const ElementType** type) {
    for (size_t i = 0; i < kPlainElementTypes; i++)
        if (header.descr == kElementTypes[i].descr) return *type = &kElementTypes[i], (int)kOk;
    return fail(path, "elements of type '" + header.descr +
                          "': expected float32 '<f4', float16 '<f2', float64 '<f8', int32 '<i4', "
                          "int64 '<i8', int8 '|i1', uint8 '|u1' or bool '|b1'");
}

int make_shape(const std::string& path, const Header& header, bool batch, DType dtype,
               Shape* shape) {
    const size_t axes = header.shape.size(), first = batch ? 1 : 0;
    if (header.fortran_order)
        return fail(path, "the array is in Fortran order; save np.ascontiguousarray(array)");
    if (axes <= first || axes > kMostAxes || axes - first > 4)
        return fail(path, "shape " + shape_of(header) + ": expected 1 to 4 axes" +
                              (batch ? " behind the batch axis" : ""));
    for (uint64_t v : header.shape)
        if (v == 0 || v > INT_MAX)
            return fail(path,
                        "shape " + shape_of(header) + ": each axis must have 1 to 2^31-1 elements");
    *shape = Shape(1, 1, 1, 1, dtype);
    shape->dims = (int)(axes - first);
    shape->n = batch ? (int)header.shape[0] : 1;
    for (size_t i = first; i < axes; i++) shape->set_size((int)(i - first), (int)header.shape[i]);
    return kOk;
}

// True if elements of the file are those of the Mat.
bool same_elements(const ElementType& type) {
    return type.file_size == dtype_size(type.dtype) &&
           type.descr[1] != (type.dtype == DType::s32 ? 'u' : 0);
}

template <class T>
T load(const unsigned char* p) {
    T value;
    memcpy(&value, p, sizeof(value));
    return value;
}

// An integer of the file; *fits: within 32 bits.
int32_t whole_number(const ElementType& type, const unsigned char* p, int64_t* wide, bool* fits) {
    const bool positive = type.descr[1] == 'u';
    *wide = type.file_size == 2   ? positive ? load<uint16_t>(p) : load<int16_t>(p)
              : type.file_size == 4 ? positive ? (int64_t)load<uint32_t>(p) : load<int32_t>(p)
                                    : load<int64_t>(p);
    *fits = *wide >= (positive ? 0 : INT32_MIN) && *wide <= INT32_MAX;
    return (int32_t)*wide;
}

// `count` elements of the file into the Mat's type.
int read_elements(const std::string& path, FILE* fp, const ElementType& type, size_t count,
                  unsigned char* to) {
    const size_t kStep = 1 << 16;
    if (same_elements(type))
        return fread(to, type.file_size, count, fp) == count ? (int)kOk
                                                             : fail(path, "cannot be read");
    std::vector<unsigned char> buffer(kStep * type.file_size);
    for (size_t done = 0; done < count;) {
        const size_t step = count - done < kStep ? count - done : kStep;
        if (fread(buffer.data(), type.file_size, step, fp) != step)
            return fail(path, "cannot be read");
        for (size_t i = 0; i < step; i++, done++) {
            const unsigned char* from = &buffer[i * type.file_size];
            if (type.dtype == DType::f32) {
                ((float*)to)[done] = type.file_size == 8 ? (float)load<double>(from)
                                                         : float16_to_float32(load<uint16_t>(from));
                continue;
            }
            int64_t wide;
            bool fits;
            ((int32_t*)to)[done] = whole_number(type, from, &wide, &fits);
            if (!fits)
                return fail(path, "element " + std::to_string(done) + " is " +
                                      std::to_string(wide) + ", which does not fit 32 bits");
        }
    }
    return kOk;
}

unsigned char* channel_data(const Mat& m, int b, int q) {
    return (unsigned char*)m.data + ((size_t)b * m.nstep + (size_t)q * m.cstep) * m.elemsize;
}

// Bytes from the current position to the end of a regular file.
int bytes_left(const std::string& path, FILE* fp, uint64_t* left) {
    struct stat st;
    const long position = ftell(fp);
    if (position < 0 || fstat(fileno(fp), &st) != 0 || !S_ISREG(st.st_mode))
        return fail(path, "not a regular file");
    *left = st.st_size > position ? (uint64_t)(st.st_size - position) : 0;
    return kOk;
}

// The blob for an array that `array` describes.
int make_shape(const std::string& path, const Header& header, const TensorSpec& array, DType dtype,
               Shape* shape) {
    std::vector<uint64_t> axes = header.shape;
    if (header.fortran_order)
        return fail(path, "the array is in Fortran order; save np.ascontiguousarray(array)");
    if (axes.size() != (size_t)array.rank)
        return fail(path, "shape " + shape_of(header) + ": expected " + std::to_string(array.rank) +
                              " axes");
    for (const uint64_t& v : axes)
        if (v > INT_MAX)
            return fail(path, "shape " + shape_of(header) +
                                  ": each axis must have at most 2^31-1 elements");
    *shape = Shape(1, 1, 1, 1, dtype);
    if (array.batch && !axes.empty()) {
        shape->n = (int)axes[0];
        axes.erase(axes.begin());
    }
    if (axes.empty()) axes.push_back(1);
    while (axes.size() > 4) {  // the outermost ones share an axis of the blob
        if (axes[1] != 0 && axes[0] > INT_MAX / axes[1])
            return fail(path, "shape " + shape_of(header) + " is too large");
        axes[1] *= axes[0];
        axes.erase(axes.begin());
    }
    shape->dims = (int)axes.size();
    for (int i = 0; i < shape->dims; i++) shape->set_size(i, (int)axes[i]);
    return kOk;
}

int read_values(const std::string& path, FILE* fp, const Header& header, const ElementType& type,
                const Shape& shape, Mat* mat) {
    uint64_t left = 0;
    QUOLL_RETURN_IF_ERROR(bytes_left(path, fp, &left));
    double bytes = (double)type.file_size;
    for (uint64_t v : header.shape) bytes *= (double)v;
    if (bytes > (double)left) {
        char text[160];
        snprintf(text, sizeof(text), "shape %s needs %.0f bytes, but only %llu follow the header",
                 shape_of(header).c_str(), bytes, (unsigned long long)left);
        return fail(path, text);
    }
    if (shape.total() == 0) {  // an array without values: sizes alone
        *mat = Mat();
        mat->dims = shape.dims, mat->w = shape.w, mat->h = shape.h, mat->d = shape.d;
        mat->c = shape.c, mat->n = shape.n;
        mat->dtype = shape.dtype, mat->elemsize = dtype_size(shape.dtype), mat->elempack = 1;
        return kOk;
    }
    mat->create(shape);
    if (mat->empty()) return fail(path, "out of memory");
    const size_t count = (size_t)mat->w * mat->h * mat->d;
    for (int b = 0; b < mat->n; b++)
        for (int q = 0; q < mat->c; q++)
            QUOLL_RETURN_IF_ERROR(read_elements(path, fp, type, count, channel_data(*mat, b, q)));
    return kOk;
}

int open_array(const std::string& path, File* file, Header* header) {
    file->reset(fopen(path.c_str(), "rb"));
    if (!*file) return fail(path, std::string("cannot be opened: ") + strerror(errno));
    return read_header(path, file->get(), header);
}

// NumPy's name for an array's element type. Those that NumPy lacks are the values as float32, or as
// integers of a byte.
std::string descr_of(const ElementInfo& type) {
    const bool floats = type.dtype == DType::f32, half = type.number == 10;
    const int bytes = floats ? std::max(half ? 2 : 4, type.bits / 8) : std::max(1, type.bits / 8);
    const char kind = floats ? 'f' : type.number == 9 ? 'b' : type.is_signed ? 'i' : 'u';
    return std::string(bytes == 1 ? "|" : "<") + kind + std::to_string(bytes);
}

// The number of the first value that the type cannot be; -1: none.
template <class T>
int64_t first_misfit(const T* values, size_t count, const ElementInfo& type) {
    for (size_t i = 0; i < count; i++) {
        const T v = values[i];
        const T kept = type.dtype == DType::f32 ? (T)type.format.round((float)v, true)
                                                : (T)low_bits(type, (uint32_t)v);
        if (v != kept && v == v) return (int64_t)i;
    }
    return -1;
}

// An error if a value is not one of a type of few bits.
int expect_values_of(const std::string& path, const ElementInfo& type, const Mat& m) {
    const bool checked = type.dtype == DType::f32 ? type.has_format() && type.bits <= 8
                                                  : type.bits <= 16 && type.bits != 8;
    const size_t count = (size_t)m.w * m.h * m.d;
    for (int b = 0; b < m.n && checked && !m.empty(); b++) {
        for (int q = 0; q < m.c; q++) {
            const void* p = channel_data(m, b, q);
            const int64_t at =
                m.dtype == DType::f32   ? first_misfit((const float*)p, count, type)
                : m.dtype == DType::s32 ? first_misfit((const int32_t*)p, count, type)
                : m.dtype == DType::s8  ? first_misfit((const int8_t*)p, count, type)
                                        : first_misfit((const uint8_t*)p, count, type);
            if (at >= 0)
                return fail(path, "element " + std::to_string(((size_t)b * m.c + q) * count + at) +
                                      " is no value of " + type.name);
        }
    }
    return kOk;
}

}  // namespace

int read_npy(const std::string& path, bool batch, Mat* mat) {
    File file;
    Header header;
    const ElementType* type = nullptr;
    Shape shape;
    QUOLL_RETURN_IF_ERROR(open_array(path, &file, &header));
    QUOLL_RETURN_IF_ERROR(find_type(path, header, &type));
    QUOLL_RETURN_IF_ERROR(make_shape(path, header, batch, type->dtype, &shape));
    return read_values(path, file.get(), header, *type, shape, mat);
}

int read_npy(const std::string& path, const TensorSpec& array, Mat* mat) {
    File file;
    Header header;
    QUOLL_RETURN_IF_ERROR(open_array(path, &file, &header));
    const ElementInfo* wanted = element_info(array.element_type);
    const ElementType* type = nullptr;
    for (const ElementType& t : kElementTypes)
        if (header.descr == t.descr && wanted && t.dtype == wanted->dtype) type = &t;
    if (!type)
        return fail(path, "elements of type '" + header.descr + "': expected '" +
                              (wanted ? descr_of(*wanted) : "?") + "' or one of its kind");
    Shape shape;
    QUOLL_RETURN_IF_ERROR(make_shape(path, header, array, type->dtype, &shape));
    QUOLL_RETURN_IF_ERROR(read_values(path, file.get(), header, *type, shape, mat));
    return expect_values_of(path, *wanted, *mat);
}

// "{'descr': '<f4', ...}" padded so that the data begins at a multiple of 64 bytes.
static std::string header_of(const std::string& descr, const std::vector<int>& axes) {
    std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
    for (int v : axes) text += std::to_string(v) + ", ";
    if (text.back() == ' ') text.pop_back();
    text += "), }";
    const size_t before = kMagicSize + 4;
    text.append(63 - (before + text.size()) % 64, ' ');
    text += '\n';
    std::string header(kMagic, kMagicSize);
    header += '\x01';
    header += '\0';
    header += (char)(text.size() & 255);
    header += (char)(text.size() >> 8);
    return header + text;
}

// A channel as elements of the file.
static void convert_elements(const unsigned char* from, size_t count, DType dtype,
                             const std::string& descr, std::vector<unsigned char>* to) {
    const size_t size = (size_t)(descr[2] - '0');
    to->resize(count * size);
    if (size == dtype_size(dtype)) {
        memcpy(to->data(), from, count * size);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned char* p = to->data() + i * size;
        if (dtype == DType::f32 && size == 8) {
            const double value = ((const float*)from)[i];
            memcpy(p, &value, size);
        } else if (dtype == DType::f32) {
            const uint16_t half = float32_to_float16(((const float*)from)[i]);
            memcpy(p, &half, size);
        } else {  // little-endian: the low bytes come first
            const int64_t value = ((const int32_t*)from)[i];
            memcpy(p, &value, size);
        }
    }
}

static int write_array(const std::string& path, const Mat& m, const std::string& descr,
                       const std::vector<int>& axes) {
    const std::string header = header_of(descr, axes);
    FILE* fp = fopen(path.c_str(), "wb");
    if (!fp) return fail(path, std::string("cannot be created: ") + strerror(errno));
    bool ok = fwrite(header.data(), 1, header.size(), fp) == header.size();
    const size_t count = (size_t)m.w * m.h * m.d;
    std::vector<unsigned char> bytes;
    for (int b = 0; b < m.n && ok && count; b++) {
        for (int q = 0; q < m.c && ok; q++) {
            convert_elements(channel_data(m, b, q), count, m.dtype, descr, &bytes);
            ok = fwrite(bytes.data(), 1, bytes.size(), fp) == bytes.size();
        }
    }
    ok = fclose(fp) == 0 && ok;
    return ok ? (int)kOk : fail(path, std::string("cannot be written: ") + strerror(errno));
}

// Planar, and of a type that files have.
static int prepare(const std::string& path, const Mat& mat, Mat* m) {
    if (mat.dims < 1 || mat.elempack != 1)
        return fail(path, "a blob of " + std::to_string(mat.dims) + " axes and elempack " +
                              std::to_string(mat.elempack));
    *m = mat;
    if (mat.dtype != DType::bf16 || mat.empty()) return kOk;
    cast_bfloat16_to_float32(mat, *m);
    return m->empty() ? fail(path, "out of memory") : (int)kOk;
}

static std::vector<int> axes_of_blob(const Mat& m, bool batch) {
    const Shape shape = m.logical_shape();
    std::vector<int> axes;
    if (batch) axes.push_back(m.n);
    for (int i = 0; i < m.dims; i++) axes.push_back(shape.size(i));
    return axes;
}

int write_npy(const std::string& path, const Mat& mat) {
    Mat m;
    QUOLL_RETURN_IF_ERROR(prepare(path, mat, &m));
    const char* descr = m.dtype == DType::s32   ? "<i4"
                        : m.dtype == DType::s8  ? "|i1"
                        : m.dtype == DType::u8  ? "|u1"
                        : m.dtype == DType::f16 ? "<f2"
                                                : "<f4";
    return write_array(path, m, descr, axes_of_blob(m, m.n != 1));
}

int write_npy(const std::string& path, const TensorSpec& array, const Mat& mat) {
    Mat m;
    QUOLL_RETURN_IF_ERROR(prepare(path, mat, &m));
    const ElementInfo* type = element_info(array.element_type);
    if (!type || type->dtype != m.dtype)
        return fail(path, std::string("a blob of ") + dtype_name(m.dtype) + " for an array of " +
                              (type ? type->name : "an unknown type"));
    // An input may have more items than the model says, which not every output can hold.
    if (!array.batch && m.n != 1)
        return fail(path, "a batch of " + std::to_string(m.n) + " for an array that has none");
    std::vector<int> axes = axes_of_blob(m, array.batch != 0);
    int64_t total = 1, known = 1;
    for (int v : axes) total *= v;
    if (array.any_rank) {
        if (array.rank == 0 && axes.size() == 1 && axes[0] == 1) axes.clear();
    } else if ((int)axes.size() != array.rank) {
        // Axes share an axis of the blob: their sizes are those that were said, but for one.
        int open = -1;
        axes.assign((size_t)array.rank, 0);
        for (int i = 0; i < array.rank; i++) {
            axes[i] = i == 0 && array.batch ? m.n : array.size(i);
            if (axes[i] >= 0)
                known *= axes[i];
            else if (open >= 0)
                return fail(path, "the sizes of its axes are not known");
            else
                open = i;
        }
        if (open >= 0 && known > 0) axes[open] = (int)(total / known), known *= axes[open];
        if (known != total)
            return fail(path,
                        std::to_string(total) + " values for an array of " + std::to_string(known));
    }
    return write_array(path, m, descr_of(*type), axes);
}

}  // namespace quoll
