// The large tensors of an ONNX file where they lie, so that they are copied only once.
#ifndef QUOLL_TOOLS_ONNX_RAW_DATA_H
#define QUOLL_TOOLS_ONNX_RAW_DATA_H

#include <stddef.h>

#include <string>
#include <vector>

namespace quoll {
namespace onnx_tool {

// Bytes that somebody else owns.
struct RawData {
    const unsigned char* data = nullptr;
    size_t size = 0;
    RawData() {}
    RawData(const unsigned char* data, size_t size) : data(data), size(size) {}
    explicit RawData(const std::string& bytes)
        : RawData((const unsigned char*)bytes.data(), bytes.size()) {}
};

// Splits a ModelProto: *rest is it without the raw_data of its graph's large initializers, and
// (*found)[i] that of initializer i, null where it stays in *rest. False for what is written in an
// unusual way, or is no such message at all.
bool take_raw_data(const unsigned char* model, size_t size, std::string* rest,
                   std::vector<RawData>* found);

}  // namespace onnx_tool
}  // namespace quoll

#endif
