// A model as C++ source: identifiers for its layers and blobs, arrays of its bytes.
#ifndef QUOLL_TOOLS_MEM_EMBED_H
#define QUOLL_TOOLS_MEM_EMBED_H

#include <stdio.h>

#include <string>
#include <vector>

#include "graph/model.h"

namespace quoll {

// A C++ identifier for a file, from the last part of its path: "net/my-model.bin": my_model_bin.
std::string file_identifier(const std::string& path);

// True for "NAME" and "A::B" of C++ identifiers that are no keywords.
bool is_namespace(const std::string& text);

// Identifiers for names, all different: what is no letter, digit or '_' becomes '_'. A name that
// has such characters, or that came before, gives way to the others: its number is appended.
std::vector<std::string> unique_identifiers(const std::vector<std::string>& names);

// What the generated headers are made of.
struct Embedding {
    std::string name_space;  // "", "NAME" or "A::B": around everything
    std::string param;       // file_identifier of the .param
    std::string weights;     // file_identifier of the .bin; empty: weights stay in their file
};

struct Bytes {
    const unsigned char* data;
    size_t size;
};

// Both return 0, or -1 with a message when the file took not all of it. The headers are C++11.
int write_id_header(FILE* fp, const Embedding& names, const Model& model);
int write_mem_header(FILE* fp, const Embedding& names, Bytes param, Bytes weights);

}  // namespace quoll

#endif
