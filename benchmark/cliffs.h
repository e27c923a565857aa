// Layers that fall out of an otherwise fast network: scalar reference code, and layers before which
// blobs are unpacked or widened.
#ifndef QUOLL_BENCHMARK_CLIFFS_H
#define QUOLL_BENCHMARK_CLIFFS_H

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "quoll/net.h"

namespace quoll {

// How the outputs of the layers that have run are laid out.
class BlobLayouts {
public:
    void add(const Layer& layer, const std::vector<Mat>& outputs);
    // Why the layer is a cliff, "" if it is none; `net` runs it.
    std::string why(const Layer& layer, const Net& net) const;

private:
    struct Layout {
        int elempack;
        DType dtype;
    };
    std::map<int, Layout> layouts_;
};

// For a row of the report with "profile": the share (0 to 1) of the layers' time that cliffs take,
// and a table of them.
double cliff_share(const nlohmann::json& row);
std::string cliff_table(const nlohmann::json& row);

}  // namespace quoll

#endif
