// A file of weights that is mapped while a Net loads it: Mats use the weights in place, so that
// nothing is copied except what layers pack.
#ifndef QUOLL_MAPPED_FILE_PRIVATE_H
#define QUOLL_MAPPED_FILE_PRIVATE_H

#include <atomic>
#include <deque>

#include "quoll/allocator.h"
#include "quoll/datareader.h"
#include "quoll/modelbin.h"

namespace quoll {

// Lives until close() and the end of the last of its Mats. The pages of a weight are released when
// its Mat is. Mats may be written to; the file never is. A process that wants to write to the file
// waits until close().
class MappedFile : public Allocator, public DataReader {
public:
    // Null if the system has no such mappings, if the file cannot be mapped or is empty, or if
    // others could truncate it meanwhile: somebody has it open for writing, or the system grants no
    // lease on it (a file of another user, a network file system). Such a file has to be read
    // instead.
    static MappedFile* open(const char* path);
    // Turns what Mats still hold into ordinary memory: the file may change from now on.
    void close();

    // To be called with the Mat that was made from what was read last. If its data is in the
    // mapping, it comes to own that memory; if it was made from the data, the data's pages are
    // released.
    Mat owned(const Mat& m);

    size_t read(void* buf, size_t size) const override;
    // For weights that are large enough only; others have to be read.
    size_t reference(size_t size, const void** buf) const override;
    size_t remaining() const override;
    void* fastMalloc(size_t size) override;
    void fastFree(void* ptr) override;

private:
    struct Weight {
        int refcount;
        char* data;
        size_t bytes;
    };
    MappedFile(char* base, size_t size, size_t length, int fd);
    ~MappedFile() override;
    void release();
    void give_lease_back();
    void drop_pages(size_t begin, size_t end);

    char* const base_;
    const size_t size_, length_;  // bytes of the file; of the mapping
    int fd_;                      // -1 when the file may change
    mutable size_t position_;
    size_t taken_;                // position behind the last Mat
    std::deque<Weight> weights_;  // fixed once loading has read them
    std::atomic<int> users_;      // until close() this object's maker, and Mats
};

// Large weights stay in the mapping, small ones are copied.
class ModelBinFromMappedFile : public ModelBinFromDataReader {
public:
    explicit ModelBinFromMappedFile(MappedFile* file)
        : ModelBinFromDataReader(*file), file_(file) {}
    using ModelBinFromDataReader::load;
    Mat load(int w, int type) const override {
        return file_->owned(ModelBinFromDataReader::load(w, type));
    }

private:
    MappedFile* const file_;
};

}  // namespace quoll

#endif
