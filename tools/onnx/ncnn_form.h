// Models that ncnn loads.
#ifndef QUOLL_TOOLS_ONNX_NCNN_FORM_H
#define QUOLL_TOOLS_ONNX_NCNN_FORM_H

#include "graph/model.h"

namespace quoll {
namespace onnx_tool {

// Says the same by ncnn's layers. 0, or an error after a message that names what ncnn does not
// have.
int to_ncnn(Model* model);

}  // namespace onnx_tool
}  // namespace quoll

#endif
