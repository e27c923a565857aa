#include "onnx/run_model.h"

#include <memory>
#include <unordered_map>

#include "layer/common/traits.h"
#include "layer/control/loop.h"
#include "layer/elementwise/select.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "runtime/log_mute.h"

namespace quoll {
namespace onnx_tool {

QuietLog::QuietLog() : level_(get_log_level()) { set_log_level(kLogOff); }
QuietLog::~QuietLog() { set_log_level((LogLevel)level_); }

namespace {

// Without a batch, an axis of size 0, packing or a 16-bit type, for all of which a Net prepares.
bool is_plain(const Mat& m) {
    return !m.empty() && m.n == 1 && m.elempack == 1 && m.dtype != DType::f16 &&
           m.dtype != DType::bf16;
}

class Layers {
public:
    Layers() {
        opt_.num_threads = 1;
        opt_.use_packing_layout = false;
    }

    bool run(const ModelLayer& layer) {
        const std::unique_ptr<Layer> op(layer.custom() ? nullptr : layer.make_operator(true));
        if (!op || as<LoopStart>(op.get()) || as<LoopEnd>(op.get()) || as<Select>(op.get()))
            return false;
        std::vector<Mat> inputs, outputs(layer.outputs.size());
        std::vector<Shape> in, out;
        for (const std::string& name : layer.inputs) {
            const auto found = blobs_.find(name);
            if (found == blobs_.end()) return false;
            inputs.push_back(found->second);
            in.push_back(found->second.logical_shape());
        }
        if (op->infer_shapes(in, out) != kOk || op->create_pipeline(opt_) != kOk) return false;
        const int status = op->forward(inputs, outputs, opt_);
        op->destroy_pipeline(opt_);
        if (status != kOk || outputs.size() != layer.outputs.size()) return false;
        for (size_t i = 0; i < outputs.size(); i++) {
            if (!is_plain(outputs[i])) return false;
            blobs_[layer.outputs[i]] = outputs[i];
        }
        return true;
    }

    bool find(const std::string& name, Mat* m) const {
        const auto found = blobs_.find(name);
        if (found != blobs_.end()) *m = found->second;
        return found != blobs_.end();
    }

private:
    Option opt_;
    std::unordered_map<std::string, Mat> blobs_;
};

}  // namespace

bool run_layers(const Model& model, const std::vector<std::string>& blobs, std::vector<Mat>* mats) {
    const LogMute quiet;
    Layers layers;
    for (const ModelLayer& layer : model.layers)
        if (!layers.run(layer)) return false;
    mats->resize(blobs.size());
    for (size_t i = 0; i < blobs.size(); i++)
        if (!layers.find(blobs[i], &(*mats)[i])) return false;
    return true;
}

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
