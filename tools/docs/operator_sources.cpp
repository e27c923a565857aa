#include "operator_sources.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

// Lines of // directly above `class NAME ...`, by name of the class.
void read_comments(const std::string& text, std::map<std::string, std::string>* comments) {
    static const std::regex declaration(R"(^(?:class|struct) (\w+)(?: final)? *[:{].*)");
    std::istringstream in(text);
    std::string comment;
    for (std::string line; std::getline(in, line);) {
        std::smatch found;
        if (line.compare(0, 2, "//") == 0) {
            comment += line.size() > 3 ? line.substr(3) + "\n" : "\n";
        } else if (std::regex_match(line, found, declaration)) {
            if (!comment.empty()) comments->emplace(found[1], comment);
            comment.clear();
        } else if (line.compare(0, 8, "template") != 0) {
            comment.clear();
        }
    }
}

// Class names by operator type.
void read_classes(const std::string& text, std::map<std::string, std::string>* classes) {
    static const std::regex defined(R"(QUOLL_DEFINE_LAYER\((\w+)\))");
    static const std::regex created(R"(create_(\w+)_layer\(\) \{\s*return new (\w+))");
    const std::sregex_iterator end;
    for (std::sregex_iterator it(text.begin(), text.end(), defined); it != end; ++it)
        (*classes)[(*it)[1]] = (*it)[1];
    for (std::sregex_iterator it(text.begin(), text.end(), created); it != end; ++it)
        (*classes)[(*it)[1]] = (*it)[2];
}

}  // namespace

bool read_operator_sources(const std::string& folder, OperatorSources* sources) {
    std::map<std::string, std::string> by_class, classes;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
        if (entry.path().extension() == ".h") read_comments(text_of(entry.path()), &by_class);
        if (entry.path().extension() == ".cpp") read_classes(text_of(entry.path()), &classes);
    }
    if (error) return fprintf(stderr, "%s: %s\n", folder.c_str(), error.message().c_str()), false;

    static const std::regex listed(R"((QUOLL_LAYER(?:_FAST)?)\(\d+, (\w+), \w+/\w+\))");
    const std::string list = text_of(fs::path(folder) / "layer_list.inc");
    bool complete = true;
    const std::sregex_iterator end;
    for (std::sregex_iterator it(list.begin(), list.end(), listed); it != end; ++it) {
        const std::string type = (*it)[2];
        if ((*it)[1] == "QUOLL_LAYER_FAST") sources->vectorized.insert(type);
        const auto comment = by_class.find(classes[type]);
        if (comment == by_class.end()) {
            fprintf(stderr, "%s: no comment above the class of %s\n", folder.c_str(), type.c_str());
            complete = false;
        } else {
            sources->comments[type] = comment->second;
        }
    }
    return complete && !sources->comments.empty();
}
