// Mappings of a YAML file whose keys are known, read with a message for everything that is wrong.
#ifndef QUOLL_TOOLS_DEPLOY_YAML_MAP_H
#define QUOLL_TOOLS_DEPLOY_YAML_MAP_H

#include <yaml-cpp/yaml.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace quoll {

// What is wrong with a file: "FILE:LINE:COLUMN: KEY: what", lines and columns counted from 1.
class YamlProblems {
public:
    explicit YamlProblems(const std::string& file) : file_(file) {}
    void add(const YAML::Mark& mark, const std::string& key, const std::string& what);
    std::string place(const YAML::Mark& mark) const;
    const std::vector<std::string>& lines() const { return lines_; }

private:
    const std::string file_;
    std::vector<std::string> lines_;
};

// A list's element, or a value, with its place.
struct YamlText {
    std::string text;
    YAML::Mark mark;
};

// One mapping. Values that are missing or of another kind leave the default and a problem. After
// all keys were asked for, finish() names those that nobody asked for.
class YamlMap {
public:
    // path: "models.digits", in front of the keys in messages; "" at the top.
    YamlMap(const YAML::Node& node, const std::string& path, YamlProblems* problems);

    bool has(const std::string& key) const { return values_.count(key) != 0; }
    std::vector<std::string> keys() const;
    YAML::Node node(const std::string& key);
    YAML::Mark mark(const std::string& key) const;
    std::string path(const std::string& key) const;

    // `expected` says in messages what the value should be.
    std::string text(const std::string& key, const std::string& expected, bool required = false);
    // One of these words; "" when it is missing.
    std::string one_of(const std::string& key, const std::vector<std::string>& words);
    // One value, or a list of values; a list within the list is joined by commas.
    std::vector<YamlText> texts(const std::string& key, const std::string& expected,
                                bool required = false);
    bool number(const std::string& key, double low, double high, double* value);
    void problem(const std::string& key, const std::string& what) const;
    void finish();

private:
    const std::string path_;
    YamlProblems* const problems_;
    const YAML::Mark mark_;
    std::map<std::string, YAML::Node> values_;
    std::map<std::string, YAML::Mark> marks_;
    std::set<std::string> known_;
};

// "a, b or c"
std::string either_of(const std::vector<std::string>& words);
// A whole number of decimal digits, within these bounds.
bool parse_whole(const std::string& text, int64_t low, int64_t high, int64_t* value);
bool parse_real(const std::string& text, double* value);
// The parts of "a,b,c", blanks around them left out.
std::vector<std::string> split_commas(const std::string& text);

}  // namespace quoll

#endif
