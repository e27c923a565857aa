#include "gpu/limit_options.h"

#include "quoll/log.h"

namespace quoll {

static void limit(const GpuInfo& info, bool has_it, const char* name, bool* option) {
    if (!*option || has_it) return;
    *option = false;
    QUOLL_LOGI("Vulkan: %s cannot follow %s, which is off for this net", info.device_name(), name);
}

void limit_options(const GpuInfo& info, Option* opt) {
    limit(info, info.support_fp16_storage(), "use_fp16_storage", &opt->use_fp16_storage);
    limit(info, info.support_fp16_arithmetic(), "use_fp16_arithmetic", &opt->use_fp16_arithmetic);
    limit(info, info.support_int8_storage(), "use_int8_storage", &opt->use_int8_storage);
}

}  // namespace quoll
