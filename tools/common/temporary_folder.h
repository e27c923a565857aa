// A folder for files that nobody keeps.
#ifndef QUOLL_TOOLS_TEMPORARY_FOLDER_H
#define QUOLL_TOOLS_TEMPORARY_FOLDER_H

#include <string>

namespace quoll {

// A new folder in $TMPDIR, or /tmp, that goes with all its files.
class TemporaryFolder {
public:
    explicit TemporaryFolder(const std::string& program);
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    // False, after a message in the log, if it could not be made.
    bool ok() const { return !path_.empty(); }
    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

}  // namespace quoll

#endif
