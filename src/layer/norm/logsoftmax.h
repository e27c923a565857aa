#ifndef QUOLL_LAYER_LOGSOFTMAX_H
#define QUOLL_LAYER_LOGSOFTMAX_H

#include "layer/common/tensor.h"

namespace quoll {

// y = x - log(sum of e^x) along one axis. ONNX LogSoftmax.
class LogSoftmax : public TensorOperator<LogSoftmax> {
public:
    static void params(LogSoftmax& s, ParamVisitor& v);
    static int shape(const LogSoftmax& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = -1;
};

}  // namespace quoll

#endif
