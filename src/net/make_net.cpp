// Nets of Models, without files in between.
#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "graph/model.h"
#include "graph/param_file.h"
#include "layer/common/schema.h"
#include "net/net_private.h"
#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/log.h"
#include "runtime/weight_tags.h"

namespace quoll {

namespace {

// The weights that are written to a file, in its order.
class WeightsInOrder : public WeightVisitor {
public:
    std::vector<StoredWeight*> all;

    void begin_layer(ModelLayer* layer, const WeightNumbers& numbers) {
        layer_ = layer, numbers_ = &numbers, count_ = 0;
    }
    void operator()(bool present, const char* name, Mat&, WeightSize, WeightKind, Doc) override {
        if (!present || weight_number(*numbers_, count_++) != 0) return;
        all.push_back(const_cast<StoredWeight*>(layer_->find_weight(name)));
    }

private:
    ModelLayer* layer_ = nullptr;
    const WeightNumbers* numbers_ = nullptr;
    size_t count_ = 0;
};

// Hands out a Model's weights: copies, or the weights themselves, which are then moved out of the
// Model.
class ModelBinFromModel : public ModelBin {
public:
    ModelBinFromModel(const std::vector<StoredWeight*>& weights, bool copy)
        : weights_(weights), copy_(copy) {}
    Mat load(int w, int) const override {
        if (next_ == weights_.size()) {
            QUOLL_LOGE("[Model] a weight of %d values is asked for, and there are no more", w);
            return Mat();
        }
        StoredWeight* const stored = weights_[next_++];
        // InnerProduct takes the weight in the order of the file; its memory stays until everything
        // is packed.
        if (!copy_ && stored->tag == kTagByInputs &&
            stored->data.logical_shape().total() == (size_t)w)
            return take(stored);
        Mat m = stored->widened();
        if (m.logical_shape().total() != (size_t)w) {
            QUOLL_LOGE("[Model] a weight needs %d values, got %zu", w, m.logical_shape().total());
            return Mat();
        }
        // Memory that somebody else owns may go before the Net does.
        if (m.data == stored->data.data && (copy_ || !m.refcount)) m = m.clone();
        if (!copy_) take(stored);
        return m.reshape(w);
    }

private:
    static Mat take(StoredWeight* stored) {
        const Mat m = stored->data;
        *stored = StoredWeight();
        return m;
    }

    const std::vector<StoredWeight*>& weights_;
    const bool copy_;
    mutable size_t next_ = 0;
};

class NoReader : public DataReader {};

}  // namespace

// As param files have them.
static std::vector<ParamRecord> records_of(const std::deque<ModelLayer>& layers,
                                           const std::vector<std::string>& blobs) {
    std::unordered_map<std::string, int> ids;
    for (const std::string& blob : blobs) ids.emplace(blob, (int)ids.size());
    std::vector<ParamRecord> records(layers.size());
    for (size_t i = 0; i < layers.size(); i++) {
        ParamRecord& record = records[i];
        record.type = layers[i].type, record.name = layers[i].name;
        record.params = layers[i].params;
        for (const std::string& blob : layers[i].inputs) record.bottoms.push_back(ids[blob]);
        for (const std::string& blob : layers[i].outputs) record.tops.push_back(ids[blob]);
    }
    return records;
}

int Model::load_net(Net* net, bool copy) {
    QUOLL_RETURN_IF_ERROR(check_names());
    std::vector<WeightNumbers> numbers;
    QUOLL_RETURN_IF_ERROR(number_shared(&numbers));
    Net::Private& d = *net->d;
    const std::vector<std::string> blobs = blob_names();
    QUOLL_RETURN_IF_ERROR(d.load_records(records_of(layers, blobs), blobs));
    WeightsInOrder weights;
    for (size_t i = 0; i < layers.size(); i++) {
        if (std::any_of(numbers[i].begin(), numbers[i].end(), [](int n) { return n != 0; }))
            d.shared_weights[(int)i] = numbers[i];
        if (layers[i].custom()) continue;
        // An application's own layer that replaces a built-in one has no schema.
        std::unique_ptr<Layer> made;
        Layer* op = d.layers[i];
        if (op->typeindex < 0) made = layers[i].make_operator(), op = made.get();
        if (!op || check_weights(layers[i], *op) != kOk) {
            net->clear();
            return kError;
        }
        weights.begin_layer(&layers[i], numbers[i]);
        op->visit_weights(weights);
    }
    return d.load_model(ModelBinFromModel(weights.all, copy), NoReader(), false, net->opt);
}

int Model::make_net(Net* net) const { return const_cast<Model*>(this)->load_net(net, true); }

int Model::move_to_net(Net* net) {
    const int status = load_net(net, false);
    layers.clear();
    return status;
}

}  // namespace quoll
