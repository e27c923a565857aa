// Param files, text and binary, layer by layer: Net and graph/model.h read and write through these.
#ifndef QUOLL_GRAPH_PARAM_FILE_H
#define QUOLL_GRAPH_PARAM_FILE_H

#include <string>
#include <unordered_map>
#include <vector>

#include "quoll/paramdict.h"
#include "quoll/platform.h"

namespace quoll {

class DataReader;
class DataWriter;

// One layer as a param file has it. Blobs are indexes; text files number them in the order of
// appearance, which is how binary ones are made.
struct ParamRecord {
    std::string type;    // empty in a binary file
    int typeindex = -1;  // -1 in a text file
    std::string name;    // the layer's number in a binary file
    std::vector<int> bottoms, tops;
    ParamDict params;
};

// Reads a file from `dr`'s position on. All functions return 0, or a negative code after a message.
class ParamFileReader {
public:
    ParamFileReader(const DataReader& dr, bool binary) : dr_(dr), binary_(binary) {}
    // First; then read_layer layer_count() times.
    int read_header();
    int layer_count() const { return layer_count_; }
    int blob_count() const { return blob_count_; }
    int read_layer(ParamRecord* record);
    // The names of the blobs that have appeared so far; empty strings for a binary file.
    const std::vector<std::string>& blob_names() const { return blob_names_; }

private:
    int read_text_header();
    int read_binary_header();
    int read_text_layer(ParamRecord* record);
    int read_binary_layer(ParamRecord* record);
    int read_text_blob(const ParamRecord& record, int* id);
    int read_binary_blob(const ParamRecord& record, int* id);

    // A library without texts refuses them in read_header.
    bool is_text() const { return QUOLL_STRING && !binary_; }

    const DataReader& dr_;
    const bool binary_;
    int layer_count_ = 0, blob_count_ = 0, layers_read_ = 0;
    std::vector<std::string> blob_names_;
    std::unordered_map<std::string, int> blob_of_name_;  // text files
};

// The writer of such files. Text files get the names, binary ones the indexes. `columns`: type and
// name are padded with blanks, as by ncnn's tools.
class ParamFileWriter {
public:
    ParamFileWriter(const DataWriter& dw, bool binary, bool columns)
        : dw_(dw), binary_(binary), columns_(columns) {}
    int write_header(size_t layers, size_t blobs) const;
    int write_layer(const ParamRecord& record, const std::vector<std::string>& blob_names) const;

private:
    int write(const std::string& bytes) const;
    bool is_text() const { return QUOLL_STRING && !binary_; }

    const DataWriter& dw_;
    const bool binary_, columns_;
};

// Whether a text param can hold the word as the type or name of a layer, or the name of a blob.
bool is_param_word(const std::string& word);
// The word that a param file uses for any name: the name itself; if that has blanks, quotes or
// control characters, with these and '%' written as "%20".
std::string param_word(const std::string& name);

}  // namespace quoll

#endif
