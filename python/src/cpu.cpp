// Processors, threads and GPUs.
#include "quoll/cpu.h"

#include <nanobind/stl/string.h>

#include "bindings.h"
#include "calls.h"
#include "quoll/gpu.h"

namespace quoll_python {

namespace {

void check(int status, const char* what, const char* expected) {
    if (status != 0) throw nb::value_error((std::string(what) + ": expected " + expected).c_str());
}

void bind_gpu(nb::module_& m) {
    nb::class_<quoll::GpuInfo>(m, "GpuInfo", "What a Vulkan device is and can do.")
        .def("device_name", [](const quoll::GpuInfo& g) { return std::string(g.device_name()); })
        .def("type", &quoll::GpuInfo::type, "0 discrete, 1 integrated, 2 virtual, 3 software.")
        .def("api_version", &quoll::GpuInfo::api_version)
        .def("driver_version", &quoll::GpuInfo::driver_version)
        .def("vendor_id", &quoll::GpuInfo::vendor_id)
        .def("device_id", &quoll::GpuInfo::device_id)
        .def("heap_size", &quoll::GpuInfo::heap_size, "Bytes of the largest heap that is the device's own.")
        .def("support_fp16_storage", &quoll::GpuInfo::support_fp16_storage)
        .def("support_fp16_arithmetic", &quoll::GpuInfo::support_fp16_arithmetic);
    m.def("create_gpu_instance", [] { call("create_gpu_instance", [] { return quoll::create_gpu_instance(); }); });
    m.def("destroy_gpu_instance", [] { quoll::destroy_gpu_instance(); });
    m.def("get_gpu_count", [] { const ReleaseGil released; return quoll::get_gpu_count(); }, "Vulkan devices.");
    m.def("get_default_gpu_index", [] { const ReleaseGil released; return quoll::get_default_gpu_index(); }, "-1: there is none.");
    m.def("get_gpu_info", [](int index) { return quoll::get_gpu_info(index); }, nb::arg("device_index") = 0);
}

}  // namespace

void bind_cpu(nb::module_& m) {
#define QUOLL_BIND(name, doc) m.def(#name, [] { return quoll::name(); }, doc)
    QUOLL_BIND(cpu_support_arm_neon, "1 if the processor has it.");
    QUOLL_BIND(cpu_support_arm_vfpv4, "1 if the processor has it.");
    QUOLL_BIND(cpu_support_arm_asimdhp, "1 if the processor has it.");
    QUOLL_BIND(cpu_support_x86_avx, "1 if the processor has it.");
    QUOLL_BIND(cpu_support_x86_avx2, "1 if the processor has it.");
    QUOLL_BIND(cpu_support_x86_avx512, "1 if the processor has it.");
    QUOLL_BIND(get_cpu_count, "Logical processors that this process may use.");
    QUOLL_BIND(get_little_cpu_count, "Little ones of these.");
    QUOLL_BIND(get_big_cpu_count, "Big ones of these.");
    QUOLL_BIND(get_physical_cpu_count, "Physical cores that this process may use.");
    QUOLL_BIND(get_physical_little_cpu_count, "Little ones of these.");
    QUOLL_BIND(get_physical_big_cpu_count, "Big ones of these.");
    QUOLL_BIND(get_cpu_powersave, "The mode of set_cpu_powersave.");
    QUOLL_BIND(get_omp_num_threads, "The most threads that layers run by this thread use.");
    QUOLL_BIND(get_omp_dynamic, "Whether threads that are often late are left out for a while.");
    QUOLL_BIND(get_omp_thread_num, "Within a layer, the number of the thread.");
    QUOLL_BIND(get_kmp_blocktime, "Milliseconds that idle workers spin before they sleep.");
    QUOLL_BIND(get_flush_denormals, "The mode of set_flush_denormals.");
#undef QUOLL_BIND
    m.def("set_cpu_powersave", [](int mode) { check(quoll::set_cpu_powersave(mode), "powersave", "0 (all), 1 (little) or 2 (big cores)"); },
          nb::arg("powersave"), "Binds this thread and its workers: 0 all processors, 1 little, 2 big ones.");
    m.def("set_omp_num_threads", [](int n) { check(quoll::set_omp_num_threads(n), "num_threads", "at least 1"); }, nb::arg("num_threads"));
    m.def("set_omp_dynamic", [](int dynamic) { quoll::set_omp_dynamic(dynamic); }, nb::arg("dynamic"));
    m.def("set_kmp_blocktime", [](int ms) { check(quoll::set_kmp_blocktime(ms), "blocktime", "at least 0"); }, nb::arg("time_ms"));
    m.def("set_flush_denormals", [](int mode) { check(quoll::set_flush_denormals(mode), "flush_denormals", "0 to 3"); },
          nb::arg("flush_denormals"), "Denormals of this thread are zero: bit 0 as operands, bit 1 as results.");
    bind_gpu(m);
}

}  // namespace quoll_python
