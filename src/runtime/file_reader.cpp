// The readers and the writer of files in quoll/datareader.h and quoll/datawriter.h.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#if defined(_WIN32)
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/log.h"

#if QUOLL_STDIO

namespace quoll {

DataReaderFromStdio::DataReaderFromStdio(FILE* fp) : fp_(fp) {}

int DataReaderFromStdio::scan(const char* format, void* p) const { return fscanf(fp_, format, p); }
size_t DataReaderFromStdio::read(void* buf, size_t size) const { return fread(buf, 1, size, fp_); }
int DataReaderFromStdio::get_char() const { return fgetc(fp_); }
void DataReaderFromStdio::unget_char(int ch) const { ungetc(ch, fp_); }

size_t DataReaderFromStdio::remaining() const {
    struct stat st;
    const off_t position = ftello(fp_);
    if (position < 0 || fstat(fileno(fp_), &st) != 0 || !S_ISREG(st.st_mode)) return (size_t)-1;
    return st.st_size > position ? (size_t)(st.st_size - position) : 0;
}

#if !defined(_WIN32)
namespace {

// Reads a FILE again, with its own descriptor and position.
class FileReopened : public DataReader {
public:
    FileReopened(int fd, off_t position) : fd_(fd), position_(position) {}
    ~FileReopened() override { close(fd_); }
    DataReader* reopen() const override {
        const int fd = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
        return fd < 0 ? nullptr : new FileReopened(fd, position_);
    }
    size_t read(void* buf, size_t size) const override {
        size_t done = 0;
        while (done < size) {
            const ssize_t count = pread(fd_, (char*)buf + done, size - done, position_);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) break;
            done += (size_t)count, position_ += count;
        }
        return done;
    }

private:
    const int fd_;
    mutable off_t position_;
};

}  // namespace
#endif

DataReader* DataReaderFromStdio::reopen() const {
#if defined(_WIN32)
    return nullptr;
#else
    if (remaining() == (size_t)-1) return nullptr;
    const int fd = fcntl(fileno(fp_), F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? nullptr : new FileReopened(fd, ftello(fp_));
#endif
}

// Maps a file for reading; unmap_file() undoes it. Null, with the reason, if it cannot be mapped.
#if defined(_WIN32)
static void* map_file(const char* path, size_t* size, const char** why) {
    *why = "cannot open, or it is empty:";
    const HANDLE file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING,
                                    FILE_ATTRIBUTE_NORMAL, nullptr);
    if (file == INVALID_HANDLE_VALUE) return nullptr;
    LARGE_INTEGER length;
    void* map = nullptr;
    if (GetFileSizeEx(file, &length) && length.QuadPart > 0) {
        *why = "cannot map";
        const HANDLE mapping = CreateFileMappingA(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
        if (mapping) map = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
        if (mapping) CloseHandle(mapping);
        *size = (size_t)length.QuadPart;
    }
    CloseHandle(file);
    return map;
}
static void unmap_file(const void* map, size_t) { UnmapViewOfFile(map); }
#else
static void* map_file(const char* path, size_t* size, const char** why) {
    *why = "cannot open, or it is empty:";
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    struct stat st;
    void* map = MAP_FAILED;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        *why = "cannot map";
        map = mmap(nullptr, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        *size = (size_t)st.st_size;
    }
    close(fd);
    return map == MAP_FAILED ? nullptr : map;
}
static void unmap_file(const void* map, size_t size) { munmap(const_cast<void*>(map), size); }
#endif

DataReaderFromMmap::DataReaderFromMmap(const char* path) : base_(0), size_(0), position_(0) {
    const char* why = nullptr;
    size_t size = 0;
    base_ = (const unsigned char*)map_file(path, &size, &why);
    if (base_)
        size_ = size;
    else
        QUOLL_LOGE("[DataReaderFromMmap] %s %s", why, path);
}

DataReaderFromMmap::~DataReaderFromMmap() {
    if (base_) unmap_file(base_, size_);
}

bool DataReaderFromMmap::ok() const { return base_ != 0; }

size_t DataReaderFromMmap::read(void* buf, size_t size) const {
    const size_t count = size < remaining() ? size : remaining();
    if (count) memcpy(buf, base_ + position_, count);
    position_ += count;
    return count;
}

size_t DataReaderFromMmap::reference(size_t size, const void** buf) const {
    if (size > remaining() || position_ % 4 != 0) return 0;
    *buf = base_ + position_;
    position_ += size;
    return size;
}

size_t DataReaderFromMmap::remaining() const { return size_ - position_; }

// From where this one is.
DataReader* DataReaderFromMmap::reopen() const {
    const unsigned char* rest = base_ + position_;
    return DataReaderFromMemory(rest, remaining()).reopen();
}

DataWriterToStdio::DataWriterToStdio(FILE* fp) : fp_(fp) {}
size_t DataWriterToStdio::write(const void* data, size_t size) const {
    return fwrite(data, 1, size, fp_);
}

}  // namespace quoll

#endif
