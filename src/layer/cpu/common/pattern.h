// Operands that repeat themselves.
#ifndef QUOLL_LAYER_CPU_COMMON_PATTERN_H
#define QUOLL_LAYER_CPU_COMMON_PATTERN_H

namespace quoll {

// A pattern is so many floats that stand for an operand repeating them: one value, or those of the
// channels of an element.
enum { kPatternSize = 16 };

}  // namespace quoll

#endif
