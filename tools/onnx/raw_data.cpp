#include "onnx/raw_data.h"

#include <stdint.h>

namespace quoll {
namespace onnx_tool {

namespace {

// Numbers of fields in onnx.proto.
const int kModelGraph = 7, kGraphNode = 1, kGraphInitializer = 5, kNodeAttribute = 5,
          kAttributeTensor = 5, kAttributeGraph = 6, kTensorRawData = 9;
// Subgraphs of subgraphs; what is nested deeper stays in.
const int kMostLevels = 32;
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

void append_message(int number, const RawData& message, std::string* to) {
    append_varint((uint64_t)number << 3 | kBytes, to);
    append_varint(message.size, to);
    to->append((const char*)message.data, message.size);
}

// Appends the fields of a message to *to, those for which `is` holds as change(field, &message)
// makes them. False if a change fails, or it cannot be read.
template <class Is, class Change>
bool rewrite(const RawData& message, std::string* to, const Is& is, const Change& change) {
    Fields fields(message);
    const unsigned char* kept = message.data;  // from there on nothing was appended yet
    const auto append_to = [&](const unsigned char* end) {
        to->append((const char*)kept, (size_t)(end - kept));
    };
    for (Field field; fields.next(&field);) {
        if (field.type != kBytes || !is(field)) continue;
        append_to(field.begin);
        kept = fields.at();
        if (!change(field, to)) return false;
    }
    append_to(fields.at());
    return fields.ok();
}

// Of a message in which what is looked for is field `number` of every `outer` message.
template <class Take>
bool rewrite_within(const RawData& message, int outer, int number, std::string* to,
                    const Take& take) {
    std::string rest;
    const auto is = [number](const Field& f) { return f.number == number; };
    if (!rewrite(message, &rest, is, take)) return false;
    append_message(outer, RawData(rest), to);
    return true;
}

// outer: the number under which the tensor is written.
bool take_tensor(const RawData& tensor, int outer, std::string* to, RawData* found) {
    int count = 0;
    return rewrite_within(tensor, outer, kTensorRawData, to,
                          [&](const Field& f, std::string* kept) {
                              if (count++) return false;  // the last one would count
                              if (f.value.size >= kLeastOutside)
                                  *found = f.value;
                              else
                                  append_message(kTensorRawData, f.value, kept);
                              return true;
                          });
}

// Whether the field is there, before those of higher numbers: lists of numbers, which may be long,
// come last in all files that protobuf writes; elsewhere it is protobuf's to read.
bool begins_with(const RawData& attribute, int number) {
    Fields fields(attribute);
    for (Field field; fields.next(&field) && field.number <= number;)
        if (field.number == number) return true;
    return false;
}

bool take_graph(const RawData& graph, int outer, int level, std::string* to, size_t* nodes,
                OutsideData* found);

bool take_attribute(const RawData& attribute, int level, std::string* to, OutsideNode* found) {
    found->tensors.emplace_back();
    const bool tensor = begins_with(attribute, kAttributeTensor);
    if (!tensor && (level >= kMostLevels || !begins_with(attribute, kAttributeGraph))) {
        append_message(kNodeAttribute, attribute, to);
        return true;
    }
    int count = 0;
    return rewrite_within(
        attribute, kNodeAttribute, tensor ? kAttributeTensor : kAttributeGraph, to,
        [&](const Field& f, std::string* kept) {
            if (count++) return false;  // they would be merged
            if (tensor) return take_tensor(f.value, kAttributeTensor, kept, &found->tensors.back());
            std::shared_ptr<OutsideData>& inner = found->graphs[found->tensors.size() - 1];
            inner = std::make_shared<OutsideData>();
            size_t nodes = 0;
            return take_graph(f.value, kAttributeGraph, level + 1, kept, &nodes, inner.get());
        });
}

bool take_node(const RawData& node, int level, std::string* to, OutsideNode* found) {
    return rewrite_within(node, kGraphNode, kNodeAttribute, to,
                          [&](const Field& f, std::string* kept) {
                              return take_attribute(f.value, level, kept, found);
                          });
}

// outer: the number under which the graph is written.
bool take_graph(const RawData& graph, int outer, int level, std::string* to, size_t* nodes,
                OutsideData* found) {
    std::string kept;
    const auto is = [&](const Field& f) {
        const bool small = f.number == kGraphNode && f.value.size < kLeastOutside;
        if (f.number == kGraphNode) ++*nodes;
        return f.number == kGraphInitializer || (f.number == kGraphNode && !small);
    };
    const auto take = [&](const Field& f, std::string* rest) {
        if (f.number == kGraphNode)
            return take_node(f.value, level, rest, &found->nodes[*nodes - 1]);
        found->initializers.emplace_back();
        return take_tensor(f.value, kGraphInitializer, rest, &found->initializers.back());
    };
    if (!rewrite(graph, &kept, is, take)) return false;
    append_message(outer, RawData(kept), to);
    return true;
}

}  // namespace

bool take_raw_data(const unsigned char* model, size_t size, std::string* rest, OutsideData* found) {
    size_t nodes = 0;
    return rewrite(
        RawData(model, size), rest, [](const Field& f) { return f.number == kModelGraph; },
        [&](const Field& f, std::string* to) {
            return take_graph(f.value, kModelGraph, 0, to, &nodes, found);
        });
}

}  // namespace onnx_tool
}  // namespace quoll
