#include "quantize/table_file.h"

#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <sstream>

#include "common/model_files.h"
#include "graph/param_file.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

const char kWeights[] = "_param_0";

bool ends_with_weights(const std::string& name) {
    const size_t length = sizeof(kWeights) - 1;
    return name.size() > length && name.compare(name.size() - length, length, kWeights) == 0;
}

// A number in the C locale's form.
bool parse_number(const std::string& word, float* value) {
    std::istringstream text(word);
    text.imbue(std::locale::classic());
    return (text >> *value) && text.eof() && std::isfinite(*value);
}

std::string number_text(float value) {
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text.precision(9);
    text << value;
    return text.str();
}

}  // namespace

int parse_table(const std::string& text, const std::string& path, ScaleTable* table) {
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); number++) {
        std::istringstream words(line);
        std::string name, word;
        if (!(words >> name) || name[0] == '#') continue;
        std::vector<float> values;
        while (words >> word) {
            float value = 0;
            if (!parse_number(word, &value) || value <= 0.f) {
                QUOLL_LOGE("%s line %d: expected positive numbers behind '%s', got '%s'",
                           path.c_str(), number, name.c_str(), word.c_str());
                return kError;
            }
            values.push_back(value);
        }
        if (values.empty()) {
            QUOLL_LOGE("%s line %d: no scales behind '%s'", path.c_str(), number, name.c_str());
            return kError;
        }
        const bool weights = ends_with_weights(name);
        const std::string layer =
            weights ? name.substr(0, name.size() - (sizeof(kWeights) - 1)) : name;
        if (!table->weights.count(layer) && !table->inputs.count(layer))
            table->order.push_back(layer);
        (weights ? table->weights : table->inputs)[layer] = values;
    }
    if (!table->empty()) return kOk;
    QUOLL_LOGE("%s has no scales: expected lines of a layer's name and numbers", path.c_str());
    return kError;
}

std::string table_text(const ScaleTable& table) {
    std::string text;
    for (const auto* part : {&table.weights, &table.inputs}) {
        for (const std::string& layer : table.order) {
            const auto values = part->find(layer);
            if (values == part->end()) continue;
            text += layer + (part == &table.weights ? kWeights : "");
            for (float value : values->second) text += " " + number_text(value);
            text += "\n";
        }
    }
    return text;
}

int read_table(const std::string& path, ScaleTable* table) {
    std::string text;
    QUOLL_RETURN_IF_ERROR(read_text(path, "a table of scales", &text));
    return parse_table(text, path, table);
}

int parse_range_log(const std::string& text, const std::string& path,
                    std::map<std::string, ValueRange>* ranges) {
    std::istringstream lines(text);
    std::string line;
    const std::string mark = "@@";
    for (int number = 1; std::getline(lines, line); number++) {
        const size_t last = line.rfind(mark);
        if (last == std::string::npos) continue;
        const size_t first = last > 0 ? line.rfind(mark, last - 1) : std::string::npos;
        const size_t begin = first == std::string::npos ? 0 : first + mark.size();
        std::string numbers = line.substr(last + mark.size());
        while (!numbers.empty() && isspace((unsigned char)numbers.back())) numbers.pop_back();
        const size_t comma = numbers.find(',');
        ValueRange range;
        if (comma == std::string::npos || !parse_number(numbers.substr(0, comma), &range.low) ||
            !parse_number(numbers.substr(comma + 1), &range.high) || !range.seen()) {
            QUOLL_LOGE("%s line %d: expected LOW,HIGH behind '@@', got '%s'", path.c_str(), number,
                       numbers.c_str());
            return kError;
        }
        (*ranges)[line.substr(begin, last - begin)].include(range);
    }
    if (!ranges->empty()) return kOk;
    QUOLL_LOGE("%s has no ranges: expected lines NAME@@LOW,HIGH", path.c_str());
    return kError;
}

}  // namespace quoll
