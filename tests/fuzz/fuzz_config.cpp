// Hostile quoll.yml.
#include "deploy/config.h"
#include "harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::quiet();
    const fuzz::File file(data, size);
    quoll::DeployConfig config;
    std::vector<std::string> problems;
    if (quoll::read_deploy_config(file.path(), &config, &problems) == 0 && !problems.empty())
        abort();
    return 0;
}
