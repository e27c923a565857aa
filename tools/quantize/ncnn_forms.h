// int8 forms of ncnn that need no table, as its ncnn2int8 makes them.
#ifndef QUOLL_TOOLS_QUANTIZE_NCNN_FORMS_H
#define QUOLL_TOOLS_QUANTIZE_NCNN_FORMS_H

#include <string>
#include <vector>

#include "graph/model.h"

namespace quoll {

// Recurrent layers, Embed, Gemm, MultiHeadAttention and SDPA that are in float; scales of what they
// read are found in each run. Layers whose weights are no finite numbers stay in float, with a
// warning. *done: their names. 0, or a negative code after a message.
int make_ncnn_forms(Model* model, std::vector<std::string>* done);

}  // namespace quoll

#endif
