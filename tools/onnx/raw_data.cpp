#include "onnx/raw_data.h"

#include <stdint.h>

namespace quoll {
namespace onnx_tool {

namespace {

// Numbers of fields in onnx.proto.
const int kModelGraph = 7, kGraphInitializer = 5, kTensorRawData = 9;
// Smaller ones are copied as they come.
const size_t kLeastOutside = 4096;
// Of a field with a length.
const int kBytes = 2;

struct Field {
    int number = 0, type = 0;
    const unsigned char* begin = nullptr;  // of its tag
    RawData value;                         // without tag and length
};

// The fields of a message in protobuf's wire format, one by one.
class Fields {
public:
    explicit Fields(const RawData& message)
        : at_(message.data), end_(message.data + message.size) {}

    // False at the end, and at what cannot be read; ok() tells which.
    bool next(Field* field) {
        if (at_ == end_ || !ok_) return false;
        field->begin = at_;
        uint64_t tag = 0, length = 0;
        ok_ = varint(&tag) && tag >> 3 != 0 && tag >> 3 <= 1u << 29;
        field->number = (int)(tag >> 3), field->type = (int)(tag & 7);
        const unsigned char* value = at_;
        if (ok_ && field->type == 0) {
            ok_ = varint(&length), length = 0;
        } else if (ok_ && field->type == kBytes) {
            ok_ = varint(&length);
            value = at_;
        } else {
            length = field->type == 1 ? 8 : 4;
            ok_ = ok_ && (field->type == 1 || field->type == 5);  // no groups
        }
        ok_ = ok_ && length <= (uint64_t)(end_ - at_);
        if (!ok_) return false;
        at_ += length;
        field->value = RawData(value, (size_t)(at_ - value));
        return true;
    }
    bool ok() const { return ok_; }
    const unsigned char* at() const { return at_; }

private:
    bool varint(uint64_t* value) {
        for (int shift = 0; shift < 64 && at_ < end_; shift += 7) {
            *value |= (uint64_t)(*at_ & 127) << shift;
            if (!(*at_++ & 128)) return true;
        }
        return false;
    }

    const unsigned char* at_;
    const unsigned char* end_;
    bool ok_ = true;
};

void append_varint(uint64_t value, std::string* to) {
    for (; value > 127; value >>= 7) *to += (char)(value | 128);
    *to += (char)value;
}

void append_message(int number, const std::string& message, std::string* to) {
    append_varint((uint64_t)number << 3 | kBytes, to);
    append_varint(message.size(), to);
    *to += message;
}

// Appends the fields of a message to *to, those of this number as change(value, &message) makes
// them. False if a change fails, or it cannot be read.
template <class Change>
bool rewrite(const RawData& message, int number, std::string* to, const Change& change) {
    Fields fields(message);
    for (Field field; fields.next(&field);) {
        if (field.number != number || field.type != kBytes)
            to->append((const char*)field.begin, (size_t)(fields.at() - field.begin));
        else if (!change(field.value, to))
            return false;
    }
    return fields.ok();
}

bool take_tensor(const RawData& tensor, std::string* to, RawData* found) {
    int count = 0;
    std::string rest;
    const auto take = [&](const RawData& data, std::string* kept) {
        if (count++) return false;  // the last one would count
        if (data.size >= kLeastOutside)
            *found = data;
        else
            append_message(kTensorRawData, std::string((const char*)data.data, data.size), kept);
        return true;
    };
    if (!rewrite(tensor, kTensorRawData, &rest, take)) return false;
    append_message(kGraphInitializer, rest, to);
    return true;
}

}  // namespace

bool take_raw_data(const unsigned char* model, size_t size, std::string* rest,
                   std::vector<RawData>* found) {
    return rewrite(RawData(model, size), kModelGraph, rest,
                   [&](const RawData& graph, std::string* to) {
                       std::string kept;
                       const auto take = [&](const RawData& tensor, std::string* initializers) {
                           found->emplace_back();
                           return take_tensor(tensor, initializers, &found->back());
                       };
                       if (!rewrite(graph, kGraphInitializer, &kept, take)) return false;
                       append_message(kModelGraph, kept, to);
                       return true;
                   });
}

}  // namespace onnx_tool
}  // namespace quoll
