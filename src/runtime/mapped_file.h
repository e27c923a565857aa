// A file of weights that is mapped while a Net loads it: Mats take the weights where they lie, so
// that nothing is copied but what layers pack.
#ifndef QUOLL_MAPPED_FILE_PRIVATE_H
#define QUOLL_MAPPED_FILE_PRIVATE_H

#include <atomic>
#include <deque>

#include "quoll/allocator.h"
#include "quoll/datareader.h"
#include "quoll/modelbin.h"

namespace quoll {

// Lives until close() and the last of its Mats. The pages of a weight leave memory when its Mat
// does. Mats may be written to; the file never is. Who wants to write to it waits until close().
class MappedFile : public Allocator, public DataReader {
public:
    // Null where the system has no such mappings, the file cannot be mapped or is empty, or others
    // could cut it off meanwhile: somebody has it open for writing, or the system gives no lease on
    // it (a file of another user, a network). Such a file has to be read.
    static MappedFile* open(const char* path);
    // What Mats still hold becomes ordinary memory: the file may change from now on.
    void close();

    // The Mat that what was read last made: one whose data is the mapping's comes to own its
    // memory; of another, made from the data, these leave memory.
    Mat owned(const Mat& m);

    size_t read(void* buf, size_t size) const override;
    // Only of weights that are worth it; others have to be read.
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

// Large weights lie in the mapping, small ones are copied.
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
