#include "quoll/datawriter.h"

namespace quoll {

DataWriter::~DataWriter() {}

DataWriterToStdio::DataWriterToStdio(FILE* fp) : fp_(fp) {}
size_t DataWriterToStdio::write(const void* data, size_t size) const {
    return fwrite(data, 1, size, fp_);
}

DataWriterToMemory::DataWriterToMemory(std::vector<unsigned char>* bytes) : bytes_(bytes) {}
size_t DataWriterToMemory::write(const void* data, size_t size) const {
    const unsigned char* first = (const unsigned char*)data;
    bytes_->insert(bytes_->end(), first, first + size);
    return size;
}

}  // namespace quoll
