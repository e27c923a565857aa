#include "output_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

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

OutputFiles::~OutputFiles() {
    for (const File& file : files_)
        if (!file.temporary.empty()) unlink(file.temporary.c_str());
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
    file.temporary = file.target + ".part" + std::to_string(getpid());
    const int fd = open(file.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        QUOLL_LOGE("%s cannot be created: %s", target.c_str(), strerror(errno));
        return "";
    }
    if (exists) (void)!fchmod(fd, st.st_mode & 07777);  // as far as the file system has modes
    close(fd);
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
    }
    files_.clear();
    return 0;
}

}  // namespace quoll
