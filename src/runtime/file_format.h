// What a file is that was given as a model.
#ifndef QUOLL_FILE_FORMAT_PRIVATE_H
#define QUOLL_FILE_FORMAT_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "quoll/platform.h"
#include "runtime/weights_id.h"

namespace quoll {

enum class FileKind { kTextParam, kBinaryParam, kWeights };

// Words for a file whose first `have` of `size` bytes these are, or null if it may well be what is
// expected: "an ONNX model, which onnx2engine converts".
const char* unexpected_format(const unsigned char* head, size_t have, uint64_t size,
                              FileKind expected);

#if QUOLL_STDIO
// An error, with a message that names the format, if a regular file is of another one, or holds
// weights that are not those that the param asks for. What cannot be opened, and what
// is no regular file, is not looked at.
int check_file_format(const char* path, const char* what, FileKind expected,
                      const WeightsId& id = WeightsId());
#endif

}  // namespace quoll

#endif
