#include "common/temporary_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <filesystem>

#include "quoll/log.h"

namespace quoll {

TemporaryFolder::TemporaryFolder(const std::string& program) {
    const char* base = getenv("TMPDIR");
    std::string name = std::string(base && *base ? base : "/tmp") + "/" + program + ".XXXXXX";
    if (mkdtemp(&name[0]))
        path_ = name;
    else
        QUOLL_LOGE("a temporary folder cannot be made: %s: %s", name.c_str(), strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace quoll
