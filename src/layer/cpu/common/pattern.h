// Operands that repeat themselves.
#ifndef QUOLL_LAYER_CPU_COMMON_PATTERN_H
#define QUOLL_LAYER_CPU_COMMON_PATTERN_H

namespace quoll {

// A pattern is this many floats, which stand for an operand that repeats them: one value, or the
// values of the channels of an element.
enum { kPatternSize = 16 };

}  // namespace quoll

#endif
