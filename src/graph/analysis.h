// What can be found out about a Model without running it: the order of its layers, sizes of blobs,
// multiplications, weights, memory.
#ifndef QUOLL_GRAPH_ANALYSIS_H
#define QUOLL_GRAPH_ANALYSIS_H

#include <stdint.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/model.h"
#include "layer/common/traits.h"

namespace quoll {

// Sizes by the names of blobs.
typedef std::map<std::string, Shape> BlobSizes;

// The layers that `outputs` need, in the order in which an Extractor runs them; without outputs,
// the layers for all blobs that nobody reads, one blob after another.
std::vector<int> execution_order(const Model& model, const std::vector<std::string>& outputs = {});
// An error, with a message, if a layer depends on its own output. The functions below take Models
// without cycles only.
int check_acyclic(const Model& model);
// Blobs that no layer reads, in file order: what the model gives.
std::vector<std::string> output_blobs(const Model& model);
// Blobs of Input layers.
std::vector<std::string> input_blobs(const Model& model);

// The size of every blob, from those of Input layers and from `given`, which has precedence and may
// name any blob. Blobs whose size is unknown, or depends on values, are not in *sizes. A negative
// code after a message if a layer refuses its inputs; *sizes then has what was found before.
int infer_blob_sizes(const Model& model, const BlobSizes& given, BlobSizes* sizes);

// A weight as an operator's schema has it, and as it is stored if it is there.
struct WeightFacts {
    std::string name;
    int64_t count;       // scalars
    bool stored;         // the fields below are known
    DType dtype;         // u8: indexes into a table
    int64_t file_bytes;  // tag, table and padding included
};

struct LayerFacts {
    std::vector<Shape> inputs, outputs;  // dims 0: not known
    // See layer/common/traits.h; custom layers, of which nothing is known, count as 0.
    Cost cost = {0, 0};
    std::vector<WeightFacts> weights;
    int64_t parameters() const;
    int64_t weight_bytes() const;
};

struct MemoryFacts {
    // Bytes of all blobs that a run makes, each counted by itself; and the most that are alive at a
    // time if blobs are freed after their last reader and layers work in place where they can
    // (light mode). Both include the inputs.
    int64_t sum = 0, peak = 0;
    int peak_layer = -1;    // where the peak is
    bool complete = false;  // false: sizes are missing, and the numbers are lower bounds
};

struct ModelFacts {
    BlobSizes sizes;
    std::vector<LayerFacts> layers;  // as in the Model
    int64_t macs = 0, parameters = 0, weight_bytes = 0;
    bool macs_complete = true;
    MemoryFacts memory;
};

// Returns 0, or a negative code after a message if an operator refuses its params. Sizes that do
// not fit are not an error: what follows from them is unknown, and the log has the reason.
int analyse_model(const Model& model, const BlobSizes& given, ModelFacts* facts);

// Bytes of a blob with elempack 1; f32 scalars take `float_size` bytes.
int64_t blob_bytes(const Shape& shape, int float_size = 4);

}  // namespace quoll

#endif
