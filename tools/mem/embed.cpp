#include "embed.h"

#include <string.h>

#include <algorithm>
#include <set>

#include "quoll/log.h"
#include "quoll/net.h"

namespace quoll {

// Numbers take gcc 12 about 2 s and 130 MB of memory for each million, a string a tenth of both.
static const size_t kMostNumbers = 1 << 17;
static const size_t kNumbersPerLine = 24, kCharactersPerLine = 1024;

static bool is_letter(char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}
static bool is_digit(char ch) { return ch >= '0' && ch <= '9'; }

// The characters that identifiers have; the first may be a digit.
static std::string sanitized(std::string name) {
    for (char& ch : name)
        if (!is_letter(ch) && !is_digit(ch)) ch = '_';
    return name;
}

std::string file_identifier(const std::string& path) {
    const std::string name = sanitized(path.substr(path.rfind('/') + 1));
    return name.empty() || is_digit(name[0]) ? "_" + name : name;
}

static bool is_keyword(const std::string& word) {
    // C++20, [lex.key] and the alternative tokens.
    static const char kKeywords[] =
        " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
        "char32_t char8_t class co_await co_return co_yield compl concept const const_cast "
        "consteval constexpr constinit continue decltype default delete do double dynamic_cast "
        "else enum explicit export extern false float for friend goto if inline int long mutable "
        "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
        "register reinterpret_cast requires return short signed sizeof static static_assert "
        "static_cast struct switch template this thread_local throw true try typedef typeid "
        "typename union unsigned using virtual void volatile wchar_t while xor xor_eq ";
    return strstr(kKeywords, (" " + word + " ").c_str()) != nullptr;
}

static std::vector<std::string> namespace_parts(const std::string& text) {
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t at; (at = text.find("::", begin)) != std::string::npos; begin = at + 2)
        parts.push_back(text.substr(begin, at - begin));
    parts.push_back(text.substr(begin));
    return parts;
}

bool is_namespace(const std::string& text) {
    for (const std::string& part : namespace_parts(text)) {
        if (part.empty() || is_digit(part[0]) || part != sanitized(part) || is_keyword(part))
            return false;
    }
    return true;
}

std::vector<std::string> unique_identifiers(const std::vector<std::string>& names) {
    std::vector<std::string> identifiers(names.size());
    std::set<std::string> taken;
    for (size_t i = 0; i < names.size(); i++)
        if (names[i] == sanitized(names[i]) && taken.insert(names[i]).second)
            identifiers[i] = names[i];
    for (size_t i = 0; i < names.size(); i++) {
        if (!identifiers[i].empty()) continue;
        std::string word = sanitized(names[i]);
        while (!taken.insert(word).second) word += "_" + std::to_string(i);
        identifiers[i] = word;
    }
    return identifiers;
}

