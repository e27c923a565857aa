#include "onnx/run_model.h"

#include "quoll/log.h"
#include "quoll/net.h"

namespace quoll {
namespace onnx_tool {

QuietLog::QuietLog() : level_(get_log_level()) { set_log_level(kLogOff); }
QuietLog::~QuietLog() { set_log_level((LogLevel)level_); }

bool run_model(Model* model, const std::vector<std::string>& blobs, std::vector<Mat>* mats) {
    const QuietLog quiet;
    Net net;
    net.opt.num_threads = 1;
    net.opt.use_packing_layout = false;
    net.opt.use_graph_fusion = false;
    net.opt.use_reference_layers = true;
    if (model->move_to_net(&net) != 0) return false;
    Extractor ex = net.create_extractor();
    for (const std::string& blob : blobs) {
        Mat m;
        if (ex.extract(blob.c_str(), m) != 0 || m.dims == 0 || m.n != 1) return false;
        mats->push_back(m.clone());
        if (mats->back().empty()) mats->back() = m;  // an axis of size 0
    }
    return true;
}

}  // namespace onnx_tool
}  // namespace quoll
