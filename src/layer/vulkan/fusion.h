// Steps of a region that are computed together with others, so that there are fewer dispatches.
#ifndef QUOLL_LAYER_VULKAN_FUSION_H
#define QUOLL_LAYER_VULKAN_FUSION_H

#include <vector>

#include "layer/vulkan/vulkan_layer.h"
#include "quoll/backend.h"

namespace quoll {

class Pooling;

// x * gate(mean of x): a global average, two dense layers with few values between them, and the
// product. Steps are given by their index, -1 being none.
struct SqueezeExcite {
    int pool, first, second;
    int hard_sigmoid;  // behind `second`
    int multiply;
    int producer;  // of x, that adds its pixels up
    int reader;    // of the product, that multiplies its inputs itself
    int x, gate;   // values
};

// A ShuffleChannel of what one or two blobs hold, and how it is cut: each part takes its channels
// from where they were made.
struct ShuffledChannels {
    const Layer* shuffle;
    std::vector<int> sources, parts;  // values
};

// A sum, an activation and a multiplication after a product, or some of them, which the product
// computes itself.
struct Epilogue {
    int made, added = -1, factor = -1;  // values; -1: none
    Activation f;
    bool softmax = false;  // of all that
    int pair = -1;         // step: a product whose f() is the factor instead; -1: none
};

// A blob that is normalised by the products that read it.
struct NormedInput {
    int x;  // value
    RowNorm norm;
};

// The steps of a region that are computed together, where layers have the shapes, layouts and forms
// for it.
class Fusions {
public:
    Fusions(const Region& region, const std::vector<const VulkanLayer*>& forms,
            const std::vector<Layout>& layouts, const GpuDevice& device);
    // The block that a step belongs to; null: none.
    const SqueezeExcite* block_of(int step) const;
    const ShuffledChannels& shuffled(int step) const { return shuffled_[blocks_[step]]; }
    const Epilogue& epilogue(int step) const { return epilogues_[blocks_[step]]; }
    // The value that a step reads as an input: the input itself, or the one from which skipped
    // steps would have computed it.
    int taken(int step, size_t input) const;
    // Null: the step takes its input as it is.
    const NormedInput* normed(int step) const {
        return normed_[step] < 0 ? nullptr : &norms_[normed_[step]];
    }
    // The RotaryEmbed of its first or second input that a step computes itself; -1: none.
    int rotary_of(int step, int input) const { return rotaries_[2 * step + input]; }
    // The blob whose pixels a step averages by sums that its producer makes, instead of its input;
    // -1: none.
    int pooled_of(int step) const { return pooled_[step]; }
    StepFusion role_of(int step) const { return roles_[step]; }
    // The blob of whose pixels a step makes rows (StepFusion::kRows); -1: it does something else.
    int pixels_of(int step) const { return roles_[step] == StepFusion::kRows ? blocks_[step] : -1; }

private:
    // Whether the device has groups of the size that excite.comp needs.
    static bool can_excite(const GpuDevice& device);
    bool find(int pool, SqueezeExcite* block, std::vector<int>* views) const;
    bool find_dense(int step, int items, Dense* dense) const;
    int source(int value) const;
    int only_reader(int* value, std::vector<int>* views) const;
    void add(const SqueezeExcite& block, const std::vector<int>& views);
    void add_shuffle(int step);
    void add_epilogue(int step);
    void add_pooled(int step);
    void add_norm(int step);
    void add_repeated(int step, size_t input);
    void add_rotary(int step, int input);
    void add_rows(int step);
    void add_pair(int step);
    bool is_for_one(int value) const;
    bool only_products(int value, std::vector<int>* splits, std::vector<int>* products) const;
    bool extend(int step, int behind, Epilogue* epilogue) const;
    bool fits(int step, StepFusion role) const;
    Shapes shapes(const std::vector<int>& values) const;
    void set_role(int step, StepFusion role, size_t block);

    const Region& region_;
    const std::vector<const VulkanLayer*>& forms_;
    const std::vector<Layout>& layouts_;     // by value
    std::vector<int> makers_;                // by value
    std::vector<std::vector<int>> readers_;  // by value
    std::vector<StepFusion> roles_;          // by step
    std::vector<int> blocks_;                // by step, in one of these (kRows: a value); -1: none
    std::vector<SqueezeExcite> found_;
    std::vector<ShuffledChannels> shuffled_;
    std::vector<Epilogue> epilogues_;
    std::vector<NormedInput> norms_;
    std::vector<int> repeated_;  // values, by step and its first three inputs; -1: as they are
    std::vector<int> normed_;    // by step, one of norms_; -1: none
    std::vector<int> pooled_;    // values, by step; -1: none
    std::vector<int> rotaries_;  // steps, by step and its first two inputs
};

// Records the sums over parts of the pixels of `x` that no producer has made.
ChannelSums record_channel_sums(Recorder& r, const Value& x);
// Records the factors of a block. hard_sigmoid may be null.
void record_gate(Recorder& r, const ChannelSums& sums, const Dense& first, const Dense& second,
                 const Layer* hard_sigmoid, const Value& gate);

// Whether its only window has all values of a channel and nothing else.
bool pools_all(const Pooling& pooling, const Shape& in);

bool is_interleaved(const Layer& rotary);
// The positions of a pair's values in a row, and the distance of the second one's angle from the
// first one's.
struct RotaryPairs {
    RotaryPairs(const Layer& rotary, const Shape& x, const Shape& cosines);
    int pair, partner, second;
};
// Records a RotaryEmbed of in[0] by in[1] and in[2] into the rows of `to` from row `first` on,
// where `to` has more channels each several times.
void record_rotary(Recorder& r, const Layer& rotary, const Values& in, const Value& to,
                   uint32_t first);

// Records what makes channels [first, ...) of a ShuffleChannel of the sources into `part`. 0, or a
// negative code after a message.
int record_shuffled(Recorder& r, const Layer& shuffle, const Values& sources, uint32_t first,
                    const Value& part);

}  // namespace quoll

#endif
