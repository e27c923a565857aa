// Where params and weights are read from.
#ifndef QUOLL_DATAREADER_H
#define QUOLL_DATAREADER_H

#include <stddef.h>
#include <stdio.h>

#include "quoll/platform.h"

namespace quoll {

// The interface of a source. Derive from it to read from anything: an archive, a socket, a cipher.
class DataReader {
public:
    DataReader();
    virtual ~DataReader();

    // Text, in the manner of fscanf with one conversion: the number of items read (0 or 1). A plain
    // text param is read through read_text(); this form exists for readers written for ncnn.
    virtual int scan(const char* format, void* p) const;

    // Reads up to `size` bytes; returns how many came. Fewer than asked means the end.
    virtual size_t read(void* buf, size_t size) const;

    // Zero-copy: a pointer to the next `size` bytes, valid as long as the Net lives, and 4-byte
    // aligned; the position moves on. Returns size, or 0 when the reader cannot.
    virtual size_t reference(size_t size, const void** buf) const;

    // Bytes left, or (size_t)-1 when that is not known; guards allocations against absurd counts.
    virtual size_t remaining() const;

    // A new reader, which the caller deletes, that begins at this one's position and yields the
    // same bytes as long as the Net lives; null, the default, if there can be none. A Net calls it
    // before it reads weights, since it may have to read some again (Extractor::extract of a blob
    // that was fused away). With readers that cannot, such an extract() is an error.
    virtual DataReader* reopen() const;

    // The next character of a text, or -1 at the end; and a way to put one character back. The
    // default uses read(), and keeps the character that was put back.
    virtual int get_char() const;
    virtual void unget_char(int ch) const;

private:
    mutable int pushed_back_;
};

#if QUOLL_STDIO
// Reads a FILE from its current position on, and leaves it where reading stopped.
class DataReaderFromStdio : public DataReader {
public:
    explicit DataReaderFromStdio(FILE* fp);
    int scan(const char* format, void* p) const override;
    size_t read(void* buf, size_t size) const override;
    size_t remaining() const override;
    // For regular files only.
    DataReader* reopen() const override;
    int get_char() const override;
    void unget_char(int ch) const override;

private:
    FILE* fp_;
};
#endif

// Reads memory that the caller keeps alive; `mem` moves on as bytes are consumed. Without a size
// the memory is trusted to hold what the model needs (ncnn's form).
class DataReaderFromMemory : public DataReader {
public:
    explicit DataReaderFromMemory(const unsigned char*& mem);
    DataReaderFromMemory(const unsigned char*& mem, size_t size);
    int scan(const char* format, void* p) const override;
    size_t read(void* buf, size_t size) const override;
    size_t reference(size_t size, const void** buf) const override;
    size_t remaining() const override;
    DataReader* reopen() const override;

private:
    const unsigned char*& mem_;
    mutable size_t left_;
};

#if QUOLL_STDIO
// A file mapped read-only: weights are used in place. The mapping must outlive the Net.
class DataReaderFromMmap : public DataReader {
public:
    explicit DataReaderFromMmap(const char* path);
    ~DataReaderFromMmap();
    // False, with a message in the log, when the file could not be mapped.
    bool ok() const;
    size_t read(void* buf, size_t size) const override;
    size_t reference(size_t size, const void** buf) const override;
    size_t remaining() const override;
    DataReader* reopen() const override;

private:
    DataReaderFromMmap(const DataReaderFromMmap&);
    DataReaderFromMmap& operator=(const DataReaderFromMmap&);
    const unsigned char* base_;
    size_t size_;
    mutable size_t position_;
};
#endif

// Yields zeros without end: a net without a .bin, for timing.
class EmptyDataReader : public DataReader {
public:
    size_t read(void* buf, size_t size) const override;
    DataReader* reopen() const override;
};

}  // namespace quoll

#endif
