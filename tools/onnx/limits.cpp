#include "onnx/limits.h"

namespace quoll {
namespace onnx_tool {

namespace {

// What any file may ask for, and how much more for each node and byte of its own. Unrolled decoders
// of real models stay below a tenth of that.
const int64_t kNodes = 1 << 17, kNodesEach = 64;
const int64_t kBytes = 256 << 20, kBytesEach = 64;

thread_local Limits* t_limits = nullptr;

void check(int64_t spent, int64_t base, int64_t each, int64_t of_file, const char* what,
           const char* unit) {
    const int64_t most = base + each * of_file;
    if (spent <= most) return;
    throw LimitError(std::string(what) + " more than " + std::to_string(most) + " " + unit + " (" +
                     std::to_string(base) + ", and " + std::to_string(each) + " for each of the " +
                     std::to_string(of_file) + " of the file); --no-limits lifts the limit");
}

}  // namespace

Limits::Limits(bool enforced) : outer_(t_limits), enforced_(enforced) { t_limits = this; }
Limits::~Limits() { t_limits = outer_; }

void Limits::add_nodes_of_file(int64_t nodes) {
    if (t_limits) t_limits->nodes_of_file_ += nodes;
}

void Limits::add_bytes_of_file(int64_t bytes) {
    if (t_limits) t_limits->bytes_of_file_ += bytes;
}

void Limits::spend_nodes(int64_t nodes) {
    Limits* const l = t_limits;
    if (l && l->enforced_)
        check(l->nodes_ += nodes, kNodes, kNodesEach, l->nodes_of_file_,
              "functions, loops and branches make", "nodes");
}

void Limits::spend_bytes(int64_t bytes) {
    Limits* const l = t_limits;
    if (l && l->enforced_)
        check(l->bytes_ += bytes, kBytes, kBytesEach, l->bytes_of_file_,
              "constants that are computed take", "bytes");
}

}  // namespace onnx_tool
}  // namespace quoll