namespace {

// A header between its guards and namespaces.
class Header {
public:
    Header(FILE* fp, const Embedding& names, const std::string& kind) : fp_(fp) {
        if (!names.name_space.empty()) spaces_ = namespace_parts(names.name_space);
        std::string guard = "QUOLL_EMBEDDED";
        for (const std::string& space : spaces_) guard += "_" + space;
        guard += "_" + names.param + "_" + kind + "_H";
        fprintf(fp, "#ifndef %s\n#define %s\n\n", guard.c_str(), guard.c_str());
    }
    void open(const std::string& space) {
        spaces_.push_back(space);
        open();
    }
    void open() {
        for (const std::string& space : spaces_) fprintf(fp_, "namespace %s {\n", space.c_str());
    }
    int finish() {
        for (size_t i = spaces_.size(); i-- > 0;)
            fprintf(fp_, "}  // namespace %s\n", spaces_[i].c_str());
        fputs("\n#endif\n", fp_);
        if (!fflush(fp_) && !ferror(fp_)) return 0;
        QUOLL_LOGE("a header could not be written to its end");
        return -1;
    }

private:
    FILE* fp_;
    std::vector<std::string> spaces_;
};

void write_enum(FILE* fp, const char* type, const char* prefix,
                const std::vector<std::string>& identifiers, int first) {
    fprintf(fp, "\nenum %s {\n", type);
    for (size_t i = 0; i < identifiers.size(); i++)
        if (!identifiers[i].empty())
            fprintf(fp, "    %s_%s = %d,\n", prefix, identifiers[i].c_str(), first + (int)i);
    fputs("};\n", fp);
}

void write_numbers(FILE* fp, const std::string& name, Bytes bytes) {
    fprintf(fp, "alignas(64) static const unsigned char %s[%zu] = {", name.c_str(), bytes.size);
    std::string line;
    for (size_t i = 0; i < bytes.size; i++) {
        line += (i % kNumbersPerLine == 0 ? "\n    " : "") + std::to_string(bytes.data[i]) + ",";
        if (i % kNumbersPerLine + 1 == kNumbersPerLine || i + 1 == bytes.size) {
            fwrite(line.data(), 1, line.size(), fp);
            line.clear();
        }
    }
    fputs("\n};\n", fp);
}

// A string has a zero at its end that the array must not count.
void write_string(FILE* fp, const std::string& name, Bytes bytes) {
    const char* n = name.c_str();
    fputs(
        "#if defined(__GNUC__)\n#pragma GCC diagnostic push\n"
        "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
        "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n#endif\n",
        fp);
    fprintf(fp, "alignas(64) static const unsigned char %s_text[%zu] =", n, bytes.size + 1);
    std::string line;
    for (size_t i = 0; i < bytes.size; i++) {
        const int v = bytes.data[i];
        if (i % kCharactersPerLine == 0) line += "\n    \"";
        const char octal[4] = {'\\', char('0' + (v >> 6)), char('0' + (v >> 3 & 7)),
                               char('0' + (v & 7))};
        line.append(octal, 4);
        if (i % kCharactersPerLine + 1 == kCharactersPerLine || i + 1 == bytes.size) {
            line += '"';
            fwrite(line.data(), 1, line.size(), fp);
            line.clear();
        }
    }
    fprintf(fp,
            ";\nstatic const unsigned char (&%s)[%zu] =\n"
            "    reinterpret_cast<const unsigned char (&)[%zu]>(%s_text);\n",
            n, bytes.size, bytes.size, n);
    fputs("#if defined(__GNUC__)\n#pragma GCC diagnostic pop\n#endif\n", fp);
}

void write_array(FILE* fp, const std::string& name, Bytes bytes) {
    fputs("\n", fp);
    const unsigned char nothing[4] = {0, 0, 0, 0};  // C++ has no arrays without elements
    if (bytes.size == 0) bytes = {nothing, sizeof(nothing)};
    if (bytes.size <= kMostNumbers)
        write_numbers(fp, name, bytes);
    else
        write_string(fp, name, bytes);
}

}  // namespace

int write_id_header(FILE* fp, const Embedding& names, const Model& model) {
    std::vector<std::string> layers, custom = unique_identifiers(model.custom_types());
    for (const ModelLayer& layer : model.layers) layers.push_back(layer.name);
    fputs(
        "// Written by ncnn2mem: layers and blobs of a model whose names are left out, for\n"
        "// Extractor::input(BLOB_..., in) and Extractor::extract(BLOB_..., out).\n",
        fp);
    Header header(fp, names, "ID");
    header.open(names.param + "_id");
    write_enum(fp, "LayerId", "LAYER", unique_identifiers(layers), 0);
    write_enum(fp, "BlobId", "BLOB", unique_identifiers(model.blob_names()), 0);
    if (!custom.empty()) {
        fputs("\n// For Net::register_custom_layer(index, ...).", fp);
        write_enum(fp, "CustomTypeIndex", "TYPEINDEX", custom, kCustomLayerBit);
    }
    fputs("\n", fp);
    return header.finish();
}

int write_mem_header(FILE* fp, const Embedding& names, Bytes param, Bytes weights) {
    const char *p = names.param.c_str(), *w = names.weights.c_str();
    fprintf(fp,
            "// Written by ncnn2mem: a model in memory, to be included by one source file.\n"
            "//     net.load_param(%s_bin, sizeof(%s_bin));\n",
            p, p);
    if (names.weights.empty())
        fputs("// Its weights are in a file.\n", fp);
    else
        fprintf(fp, "//     net.load_model(%s, sizeof(%s));\n", w, w);
    Header header(fp, names, "MEM");
    header.open();
    write_array(fp, names.param + "_bin", param);
    if (!names.weights.empty()) write_array(fp, names.weights, weights);
    fputs("\n", fp);
    return header.finish();
}

}  // namespace quoll
