// Tensors from protobuf and from data files.
#ifndef QUOLL_TOOLS_ONNX_TENSOR_READER_H
#define QUOLL_TOOLS_ONNX_TENSOR_READER_H

#include <onnx/onnx_pb.h>

#include <memory>
#include <set>
#include <string>

#include "onnx/raw_data.h"
#include "onnx/string_table.h"
#include "onnx/tensor.h"

namespace quoll {
namespace onnx_tool {

class TensorReader {
public:
    // folder: where data files lie. Strings are read as their places in the table. keeper: of data
    // outside, which tensors then may leave where it lies; null if they are to copy it.
    TensorReader(const std::string& folder, StringTable* strings,
                 const std::shared_ptr<const void>& keeper, std::string* why)
        : folder_(folder), strings_(strings), keeper_(keeper), why_(why) {}
    // False, with a message, when sizes and data do not go together or the type is not supported.
    // outside: raw_data that is not part of `from`, null if it is.
    bool read(const onnx::TensorProto& from, Tensor* to, const RawData* outside = nullptr);
    // The data files that were read.
    const std::set<std::string>& files() const { return files_; }

private:
    bool fail(const onnx::TensorProto& from, const std::string& why);
    bool external(const onnx::TensorProto& from, size_t size, std::string* bytes);
    bool raw(const onnx::TensorProto& from, const RawData& bytes, Tensor* to);
    bool strings(const onnx::TensorProto& from, Tensor* to);
    bool typed(const onnx::TensorProto& from, Tensor* to);

    const std::string folder_;
    std::set<std::string> files_;
    StringTable* strings_;
    const std::shared_ptr<const void> keeper_;
    std::string* why_;
};

}  // namespace onnx_tool
}  // namespace quoll

#endif
