// Where the expected answers come from.
#ifndef QUOLL_TOOLS_VALIDATE_REFERENCES_H
#define QUOLL_TOOLS_VALIDATE_REFERENCES_H

#include <map>
#include <string>
#include <vector>

#include "common/model_inputs.h"
#include "quoll/net.h"

namespace quoll {

// Blobs by name; f32 with elempack 1, or integers.
typedef std::map<std::string, Mat> Blobs;

// Runs the net and takes the blobs of these names; those that the graph passes left nothing of are
// left out. 0, or a negative code after a message.
int run_net(const Net& net, const Blobs& inputs, const std::vector<std::string>& wanted,
            Blobs* answers);

// Answers of ONNX Runtime, which `python` runs: those of the model's outputs and, with `all`, of
// every tensor. Inputs get axes of size 1 in front until they have the rank that the model wants.
int run_onnx(const std::string& python, const std::string& model,
             const std::vector<ModelInput>& arrays, const Blobs& inputs, bool all, Blobs* answers);

// <folder>/NAME.npy for each name that has one; '/' in a name is '_' in the file's.
int read_folder(const std::string& folder, const std::vector<std::string>& names, Blobs* answers);

}  // namespace quoll

#endif
