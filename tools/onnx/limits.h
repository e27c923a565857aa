// Bounds in proportion to the file: a few hundred bytes can ask for more nodes, constants or time
// than any machine has.
#ifndef QUOLL_TOOLS_ONNX_LIMITS_H
#define QUOLL_TOOLS_ONNX_LIMITS_H

#include <stdint.h>

#include <stdexcept>
#include <string>

namespace quoll {
namespace onnx_tool {

// Says what was too much, and how to allow it.
class LimitError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// What reading and converting one file may use, in the thread that made the object and as long as
// it lives; nothing is limited without.
class Limits {
public:
    // Not enforced: it counts only.
    explicit Limits(bool enforced);
    ~Limits();
    // The file, or what is read besides it, is so large.
    static void add_nodes_of_file(int64_t nodes);
    static void add_bytes_of_file(int64_t bytes);
    int64_t bytes_of_file() const { return bytes_of_file_; }
    // Throw LimitError when the sum is more than the file may ask for. Nodes: those that functions,
    // loops and branches make, calls included. Bytes: of constants that are computed.
    static void spend_nodes(int64_t nodes);
    static void spend_bytes(int64_t bytes);

private:
    Limits(const Limits&);
    Limits& operator=(const Limits&);
    Limits* const outer_;
    const bool enforced_;
    int64_t nodes_of_file_ = 0, bytes_of_file_ = 0, nodes_ = 0, bytes_ = 0;
};

}  // namespace onnx_tool
}  // namespace quoll

#endif
