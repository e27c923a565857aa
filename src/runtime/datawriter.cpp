#include "quoll/datawriter.h"

namespace quoll {

DataWriter::~DataWriter() {}

DataWriterToMemory::DataWriterToMemory(std::vector<unsigned char>* bytes) : bytes_(bytes) {}
size_t DataWriterToMemory::write(const void* data, size_t size) const {
    const unsigned char* first = (const unsigned char*)data;
    bytes_->insert(bytes_->end(), first, first + size);
    return size;
}

}  // namespace quoll
