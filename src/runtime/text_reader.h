// Reading text from a DataReader.
#ifndef QUOLL_DATAREADER_PRIVATE_H
#define QUOLL_DATAREADER_PRIVATE_H

#include "quoll/datareader.h"

namespace quoll {

// The next character; -1 at the end of the text, which is the end of the source, or the NUL of a
// string in memory of unknown length. The NUL stays unread.
inline int next_of_text(const DataReader& dr) {
    const int ch = dr.get_char();
    if (ch != 0) return ch;
    dr.unget_char(ch);
    return -1;
}

}  // namespace quoll

#endif
