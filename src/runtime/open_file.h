// Files of models.
#ifndef QUOLL_FILE_PRIVATE_H
#define QUOLL_FILE_PRIVATE_H

#include <errno.h>
#include <stdio.h>

namespace quoll {

// fopen for reading that fails, with errno set, for what opens and cannot be read: a folder.
inline FILE* open_to_read(const char* path) {
    FILE* fp = fopen(path, "rb");
    if (!fp) return nullptr;
    const int first = getc(fp);
    if (first != EOF) {
        ungetc(first, fp);
        return fp;
    }
    if (!ferror(fp)) {
        clearerr(fp);  // it is empty
        return fp;
    }
    const int code = errno;
    fclose(fp);
    errno = code;
    return nullptr;
}

}  // namespace quoll

#endif
