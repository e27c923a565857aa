// Reading the weights of a net a second time, for blobs that graph passes have fused away.
#ifndef QUOLL_NET_UNFUSED_H
#define QUOLL_NET_UNFUSED_H

#include <stdint.h>

#include <vector>

#include "quoll/modelbin.h"

namespace quoll {

// Keeps what another ModelBin hands out.
class RecordingModelBin : public ModelBin {
public:
    RecordingModelBin(const ModelBin& from, std::vector<Mat>* weights)
        : from_(from), weights_(weights) {}
    using ModelBin::load;
    Mat load(int w, int type) const override;

private:
    const ModelBin& from_;
    std::vector<Mat>* const weights_;
};

// Hands it out again; what is not there is empty.
class ReplayingModelBin : public ModelBin {
public:
    explicit ReplayingModelBin(const std::vector<Mat>& weights) : weights_(weights) {}
    using ModelBin::load;
    Mat load(int w, int type) const override;
    // Whether more was asked for than is there.
    bool is_short() const { return next_ > weights_.size(); }

private:
    const std::vector<Mat>& weights_;
    mutable size_t next_ = 0;
};

// What changes when a file does; zeros when there is none.
void describe_file(const char* path, int64_t* size, int64_t* time);

}  // namespace quoll

#endif
