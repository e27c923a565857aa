// The large tensors of an ONNX file where they lie, so that they are copied only once.
#ifndef QUOLL_TOOLS_ONNX_RAW_DATA_H
#define QUOLL_TOOLS_ONNX_RAW_DATA_H

#include <stddef.h>

#include <memory>
#include <string>
#include <unordered_map>
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

struct OutsideData;
// What was taken out of a node: of attribute k, which is a tensor or a graph.
struct OutsideNode {
    std::vector<RawData> tensors;
    std::unordered_map<size_t, std::shared_ptr<OutsideData>> graphs;
};
// What was taken out of a graph: of initializer i and of node i. Null, or not there, for what stays
// in. keeper: as long as there is one, they lie there; else as long as the model is read.
struct OutsideData {
    std::shared_ptr<const void> keeper;
    std::vector<RawData> initializers;
    std::unordered_map<size_t, OutsideNode> nodes;
};

// Splits a ModelProto: *rest is it without the raw_data of the large initializers of its graph and
// its subgraphs, and of the large tensors that are attributes of their nodes (Constant). False for
// what is written in an unusual way, or is no such message at all.
bool take_raw_data(const unsigned char* model, size_t size, std::string* rest, OutsideData* found);

}  // namespace onnx_tool
}  // namespace quoll

#endif
