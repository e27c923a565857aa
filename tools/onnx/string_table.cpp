#include "onnx/string_table.h"

#include <string.h>

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

std::string StringTable::text() const {
    static const char kDigits[] = "0123456789ABCDEF";
    std::string all;
    for (const std::string& text : strings_) {
        for (char ch : text) {
            const unsigned char code = (unsigned char)ch;
            if (code < 32 || code == 127 || strchr("\",%", ch))
                all += {'%', kDigits[code >> 4], kDigits[code & 15]};
            else
                all += ch;
        }
        all += ',';
    }
    return all;
}

}  // namespace onnx_tool
}  // namespace quoll
