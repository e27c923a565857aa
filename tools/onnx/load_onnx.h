// ONNX models in programs that take models of either kind; those that are built without libonnx say
// that they do not.
#ifndef QUOLL_TOOLS_ONNX_LOAD_ONNX_H
#define QUOLL_TOOLS_ONNX_LOAD_ONNX_H

#include <string>

#include "quoll/log.h"
#include "quoll/net.h"
#include "quoll/status.h"
#if QUOLL_TAKES_ONNX
#include "onnx/convert.h"
#endif

namespace quoll {

inline bool is_onnx(const std::string& path) {
    const std::string end = ".onnx";
    return path.size() > end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
}

// Graph and weights, into a net whose options are set. 0, or a negative code after a message.
inline int load_onnx_or_say(const std::string& path, Net* net) {
#if QUOLL_TAKES_ONNX
    return load_onnx(path, OnnxOptions(), net);
#else
    (void)net;
    QUOLL_LOGE("%s: this program was built without libonnx; onnx2engine converts ONNX models",
               path.c_str());
    return kError;
#endif
}

}  // namespace quoll

#endif
