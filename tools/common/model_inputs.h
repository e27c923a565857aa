// What programs are told of a model's inputs: arrays, sizes, ranges of random numbers. One notation
// for all of them.
#ifndef QUOLL_TOOLS_MODEL_INPUTS_H
#define QUOLL_TOOLS_MODEL_INPUTS_H

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/cli.h"
#include "graph/analysis.h"
#include "layer/common/tensorspec.h"
#include "quoll/net.h"

namespace quoll {

// An input of a model: its blob, the size that its layer says (dims 0: none), and the array that it
// stands for, if the layer says one.
struct ModelInput {
    std::string name;
    Shape size;
    TensorSpec array;

    DType dtype() const;
    // The size with as many items as the array says.
    Shape whole_size() const;
};
std::vector<ModelInput> inputs_of(const Model& model);
std::vector<ModelInput> inputs_of(const Net& net);

// The sizes of inputs of several items, where `sizes` does not say others: layers say one item's.
void add_batches(const std::vector<ModelInput>& inputs, BlobSizes* sizes);

struct InputArguments {
    std::vector<std::string> arrays;  // NAME=FILE.npy
    std::vector<std::string> shapes;  // NAME=1,3,224,224
    std::vector<double> range;        // LOW HIGH, or nothing

    // --input; --shape, and --size, its older name; --range.
    void add_arrays_to(CommandLine* line);
    void add_shapes_to(CommandLine* line);
    void add_range_to(CommandLine* line);
};

// Sizes as the array has them: all axes of a converted model's array; of another input the axes of
// the blob (w; h,w; c,h,w; c,d,h,w), or the batch in front of those that its layer says. What is
// said of a blob that is no input is taken to be its axes. 0, or -1 with a message in *why.
int parse_shapes(const std::vector<std::string>& texts, const std::vector<ModelInput>& inputs,
                 BlobSizes* sizes, std::string* why);
// Arrays of NAME=FILE.npy; what `inputs` does not have is read as it is, if `known` says that there
// is such a blob.
int read_arrays(const std::vector<std::string>& texts, const std::vector<ModelInput>& inputs,
                const std::function<bool(const std::string&)>& known,
                std::map<std::string, Mat>* blobs, std::string* why);

// The paths that these may name: what is behind each '=', as names may contain it too.
std::vector<std::string> paths_of(const std::vector<std::string>& texts);

// Numbers of the input's type in the range: by default -1 to 1, integers 0 and 1, which index any
// table, and those of a byte 0 to 127. next: a number from 0 to 1. Empty when memory runs out.
Mat random_input(const ModelInput& input, const Shape& size, const std::vector<double>& range,
                 const std::function<double()>& next);

}  // namespace quoll

#endif
