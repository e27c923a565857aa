// Numbers as text, whatever the locale: by floating-point std::from_chars and std::to_chars if the
// standard library has them. libc++ lacked them for a long time; the C libraries on its platforms
// (musl, Emscripten) read and write numbers the same way in every locale.
#ifndef QUOLL_NUMBER_TEXT_PRIVATE_H
#define QUOLL_NUMBER_TEXT_PRIVATE_H

#include <charconv>
#include <type_traits>

#if !defined(__cpp_lib_to_chars) && !defined(__GLIBCXX__)
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>
#define QUOLL_OWN_NUMBER_TEXT 1
#endif

namespace quoll {

// As std::from_chars: reads as much of [first, last) as is a number. ec is result_out_of_range if T
// cannot hold it; value is then left alone.
template <class T>
std::from_chars_result read_number(const char* first, const char* last, T* value) {
#if defined(QUOLL_OWN_NUMBER_TEXT)
    if constexpr (!std::is_integral<T>::value) {
        const char* digits = first + (first != last && *first == '-');
        // strtod also takes blanks, a plus sign and hexadecimal digits.
        const bool other = digits == last || *digits == '+' || *digits == '-' ||
                           isspace((unsigned char)*digits) ||
                           (last - digits > 1 && *digits == '0' && (digits[1] | 32) == 'x');
        if (other) return {first, std::errc::invalid_argument};
        const std::string text(first, last);
        char* end = nullptr;
        errno = 0;
        const T read = sizeof(T) == sizeof(float) ? (T)strtof(text.c_str(), &end)
                                                  : (T)strtod(text.c_str(), &end);
        const char* const stopped = first + (end - text.c_str());
        if (stopped == first) return {first, std::errc::invalid_argument};
        if (errno == ERANGE && (read == 0 || read - read != 0))
            return {stopped, std::errc::result_out_of_range};
        *value = read;
        return {stopped, std::errc()};
    } else
#endif
        return std::from_chars(first, last, *value);
}

// The shortest text that reads back as the value. Returns its end; 32 chars are enough.
inline char* write_number(char* first, char* last, float value) {
#if defined(QUOLL_OWN_NUMBER_TEXT)
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(first, size_t(last - first), "%.*g", digits, (double)value);
        if (strtof(first, nullptr) == value) break;
    }
    return first + strlen(first);
#else
    return std::to_chars(first, last, value).ptr;
#endif
}

}  // namespace quoll

#endif  // QUOLL_NUMBER_TEXT_PRIVATE_H
