// A Model from files and to files, as the programs that work on models take them.
#ifndef QUOLL_TOOLS_MODEL_FILES_H
#define QUOLL_TOOLS_MODEL_FILES_H

#include <string>
#include <vector>

#include "common/output_files.h"
#include "graph/analysis.h"

namespace quoll {

bool ends_with(const std::string& s, const std::string& end);

// A whole file. 0, or -1 after a message.
int read_bytes(const std::string& path, std::vector<unsigned char>* bytes);
// The same of text, and of weights; a model or an archive instead is an error that names it.
// expected: "a table of scales".
int read_text(const std::string& path, const char* expected, std::string* text);
int read_weights(const std::string& path, std::vector<unsigned char>* bytes);

// The format of a file where it is known and not `expected`, "an ONNX model", or "".
std::string foreign_format_of(const std::string& path, const std::string& expected);

// param: text, or binary if it ends in .param.bin. bin: "" where no weights are wanted, or none of
// the layers has any. Bytes that the model does not read are an error. 0, or -1 after a message.
int load_model_files(const std::string& param, const std::string& bin, Model* model);

// Puts both files, numbered as a pair, among `files`, which the caller commits.
int save_model_files(Model& model, const std::string& param, const std::string& bin,
                     OutputFiles* files);

// Writes bytes to what OutputFiles gave for `target`, or fails without a word if that is "".
int write_bytes(const std::vector<unsigned char>& bytes, const std::string& path,
                const std::string& target);
// Writes a text file that the caller commits.
int write_file(const std::string& target, const std::string& text, OutputFiles* files);

// "568,741,376"
std::string grouped(int64_t number);
// "(3,224,224)", "?" for a size that is not known.
std::string size_text(const Shape& shape);

}  // namespace quoll

#endif
