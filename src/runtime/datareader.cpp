#include "quoll/datareader.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

namespace quoll {

static const int kNothingPushedBack = -2;

DataReader::DataReader() : pushed_back_(kNothingPushedBack) {}
DataReader::~DataReader() {}
int DataReader::scan(const char*, void*) const { return 0; }
size_t DataReader::read(void*, size_t) const { return 0; }
size_t DataReader::reference(size_t, const void**) const { return 0; }
size_t DataReader::remaining() const { return (size_t)-1; }
DataReader* DataReader::reopen() const { return nullptr; }

int DataReader::get_char() const {
    if (pushed_back_ != kNothingPushedBack) {
        const int ch = pushed_back_;
        pushed_back_ = kNothingPushedBack;
        return ch;
    }
    unsigned char ch = 0;
    return read(&ch, 1) == 1 ? ch : -1;
}

void DataReader::unget_char(int ch) const { pushed_back_ = ch; }

DataReaderFromMemory::DataReaderFromMemory(const unsigned char*& mem)
    : mem_(mem), left_((size_t)-1) {}
DataReaderFromMemory::DataReaderFromMemory(const unsigned char*& mem, size_t size)
    : mem_(mem), left_(size) {}

// One conversion of a text in memory, as sscanf with the consumed length.
int DataReaderFromMemory::scan(const char* format, void* p) const {
    const size_t length = strlen(format);
    char extended[64];
    if (length + 3 > sizeof(extended)) return 0;
    memcpy(extended, format, length);
    memcpy(extended + length, "%n", 3);
    int consumed = 0;
    const int items = sscanf((const char*)mem_, extended, p, &consumed);
    mem_ += consumed;
    return items > 0 ? items : 0;
}

size_t DataReaderFromMemory::read(void* buf, size_t size) const {
    const size_t count = size < left_ ? size : left_;
    if (count == 0) return 0;  // there may be no memory at all
    memcpy(buf, mem_, count);
    mem_ += count;
    if (left_ != (size_t)-1) left_ -= count;
    return count;
}

size_t DataReaderFromMemory::reference(size_t size, const void** buf) const {
    if (size > left_ || (uintptr_t)mem_ % 4 != 0) return 0;
    *buf = mem_;
    mem_ += size;
    if (left_ != (size_t)-1) left_ -= size;
    return size;
}

size_t DataReaderFromMemory::remaining() const { return left_; }

namespace {

struct MemoryPointer {
    const unsigned char* mem;
};
class MemoryReopened : private MemoryPointer, public DataReaderFromMemory {
public:
    MemoryReopened(const unsigned char* at, size_t size)
        : MemoryPointer{at}, DataReaderFromMemory(MemoryPointer::mem, size) {}
};

}  // namespace

DataReader* DataReaderFromMemory::reopen() const { return new MemoryReopened(mem_, left_); }

DataReader* EmptyDataReader::reopen() const { return new EmptyDataReader; }

size_t EmptyDataReader::read(void* buf, size_t size) const {
    memset(buf, 0, size);
    return size;
}

}  // namespace quoll
