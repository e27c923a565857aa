#include "onnx/tensor_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "layer/common/elementtype.h"
#include "onnx/limits.h"

namespace quoll {
namespace onnx_tool {

namespace {

// Bytes of `count` values as raw_data has them; those of fewer bits than a byte are packed.
size_t raw_size(ElementType type, size_t count) { return (count * (size_t)bits_of(type) + 7) / 8; }

// The bits of value number i of a type of at most 8, which start at its lowest bit. Where one may
// begin in a byte and end in the next (6 bits), none is at the end of the data.
unsigned code_at(const unsigned char* raw, size_t i, int bits) {
    const size_t at = i * (size_t)bits, shift = at % 8;
    unsigned both = raw[at / 8];
    if (shift + (size_t)bits > 8) both |= (unsigned)raw[at / 8 + 1] << 8;
    return both >> shift & ((1u << bits) - 1);
}

template <class T>
T load(const unsigned char* p) {
    T v;
    memcpy(&v, p, sizeof(v));
    return v;
}

// Value number i of little-endian raw data into *to.
void set_from_raw(const unsigned char* raw, size_t i, Tensor* to) {
    switch (to->type) {
        case ElementType::kDouble:
            to->set_float(i, (float)load<double>(raw + i * 8));
            break;
        case ElementType::kFloat16:
            to->set_float(i, float16_to_float32(load<uint16_t>(raw + i * 2)));
            break;
        case ElementType::kBfloat16:
            to->set_float(i, bfloat16_to_float32(load<uint16_t>(raw + i * 2)));
            break;
        case ElementType::kInt32:
            to->set_int(i, load<int32_t>(raw + i * 4));
            break;
        case ElementType::kUint32:
            to->set_int(i, load<uint32_t>(raw + i * 4));
            break;
        case ElementType::kInt16:
            to->set_int(i, load<int16_t>(raw + i * 2));
            break;
        case ElementType::kUint16:
            to->set_int(i, load<uint16_t>(raw + i * 2));
            break;
        default: {
            const ElementInfo& info = *element_info((int)to->type);
            const unsigned code = code_at(raw, i, info.bits);
            if (is_float(to->type))
                to->set_float(i, info.format.decode(code));
            else
                to->set_int(i, low_bits(info, code));
        }
    }
}

bool same_as_held(ElementType type) {
    return type == ElementType::kFloat || type == ElementType::kInt64 ||
           type == ElementType::kUint64 || type == ElementType::kUint8 ||
           type == ElementType::kInt8 || type == ElementType::kBool;
}

// The fields that hold numbers outside of raw_data.
size_t typed_count(const onnx::TensorProto& from, ElementType type) {
    switch (type) {
        case ElementType::kFloat:
            return (size_t)from.float_data_size();
        case ElementType::kDouble:
            return (size_t)from.double_data_size();
        case ElementType::kInt64:
            return (size_t)from.int64_data_size();
        case ElementType::kUint32:
        case ElementType::kUint64:
            return (size_t)from.uint64_data_size();
        default:
            return (size_t)from.int32_data_size();
    }
}

void set_from_typed(const onnx::TensorProto& from, size_t n, Tensor* to) {
    const int i = (int)n;
    switch (to->type) {
        case ElementType::kUint32:
        case ElementType::kUint64:
            to->set_int(n, (int64_t)from.uint64_data(i));
            break;
        case ElementType::kFloat16:
            to->set_float(n, float16_to_float32((unsigned short)from.int32_data(i)));
            break;
        case ElementType::kBfloat16:
            to->set_float(n, bfloat16_to_float32((unsigned short)from.int32_data(i)));
            break;
        default:
            if (is_small_float(to->type))
                to->set_float(
                    n, element_info((int)to->type)->format.decode((unsigned)from.int32_data(i)));
            else
                to->set_int(n, from.int32_data(i));
    }
}

// Whether several values share an entry of int32_data.
bool is_packed(ElementType type) { return bits_of(type) == 2 || bits_of(type) == 4; }

}  // namespace

bool TensorReader::fail(const onnx::TensorProto& from, const std::string& why) {
    *why_ = "tensor " + from.name() + ": " + why;
    return false;
}

bool TensorReader::read(const onnx::TensorProto& from, Tensor* to, const RawData* outside) {
    const ElementType type = (ElementType)from.data_type();
    const std::vector<int64_t> dims(from.dims().begin(), from.dims().end());
    if (!is_supported(type)) {
        // Complex numbers and the like are no error as long as nothing computes with them.
        to->type = type;
        to->dims = dims;
        return true;
    }
    const int64_t count = element_count(dims);
    if (count < 0) return fail(from, "negative sizes, or more than 2^31 - 1 values");
    if (type == ElementType::kString) {
        *to = Tensor();
        to->type = type, to->dims = dims;
        return strings(from, to);
    }
    const size_t size = raw_size(type, (size_t)count);
    if (from.data_location() == onnx::TensorProto::EXTERNAL) {
        std::string bytes;
        if (!external(from, size, &bytes)) return false;
        Limits::add_bytes_of_file((int64_t)size);
        *to = Tensor::unset(type, dims);
        return raw(from, RawData(bytes), to);
    }
    // Checked before anything is allocated: sizes of a damaged file may be absurd.
    const bool is_raw = outside || from.has_raw_data();
    const RawData bytes = outside ? *outside : RawData(from.raw_data());
    const size_t have = is_raw ? bytes.size : typed_count(from, type);
    const size_t need = is_raw || is_packed(type) ? size : (size_t)count;
    if (have != need)
        return fail(from, "needs " + std::to_string(need) + (is_raw ? " bytes" : " values") +
                              ", got " + std::to_string(have));
    Limits::add_bytes_of_file((int64_t)size);
    if (outside && keeper_ && same_as_held(type) && type != ElementType::kBool) {
        *to = Tensor::in_file(type, dims, outside->data, keeper_);
        return true;
    }
    *to = Tensor::unset(type, dims);
    return is_raw ? raw(from, bytes, to) : typed(from, to);
}

bool TensorReader::raw(const onnx::TensorProto& from, const RawData& bytes, Tensor* to) {
    const size_t count = to->count(), size = raw_size(to->type, count);
    if (bytes.size != size)
        return fail(from,
                    "needs " + std::to_string(size) + " bytes, got " + std::to_string(bytes.size));
    if (same_as_held(to->type)) {
        if (size) memcpy(to->bytes(), bytes.data, size);
    } else if (to->type == ElementType::kFloat16 && count > 0) {
        Mat half((int)count, const_cast<unsigned char*>(bytes.data), (size_t)2u), wide;
        half.dtype = DType::f16;
        cast_float16_to_float32(half, wide);
        if (wide.empty()) return fail(from, "out of memory");
        memcpy(to->bytes(), wide.data, count * 4);
    } else {
        for (size_t i = 0; i < count; i++) set_from_raw(bytes.data, i, to);
    }
    if (to->type == ElementType::kBool)
        for (size_t i = 0; i < count; i++) to->bytes()[i] = to->bytes()[i] != 0;
    return true;
}

bool TensorReader::strings(const onnx::TensorProto& from, Tensor* to) {
    if ((size_t)from.string_data_size() != to->count())
        return fail(from, "needs " + std::to_string(to->count()) + " strings, got " +
                              std::to_string(from.string_data_size()));
    *to = Tensor::unset(to->type, to->dims);
    for (int i = 0; i < from.string_data_size(); i++)
        to->set_int((size_t)i, strings_->place_of(from.string_data(i)));
    return true;
}

bool TensorReader::typed(const onnx::TensorProto& from, Tensor* to) {
    if (is_packed(to->type)) {
        std::string bytes;
        for (int v : from.int32_data()) bytes += (char)v;
        return raw(from, RawData(bytes), to);
    }
    const size_t count = to->count();
    if (to->type == ElementType::kFloat && count)
        memcpy(to->bytes(), from.float_data().data(), count * sizeof(float));
    else if (to->type == ElementType::kInt64 && count)
        memcpy(to->bytes(), from.int64_data().data(), count * sizeof(int64_t));
    else if (to->type == ElementType::kDouble)
        std::copy_n(from.double_data().data(), count, (float*)to->bytes());
    else
        for (size_t i = 0; i < count; i++) set_from_typed(from, i, to);
    return true;
}

// Symbolic links resolved. A file that is not there is another error.
static bool lies_within(const std::string& path, const std::string& folder) {
    const std::unique_ptr<char, void (*)(void*)> file(realpath(path.c_str(), nullptr), free);
    const std::unique_ptr<char, void (*)(void*)> top(realpath(folder.c_str(), nullptr), free);
    if (!file || !top) return file == nullptr;
    const std::string below = std::string(top.get()) == "/" ? "/" : std::string(top.get()) + "/";
    return std::string(file.get()).compare(0, below.size(), below) == 0;
}

bool TensorReader::external(const onnx::TensorProto& from, size_t size, std::string* bytes) {
    std::string location;
    unsigned long long offset = 0, length = size;
    for (const auto& entry : from.external_data()) {
        if (entry.key() == "location") location = entry.value();
        if (entry.key() == "offset") offset = strtoull(entry.value().c_str(), nullptr, 10);
        if (entry.key() == "length") length = strtoull(entry.value().c_str(), nullptr, 10);
    }
    // A model may not make the converter read files elsewhere.
    if (folder_.empty()) return fail(from, "external data of a model without a folder");
    if (location.empty() || location[0] == '/' ||
        ("/" + location + "/").find("/../") != std::string::npos)
        return fail(from, "external data at '" + location + "': expected a file beside the model");
    if (length != size)
        return fail(from, "needs " + std::to_string(size) + " bytes, external data has " +
                              std::to_string(length));
    const std::string path = folder_ + "/" + location;
    if (!lies_within(path, folder_))
        return fail(from, "external data at '" + location +
                              "', a symbolic link: expected a file beside the model");
    // A pipe would keep the program waiting for one who writes.
    struct stat info;
    if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
        return fail(from, "external data at '" + location +
                              "': expected a file, got a pipe, device or folder");
    const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "rb"), fclose);
    if (!file) return fail(from, "external data file " + path + " cannot be opened");
    if (fseeko(file.get(), 0, SEEK_END) != 0 || (unsigned long long)ftello(file.get()) < size ||
        (unsigned long long)ftello(file.get()) - size < offset)
        return fail(from, "external data file " + path + " is too short");
    bytes->resize(size);
    if (fseeko(file.get(), (off_t)offset, SEEK_SET) != 0 ||
        (size && fread(&(*bytes)[0], 1, size, file.get()) != size))
        return fail(from, "external data file " + path + " cannot be read");
    files_.insert(path);
    return true;
}

}  // namespace onnx_tool
}  // namespace quoll
