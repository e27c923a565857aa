// Where params and weights are written to.
#ifndef QUOLL_DATAWRITER_H
#define QUOLL_DATAWRITER_H

#include <stddef.h>
#include <stdio.h>

#include <vector>

namespace quoll {

// The interface of a sink. Derive from it to write to anything.
class DataWriter {
public:
    virtual ~DataWriter();
    // Takes `size` bytes; returns how many it took. Fewer than given is an error.
    virtual size_t write(const void* data, size_t size) const = 0;
};

#if QUOLL_STDIO
// Writes to a FILE from its current position on.
class DataWriterToStdio : public DataWriter {
public:
    explicit DataWriterToStdio(FILE* fp);
    size_t write(const void* data, size_t size) const override;

private:
    FILE* fp_;
};
#endif

// Appends to a vector that the caller keeps alive.
class DataWriterToMemory : public DataWriter {
public:
    explicit DataWriterToMemory(std::vector<unsigned char>* bytes);
    size_t write(const void* data, size_t size) const override;

private:
    std::vector<unsigned char>* bytes_;
};

}  // namespace quoll

#endif
