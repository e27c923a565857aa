// Runs a Model without inputs, for constant folding.
#ifndef QUOLL_TOOLS_ONNX_RUN_MODEL_H
#define QUOLL_TOOLS_ONNX_RUN_MODEL_H

#include <string>
#include <vector>

#include "graph/model.h"

namespace quoll {
namespace onnx_tool {

// The blobs, planar, by calling one layer behind the other, in the model's order: without the costs
// of a Net, which small models would be loaded into for every node. False where that does not do,
// as for axes of size 0 and branches: run_model() is for all that layers can compute.
bool run_layers(const Model& model, const std::vector<std::string>& blobs, std::vector<Mat>* mats);

// The blobs, plain and of elempack 1; the model is empty afterwards. False when a layer refuses;
// the log is silent about it, since the node that was to be folded is then converted as others are.
bool run_model(Model* model, const std::vector<std::string>& blobs, std::vector<Mat>* mats);

// While it lives, the library's messages do not reach stderr.
class QuietLog {
public:
    QuietLog();
    ~QuietLog();
    QuietLog(const QuietLog&) = delete;
    QuietLog& operator=(const QuietLog&) = delete;

private:
    int level_;
};

}  // namespace onnx_tool
}  // namespace quoll

#endif
