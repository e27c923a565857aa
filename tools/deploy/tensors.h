// Tensors of the deployment file as blobs.
#ifndef QUOLL_TOOLS_DEPLOY_TENSORS_H
#define QUOLL_TOOLS_DEPLOY_TENSORS_H

#include <string>
#include <vector>

#include "deploy/config.h"
#include "quoll/mat.h"

namespace quoll {

// "1,3,224,224"
std::string sizes_text(const std::vector<int64_t>& sizes);

// The sizes in the engine's order of axes: channels before the others.
std::vector<int64_t> engine_order(const DeployTensor& tensor);

// The size of the blob that stands for a tensor whose sizes are said; `known`, what the model says,
// dims 0 if it says nothing. `batched`: axis 0 of the tensor is the batch, and no axis of the blob.
// 0, or -1 with a message in *why.
int blob_shape(const DeployTensor& tensor, bool batched, const Shape& known, Shape* shape,
               std::string* why);

// Are they the same but for axes of size 1?
bool same_but_ones(const std::vector<int64_t>& sizes, const Shape& shape);

// The tensor's array, or random numbers, as a blob of this size. 0, or -1 with a message in *why or
// in the log.
int make_blob(const DeployTensor& tensor, const Shape& shape, unsigned seed, Mat* blob,
              std::string* why);

}  // namespace quoll

#endif
