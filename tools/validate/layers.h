// Which layer goes wrong first.
#ifndef QUOLL_TOOLS_VALIDATE_LAYERS_H
#define QUOLL_TOOLS_VALIDATE_LAYERS_H

#include <string>
#include <vector>

#include "graph/analysis.h"
#include "validate/compare.h"
#include "validate/references.h"

namespace quoll {

// One blob that both sides know.
struct BlobCheck {
    std::string blob;
    std::vector<std::string> layers;  // that make it from blobs that both sides know, its own last
    Comparison whole;                 // of the whole run: with all errors before it
    Comparison own;                   // from the expected inputs: of these layers alone
    std::string verdict;              // "" if it is right
    bool constant = false;            // its layer has no inputs
};

struct Limits {
    double similarity;      // must be exceeded
    double relative_error;  // of `own`, in parts of the range; must not be exceeded
};

// Blobs of another engine's graph that have a name of ours but mean something else: those that are
// not as expected in one run from the inputs while all that is known to follow from them is. They
// are taken out of *expected.
int drop_other_meanings(const Model& model, const Net& net, const Blobs& inputs,
                        const Limits& limits, Blobs* expected, std::vector<std::string>* dropped);

// The layers of the model in the order in which they run; each blob of them that `expected` has is
// computed twice: in one run from the inputs, and from the expected blobs alone. Net and
// Model hold the same graph, and the Net was loaded without graph fusion. 0, or a negative code
// after a message.
int check_layers(const Model& model, const Net& net, const Blobs& inputs, const Blobs& expected,
                 const Limits& limits, std::vector<BlobCheck>* checks);

// The first that is wrong; null if none is.
const BlobCheck* first_wrong(const std::vector<BlobCheck>& checks);
// The first, constants aside, of which no value is finite on both sides, so that nothing was
// compared; null if there is none.
const BlobCheck* first_without_values(const std::vector<BlobCheck>& checks);

// As MACE's log.csv: output_name,similarity,sqnr,pixel_accuracy of the whole run; sqnr in dB.
std::string log_csv(const std::vector<BlobCheck>& checks);
std::string layers_table(const std::vector<BlobCheck>& checks);

}  // namespace quoll

#endif
