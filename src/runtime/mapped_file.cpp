#include "runtime/mapped_file.h"

#include <string.h>

#include <algorithm>

#if defined(__linux__)
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "runtime/exceptions.h"
#include "runtime/ref_count.h"

namespace quoll {

// Smaller weights share pages with others, and cost less to copy than to keep account of.
static const size_t kLeastMapped = 32 << 10;

MappedFile::MappedFile(char* base, size_t size, size_t length, int fd)
    : base_(base), size_(size), length_(length), fd_(fd), position_(0), taken_(0), users_(1) {}

void MappedFile::release() {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

size_t MappedFile::read(void* buf, size_t size) const {
    const size_t count = std::min(size, remaining());
    memcpy(buf, base_ + position_, count);
    position_ += count;
    return count;
}

size_t MappedFile::remaining() const { return size_ - position_; }

// Not used for weights, but for what somebody creates with a weight's allocator.
void* MappedFile::fastMalloc(size_t size) { return fast_malloc(size); }

#if defined(__linux__)

// A process that wants to write to the file, or to truncate it, has to wait until the lease is
// given back: pages that vanish would end this process (SIGBUS). The system signals such a wish;
// the signal is one that is ignored unless the application handles it.
static bool take_lease(int fd) {
    return fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
}

MappedFile* MappedFile::open(const char* path) {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    struct stat st;
    const bool regular =
        take_lease(fd) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    // There is at least one page behind the file, since Mats may be read beyond their end.
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = regular ? (size_t)st.st_size : 0;
    const size_t length = align_size(size, page) + page;
    void* const base = regular ? mmap(nullptr, length, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                               : MAP_FAILED;
    MappedFile* file = nullptr;
    if (base != MAP_FAILED) {
        // A page that is written to is copied to memory of its own.
        if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd,
                 0) != MAP_FAILED)
            file = catch_no_memory("MappedFile", (MappedFile*)nullptr,
                                   [&] { return new MappedFile((char*)base, size, length, fd); });
        if (!file) munmap(base, length);
    }
    if (file)
        madvise(base, size, MADV_WILLNEED);
    else
        ::close(fd);
    return file;
}

// A child process may have the file open too, so that closing it does not suffice.
void MappedFile::give_lease_back() {
    if (fd_ < 0) return;
    fcntl(fd_, F_SETLEASE, F_UNLCK);
    ::close(fd_);
    fd_ = -1;
}

MappedFile::~MappedFile() {
    munmap(base_, length_);
    give_lease_back();
}

void MappedFile::close() {
    if (users_.load(std::memory_order_acquire) > 1) {
        void* const own = mmap(nullptr, length_, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (own != MAP_FAILED) {  // else they stay in the file, which serves as well
            for (const Weight& w : weights_)
                if (references(&w.refcount) > 0)
                    memcpy((char*)own + (w.data - base_), w.data, w.bytes);
            if (mremap(own, length_, length_, MREMAP_MAYMOVE | MREMAP_FIXED, base_) == MAP_FAILED)
                munmap(own, length_);
            else
                give_lease_back();
        }
    }
    release();
}

// Drops the pages that are entirely between these bytes.
void MappedFile::drop_pages(size_t begin, size_t end) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    begin = align_size(begin, page), end = end / page * page;
    if (begin < end) madvise(base_ + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::fastFree(void* ptr) {
    // A Mat knows its block by the reference count.
    for (const Weight& w : weights_) {
        if (&w.refcount != ptr) continue;
        drop_pages((size_t)(w.data - base_), (size_t)(w.data - base_) + w.bytes);
        return release();
    }
    fast_free(ptr);
}

#else

MappedFile* MappedFile::open(const char*) { return nullptr; }
void MappedFile::give_lease_back() {}
MappedFile::~MappedFile() {}
void MappedFile::close() { release(); }
void MappedFile::drop_pages(size_t, size_t) {}
void MappedFile::fastFree(void* ptr) { fast_free(ptr); }

#endif

size_t MappedFile::reference(size_t size, const void** buf) const {
    if (size < kLeastMapped || size > remaining()) return 0;
    *buf = base_ + position_;
    position_ += size;
    return size;
}

Mat MappedFile::owned(const Mat& m) {
    char* const data = (char*)m.data;
    const size_t begin = taken_;
    taken_ = position_;
    if (m.refcount || data < base_ || data >= base_ + size_) {
        drop_pages(begin, taken_);
        return m;
    }
    weights_.emplace_back();
    Weight& w = weights_.back();
    w.refcount = 1, w.data = data, w.bytes = m.total() * m.elemsize;
    users_.fetch_add(1, std::memory_order_relaxed);
    Mat own = m;
    own.refcount = &w.refcount;
    own.allocator = this;
    return own;
}

}  // namespace quoll
