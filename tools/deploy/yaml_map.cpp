#include "deploy/yaml_map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

namespace quoll {

void YamlProblems::add(const YAML::Mark& mark, const std::string& key, const std::string& what) {
    lines_.push_back(place(mark) + (key.empty() ? "" : key + ": ") + what);
}

std::string YamlProblems::place(const YAML::Mark& mark) const {
    if (mark.is_null()) return file_ + ": ";
    return file_ + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1) +
           ": ";
}

static const char* kind_of(const YAML::Node& node) {
    if (!node.IsDefined() || node.IsNull()) return "nothing";
    return node.IsMap() ? "a mapping" : node.IsSequence() ? "a list" : "a value";
}

YamlMap::YamlMap(const YAML::Node& node, const std::string& path, YamlProblems* problems)
    : path_(path), problems_(problems), mark_(node.Mark()) {
    if (!node.IsMap()) {
        problems->add(mark_, path, std::string("expected a mapping, got ") + kind_of(node));
        return;
    }
    for (const auto& entry : node) {
        const YAML::Mark mark = entry.first.Mark();
        if (!entry.first.IsScalar()) {
            problems->add(mark, path, "a key that is no word");
            continue;
        }
        const std::string key = entry.first.Scalar();
        marks_.emplace(key, mark);
        if (!values_.emplace(key, entry.second).second)
            problems->add(mark, this->path(key), "given twice");
    }
}

std::vector<std::string> YamlMap::keys() const {
    std::vector<std::string> keys;
    for (const auto& value : values_) keys.push_back(value.first);
    return keys;
}

YAML::Node YamlMap::node(const std::string& key) {
    known_.insert(key);
    const auto found = values_.find(key);
    return found == values_.end() ? YAML::Node(YAML::NodeType::Undefined) : found->second;
}

YAML::Mark YamlMap::mark(const std::string& key) const {
    const auto found = marks_.find(key);
    return found == marks_.end() ? mark_ : found->second;
}

std::string YamlMap::path(const std::string& key) const {
    return path_.empty() ? key : path_ + "." + key;
}

void YamlMap::problem(const std::string& key, const std::string& what) const {
    problems_->add(mark(key), path(key), what);
}

std::string YamlMap::text(const std::string& key, const std::string& expected, bool required) {
    const YAML::Node value = node(key);
    if (!has(key)) {
        if (required) problem(key, "is missing, expected " + expected);
        return "";
    }
    if (value.IsScalar() && !value.Scalar().empty()) return value.Scalar();
    problem(key, "expected " + expected + ", got " + kind_of(value));
    return "";
}

std::string YamlMap::one_of(const std::string& key, const std::vector<std::string>& words) {
    const std::string word = text(key, either_of(words));
    if (word.empty()) return word;
    for (const std::string& allowed : words)
        if (word == allowed) return word;
    problem(key, "expected " + either_of(words) + ", got '" + word + "'");
    return "";
}

std::vector<YamlText> YamlMap::texts(const std::string& key, const std::string& expected,
                                     bool required) {
    const YAML::Node value = node(key);
    std::vector<YamlText> texts;
    if (!has(key)) {
        if (required) problem(key, "is missing, expected " + expected);
        return texts;
    }
    if (value.IsScalar()) texts.push_back({value.Scalar(), value.Mark()});
    bool right = value.IsScalar() || value.IsSequence();
    for (size_t i = 0; value.IsSequence() && i < value.size(); i++) {
        const YAML::Node item = value[i];
        std::string joined = item.IsScalar() ? item.Scalar() : "";
        right &= item.IsScalar() || item.IsSequence();
        for (size_t k = 0; item.IsSequence() && k < item.size(); k++) {
            right &= item[k].IsScalar();
            if (right) joined += (k ? "," : "") + item[k].Scalar();
        }
        texts.push_back({joined, item.Mark()});
    }
    for (const YamlText& text : texts) right &= !text.text.empty();
    if (right && !texts.empty()) return texts;
    problem(key, "expected " + expected + ", got " +
                     (value.IsSequence() && !texts.empty() ? "a list of other things"
                      : value.IsSequence()                 ? "an empty list"
                                                           : kind_of(value)));
    return {};
}

bool YamlMap::number(const std::string& key, double low, double high, double* value) {
    char expected[80];
    snprintf(expected, sizeof(expected), "a number from %g to %g", low, high);
    const std::string word = text(key, expected);
    if (word.empty()) return false;
    double number;
    if (parse_real(word, &number) && number >= low && number <= high) {
        *value = number;
        return true;
    }
    problem(key, std::string("expected ") + expected + ", got '" + word + "'");
    return false;
}

void YamlMap::finish() {
    for (const auto& value : values_) {
        if (known_.count(value.first)) continue;
        problem(value.first, "is no key of this place; expected " +
                                 either_of(std::vector<std::string>(known_.begin(), known_.end())));
    }
}

std::string either_of(const std::vector<std::string>& words) {
    std::string text;
    for (size_t i = 0; i < words.size(); i++)
        text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    return text;
}

bool parse_whole(const std::string& text, int64_t low, int64_t high, int64_t* value) {
    char* end = nullptr;
    errno = 0;
    *value = strtoll(text.c_str(), &end, 10);
    return !text.empty() && *end == '\0' && errno == 0 && *value >= low && *value <= high;
}

bool parse_real(const std::string& text, double* value) {
    char* end = nullptr;
    *value = strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0' && isfinite(*value);
}

std::vector<std::string> split_commas(const std::string& text) {
    std::vector<std::string> parts;
    size_t from = 0;
    for (;;) {
        const size_t comma = text.find(',', from);
        std::string part = text.substr(from, comma == std::string::npos ? comma : comma - from);
        const size_t first = part.find_first_not_of(" \t"), last = part.find_last_not_of(" \t");
        parts.push_back(first == std::string::npos ? "" : part.substr(first, last - first + 1));
        if (comma == std::string::npos) return parts;
        from = comma + 1;
    }
}

}  // namespace quoll
