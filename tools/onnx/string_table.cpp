#include "onnx/string_table.h"

namespace quoll {
namespace onnx_tool {

int64_t StringTable::place_of(const std::string& text) {
    const auto added = places_.emplace(text, (int64_t)strings_.size());
    if (added.second) strings_.push_back(text);
    return added.first->second;
}

std::vector<int64_t> StringTable::places_of(const std::vector<std::string>& texts) {
    std::vector<int64_t> places;
    for (const std::string& text : texts) places.push_back(place_of(text));
    return places;
}

std::vector<int> StringTable::bytes() const {
    std::vector<int> all;
    for (const std::string& text : strings_) {
        for (char ch : text) all.push_back((unsigned char)ch);
        all.push_back(0);
    }
    return all;
}

}  // namespace onnx_tool
}  // namespace quoll
