// Strings as numbers: their places in a table of all that a model names.
#ifndef QUOLL_TOOLS_ONNX_STRING_TABLE_H
#define QUOLL_TOOLS_ONNX_STRING_TABLE_H

#include <stdint.h>

#include <map>
#include <string>
#include <vector>

namespace quoll {
namespace onnx_tool {

class StringTable {
public:
    // The place of a string, which is added if it is new.
    int64_t place_of(const std::string& text);
    std::vector<int64_t> places_of(const std::vector<std::string>& texts);
    size_t size() const { return strings_.size(); }
    // All of them, as Input and Output layers hold the table (layer/common/tensorspec.h).
    std::string text() const;

private:
    std::vector<std::string> strings_;
    std::map<std::string, int64_t> places_;
};

}  // namespace onnx_tool
}  // namespace quoll

#endif
