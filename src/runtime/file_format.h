// Finds out what kind of file was given as a model.
#ifndef QUOLL_FILE_FORMAT_PRIVATE_H
#define QUOLL_FILE_FORMAT_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "quoll/platform.h"
#include "runtime/weights_id.h"

namespace quoll {

enum class FileKind { kTextParam, kBinaryParam, kWeights };

// A description of a file with these first `have` of `size` bytes ("an ONNX model, which
// onnx2engine converts"); null if it may well be what is expected.
const char* unexpected_format(const unsigned char* head, size_t have, uint64_t size,
                              FileKind expected);

#if QUOLL_STDIO
// An error, with a message that names the format, if a regular file has another format than
// expected, or holds weights that are not those that the param asks for. Files that cannot be
// opened, or are not regular, are not examined.
int check_file_format(const char* path, const char* what, FileKind expected,
                      const WeightsId& id = WeightsId());
#endif

}  // namespace quoll

#endif
