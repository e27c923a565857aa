#include "output_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "quoll/log.h"

namespace quoll {

// The path without symbolic links, or the path itself of a file that is not there.
static std::string resolved(const std::string& path) {
    char buffer[PATH_MAX];
    return realpath(path.c_str(), buffer) ? buffer : path;
}

// One file under two names; files that are not there differ unless their names are the same.
static bool same_file(const std::string& a, const std::string& b) {
    struct stat sa, sb;
    if (stat(a.c_str(), &sa) || stat(b.c_str(), &sb)) return a == b;
    return S_ISREG(sa.st_mode) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

// Temporary files begin with this, whatever the target is called: names may be as long as the file
// system allows.
static const char kPart[] = ".quoll-part-";

static std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

// Those of programs that were killed: one that lives holds a lock on its own.
static void remove_leftovers(const std::string& folder) {
    DIR* const dir = opendir(folder.c_str());
    if (!dir) return;
    while (const struct dirent* entry = readdir(dir)) {
        if (strncmp(entry->d_name, kPart, strlen(kPart)) != 0) continue;
        const std::string path = folder + entry->d_name;
        const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
        close(fd);
    }
    closedir(dir);
}

// A new file, open and locked; -1, with errno set, when there can be none.
static int create_part(const std::string& folder, std::string* path) {
    static std::atomic<int> count{0};
    for (int tries = 0; tries < 100; tries++) {
        *path = folder + kPart + std::to_string(getpid()) + "-" + std::to_string(count++);
        const int fd = open(path->c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd < 0) return -1;
        // Somebody who removes leftovers may have come between; file systems without locks do not
        // let anybody lock.
        struct stat st;
        const bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!taken && fstat(fd, &st) == 0 && st.st_nlink > 0) return fd;
        close(fd);
    }
    errno = EEXIST;
    return -1;
}

OutputFiles::~OutputFiles() {
    for (const File& file : files_) {
        if (!file.temporary.empty()) unlink(file.temporary.c_str());
        if (file.fd >= 0) close(file.fd);
    }
}

std::string OutputFiles::add(const std::string& target) {
    for (const std::string& input : inputs_) {
        if (!same_file(input, target)) continue;
        QUOLL_LOGE("%s is an input, and may not be an output too", target.c_str());
        return "";
    }
    File file;
    file.target = resolved(target);
    for (const File& other : files_) {
        if (!same_file(other.target, file.target)) continue;
        QUOLL_LOGE("%s is named twice as an output", target.c_str());
        return "";
    }
    struct stat st;
    const bool exists = stat(file.target.c_str(), &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) {
        QUOLL_LOGE("%s is a folder, expected the name of a file", target.c_str());
        return "";
    }
    if (exists && !S_ISREG(st.st_mode)) {
        files_.push_back(file);
        return file.target;
    }
    const std::string folder = folder_of(file.target);
    remove_leftovers(folder);
    file.fd = create_part(folder, &file.temporary);
    if (file.fd < 0) {
        QUOLL_LOGE("%s cannot be created: %s", target.c_str(), strerror(errno));
        return "";
    }
    if (exists) (void)!fchmod(file.fd, st.st_mode & 07777);  // as far as the file system has modes
    files_.push_back(file);
    return file.temporary;
}

int OutputFiles::commit() {
    for (File& file : files_) {
        if (file.temporary.empty()) continue;
        if (rename(file.temporary.c_str(), file.target.c_str()) != 0) {
            QUOLL_LOGE("%s cannot be written: %s", file.target.c_str(), strerror(errno));
            return -1;
        }
        file.temporary.clear();
        close(file.fd);
        file.fd = -1;
    }
    files_.clear();
    return 0;
}

}  // namespace quoll
