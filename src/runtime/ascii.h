// Text helpers that do not depend on the locale.
#ifndef QUOLL_ASCII_PRIVATE_H
#define QUOLL_ASCII_PRIVATE_H

namespace quoll {

inline char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

inline bool equal_ignoring_case(const char* a, const char* b) {
    while (*a && ascii_lower(*a) == ascii_lower(*b)) a++, b++;
    return ascii_lower(*a) == ascii_lower(*b);
}

}  // namespace quoll

#endif  // QUOLL_ASCII_PRIVATE_H
