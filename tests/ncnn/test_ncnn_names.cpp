// Every public name of ncnn's headers is there, links and means what it should.
#include "allocator.h"
#include "benchmark.h"
#include "blob.h"
#include "c_api.h"
#include "check.h"
#include "command.h"
#include "cpu.h"
#include "datareader.h"
#include "expression.h"
#include "gpu.h"
#include "layer.h"
#include "layer_type.h"
#include "mat.h"
#include "modelbin.h"
#include "net.h"
#include "option.h"
#include "paramdict.h"
#include "pipeline.h"
#include "pipelinecache.h"
#include "platform.h"
#include "simplemath.h"
#include "simpleomp.h"
#include "simplestl.h"

namespace {

// In #if alone; what the compiler was asked for.
bool test_isa_macros() {
#if NCNN_AVX2 && !NCNN_AVX || NCNN_AVX && !defined(__AVX__) || defined(__AVX__) && !NCNN_AVX
    return false;
#elif NCNN_AVX512 && !(NCNN_AVX2 && NCNN_FMA && NCNN_F16C) || NCNN_XOP && !NCNN_AVX
    return false;
#elif (NCNN_AVX512VNNI || NCNN_AVX512BF16 || NCNN_AVX512FP16) && !NCNN_AVX512
    return false;
#elif (NCNN_AVXVNNI || NCNN_AVXVNNIINT8 || NCNN_AVXVNNIINT16 || NCNN_AVXNECONVERT) && !NCNN_AVX2
    return false;
#elif (NCNN_ARM82 || NCNN_ARM82DOT || NCNN_ARM82FP16FML || NCNN_ARM84BF16 || NCNN_ARM84I8MM) && \
    !NCNN_VFPV4
    return false;
#elif (NCNN_ARM86SVE2 || NCNN_ARM86SVEBF16 || NCNN_ARM86SVEI8MM || NCNN_ARM86SVEF32MM) && \
    !NCNN_ARM86SVE
    return false;
#elif NCNN_LASX && !NCNN_LSX || NCNN_ZVFH && !NCNN_RVV || NCNN_XTHEADVECTOR && !NCNN_RVV
    return false;
#elif defined(__SSE2__) && (NCNN_VFPV4 || NCNN_MSA || NCNN_MMI || NCNN_ZFH)
    return false;
#elif !NCNN_GNU_INLINE_ASM && defined(__GNUC__)
    return false;
#else
    return true;
#endif
}

// Classes that programs derive from.
class HalfWeights : public ncnn::ModelBin {
public:
    virtual ncnn::Mat load(int w, int) const {
        ncnn::Mat m(w);
        m.fill(0.5f);
        return m;
    }
    virtual ncnn::Mat load(int w, int h, int) const {
        ncnn::Mat m(w, h);
        m.fill(0.25f);
        return m;
    }
    virtual ncnn::Mat load(int w, int h, int c, int type) const {
        return ncnn::ModelBin::load(w, h, c, type);
    }
    virtual ncnn::Mat load(int w, int h, int d, int c, int type) const {
        return ncnn::ModelBin::load(w, h, d, c, type);
    }
};

int g_destroyed = 0;
struct OwnParams : public ncnn::ParamDict {
    virtual ~OwnParams() { g_destroyed++; }
};
struct OwnExtractor : public ncnn::Extractor {
    explicit OwnExtractor(const ncnn::Net& net) : Extractor(&net, net.blobs().size()) {}
    virtual ~OwnExtractor() { g_destroyed++; }
};

void test_derived() {
    const HalfWeights weights;
    const ncnn::ModelBin& base = weights;
    CHECK(base.load(3, 1)[2] == 0.5f && base.load(3, 2, 1)[5] == 0.25f);
    CHECK(base.load(3, 2, 2, 1).c == 2 && base.load(3, 2, 2, 2, 1).d == 2);
    const ncnn::DataReader nothing;
    char byte;
    CHECK(nothing.read(&byte, 1) == 0);

    ncnn_net_t net = ncnn_net_create();
    ncnn::Net* const same = (ncnn::Net*)net->pthis;
    CHECK(same->load_param_mem("7767517\n2 2\nInput in 0 1 a\nReLU relu 1 1 a b\n") == 0);
    CHECK(ncnn_net_get_input_count(net) == 1);
    std::unique_ptr<ncnn::Extractor> ex(new OwnExtractor(*same));
    ncnn::Mat x(2), y;
    x[0] = -1.f, x[1] = 3.f;
    CHECK(ex->input("a", x) == 0 && ex->extract("b", y) == 0 && y[0] == 0.f && y[1] == 3.f);
    ex.reset();
    std::unique_ptr<ncnn::ParamDict>(new OwnParams()).reset();
    CHECK(g_destroyed == 2);
    ncnn_net_destroy(net);
}

void test_platform() {
    static_assert(NCNN_STDIO && NCNN_STRING && NCNN_THREADS && NCNN_PIXEL && NCNN_C_API, "");
    CHECK(std::string(NCNN_VERSION_STRING) == "1.0." + std::to_string(NCNN_VERSION_NUMBER));
    static_assert(NCNN_VERSION_NUMBER > 20260000 && NCNN_VERSION_NUMBER < 30000000, "a date");
    static_assert(!NCNN_WINXP && NCNN_FORCE_INLINE && NCNN_SYSTEM_GLSLANG, "");
    CHECK(test_isa_macros());
    CHECK(ncnn::alignSize(17, 16) == 32 && ncnn::alignSize(32, 16) == 32);
    CHECK(ncnn::alignPtr((char*)33, 16) == (char*)48);
    void* block = ncnn::fastMalloc(100);
    CHECK(block && (size_t)block % NCNN_MALLOC_ALIGN == 0 && NCNN_MALLOC_OVERREAD == 64);
    ncnn::fastFree(block);
    int count = 3;
    CHECK(NCNN_XADD(&count, 2) == 3 && count == 5);
    unsigned char bytes[4] = {1, 2, 3, 4};
    ncnn::swap_endianness_16(bytes);
    CHECK(bytes[0] == 2 && bytes[1] == 1);
    ncnn::swap_endianness_32(bytes);
    CHECK(bytes[0] == 4 && bytes[3] == 2);
    ncnn::MappedFile file;
    CHECK(file.open("models/digits/digits.param") == 0 && file.size() > 7);
    CHECK(memcmp(file.mapped_ptr(), "7767517", 7) == 0);
    file.close();
    CHECK(file.size() == 0 && file.mapped_ptr() == 0);
    NCNN_LOGE("a message with %d number", 1);
    const double start = ncnn::get_current_time();
    ncnn::sleep(5);
    CHECK(ncnn::get_current_time() - start >= 4.9);
}

// Two threads take turns: the condition is the parity of a number.
struct Turns {
    ncnn::Mutex mutex;
    ncnn::ConditionVariable changed;
    ncnn::ThreadLocalStorage own;
    int turn, sum;
    Turns() : turn(0), sum(0) {}
};

void* take_turns(void* args) {
    Turns* t = (Turns*)args;
    t->own.set(args);
    for (int i = 0; i < 100; i++) {
        t->mutex.lock();
        while (t->turn % 2 == 0) t->changed.wait(t->mutex);
        t->turn++, t->sum += i;
        t->changed.signal();
        t->mutex.unlock();
    }
    return t->own.get() == args ? 0 : args;
}

void test_threads() {
    Turns t;
    ncnn::Thread thread(take_turns, &t);
    for (int i = 0; i < 100; i++) {
        ncnn::MutexLockGuard guard(t.mutex);
        while (t.turn % 2 == 1) t.changed.wait(t.mutex);
        t.turn++;
        t.changed.broadcast();
    }
    thread.join();
    CHECK(t.turn == 200 && t.sum == 4950 && t.own.get() == 0);
}

void test_mat() {
    ncnn::Mat m(3, 2, 4, (size_t)4u, 1, 5);  // five items
    CHECK(m.n == 5 && m.dims == 3 && m.refcount && *m.refcount == 1);
    m.fill(1.f);
    ncnn::Mat items = m.batch_range(1, 3);
    items.fill(2.f);
    CHECK(m.batch(0)[0] == 1.f && m.batch(1)[0] == 2.f && m.batch(4)[0] == 1.f && items.n == 3);
    ncnn::Mat like;
    like.create_like(m, 2);
    CHECK(like.n == 2 && like.c == 4);
    like.create(7, (size_t)2u, 1, 3);
    CHECK(like.dims == 1 && like.w == 7 && like.n == 3 && like.elembits() == 16);
    // Items begin on 4-KiB multiples, in memory that the program lays out too.
    CHECK(m.nstep == 1024 && like.nstep == 2048);
    std::vector<float> memory(1024 + 8);
    ncnn::Mat view(4, 2, &memory[0], (size_t)4u, 1, 2);
    view.batch(1).fill(3.f);
    CHECK(memory[1023] == 0.f && memory[1024] == 3.f && view.refcount == 0);
    ncnn::Mat implied = 5;
    CHECK(implied.w == 5);
#if defined(__SSE2__)
    ncnn::Mat packed(3, (size_t)16u, 4);
    packed.fill(_mm_set_ps(4.f, 3.f, 2.f, 1.f));
    CHECK(packed[5] == 2.f && packed[11] == 4.f);
#endif
    CHECK(ncnn::float16_to_float32(ncnn::float32_to_float16(1.5f)) == 1.5f);
    CHECK(ncnn::bfloat16_to_float32(ncnn::float32_to_bfloat16(-2.f)) == -2.f);
    const unsigned short one_and_half = ncnn::float32_to_float16(1.5f);
    CHECK(ncnn::float8_to_float16(ncnn::float16_to_float8(one_and_half)) == one_and_half);
    CHECK(ncnn::bfloat8_to_float16(ncnn::float16_to_bfloat8(one_and_half)) == one_and_half);
    CHECK(ncnn::float16_to_float8(ncnn::float32_to_float16(480.f)) == 0x7f);  // not a number
    CHECK(ncnn::float16_to_float8(ncnn::float32_to_float16(-240.f)) == 0xf7);
    CHECK(ncnn::float16_to_float8(ncnn::float32_to_float16(0.001f)) == 0);

    // Round trips of the Mat functions.
    ncnn::Mat a(4, 4), b, c;
    for (int i = 0; i < 16; i++) a[i] = (float)i;
    ncnn::copy_make_border(a, b, 1, 1, 1, 1, ncnn::BORDER_CONSTANT, 9.f);
    ncnn::copy_cut_border(b, c, 1, 1, 1, 1);
    CHECK(b.w == 6 && b[0] == 9.f && c.w == 4 && c[5] == 5.f);
    ncnn::Mat volume(2, 2, 3);
    ncnn::copy_make_border_3d(volume, b, 0, 0, 0, 0, 1, 1, ncnn::BORDER_REPLICATE, 0.f);
    ncnn::copy_cut_border_3d(b, c, 0, 0, 0, 0, 1, 1);
    CHECK(b.c == 5 && c.c == 3);
    volume.fill(1.f);
    ncnn::resize_bilinear(volume, b, 4, 4);
    ncnn::resize_nearest(volume, c, 5, 4);
    CHECK(b.w == 4 && b[0] == 1.f && c.w == 5 && c[4] == 1.f);
    ncnn::resize_bicubic(volume, c, 3, 3);
    CHECK(c.w == 3);
    ncnn::convert_packing(a, b, 4);
    ncnn::flatten(a, c);
    CHECK(b.elempack == 4 && b.h == 1 && c.w == 16);
    ncnn::cast_float32_to_float16(a, b);
    ncnn::cast_float16_to_float32(b, c);
    CHECK(b.elemsize == 2 && c[15] == 15.f);
    ncnn::cast_float32_to_bfloat16(a, b);
    ncnn::cast_bfloat16_to_float32(b, c);
    CHECK(c[15] == 15.f);
    ncnn::Mat scale(1), bias(1), half(1);
    scale.fill(2.f), bias.fill(0.f), half.fill(0.5f);
    ncnn::quantize_to_int8(a, b, scale);
    ncnn::cast_int8_to_float32(b, c);
    CHECK(b.elemsize == 1 && c[15] == 30.f);
    ncnn::Mat sums(3);
    ((int*)sums)[0] = 10, ((int*)sums)[1] = -10, ((int*)sums)[2] = 1000;
    ncnn::dequantize_from_int32(sums, c, half, bias);
    CHECK(c[0] == 5.f && c[1] == -5.f);
    ncnn::requantize_from_int32_to_int8(sums, b, half, scale, bias, 1, ncnn::Mat());  // with ReLU
    const signed char* q = b;
    CHECK(q && q[0] == 10 && q[1] == 0 && q[2] == 127);
}

void test_options() {
    ncnn::Option opt;
    opt.lightmode = opt.use_subgroup_ops = opt.use_winograd_convolution = true;
    opt.use_sgemm_convolution = opt.use_int8_inference = opt.use_bf16_storage = false;
    opt.use_fp16_packed = opt.use_fp16_storage = opt.use_fp16_arithmetic = false;
    opt.use_int8_packed = opt.use_int8_storage = opt.use_int8_arithmetic = true;
    opt.use_packing_layout = opt.use_bf16_packed = opt.use_tensor_storage = true;
    CHECK(!opt.use_shader_pack8 && !opt.use_image_storage);
    opt.use_shader_pack8 = opt.use_image_storage = true;
    opt.use_weights_in_host_memory = opt.use_mapped_model_loading = true;
    opt.use_local_pool_allocator = opt.use_shader_local_memory = true;
    opt.use_cooperative_matrix = opt.use_a53_a55_optimized_kernel = true;
    opt.use_winograd23_convolution = opt.use_winograd43_convolution = true;
    opt.use_winograd63_convolution = opt.use_fp16_uniform = opt.use_int8_uniform = true;
    opt.use_int16_packed = opt.use_int16_storage = opt.use_vulkan_compute = false;
    opt.use_reserved_m0 = opt.use_reserved_0 = opt.use_reserved_1p = false;
    opt.use_reserved_2f = opt.use_reserved_3f = opt.use_reserved_11 = false;
    opt.num_threads = 1, opt.openmp_blocktime = 1, opt.flush_denormals = 3;
    opt.vulkan_device_index = 0;
    opt.blob_allocator = opt.workspace_allocator = 0;
    opt.blob_vkallocator = opt.workspace_vkallocator = opt.staging_vkallocator = 0;
    opt.pipeline_cache = 0;
    CHECK(opt.lightmode && !opt.use_vulkan_compute);
}

void test_layers() {
    CHECK(ncnn::LayerType::AbsVal == 0 && ncnn::LayerType::CustomBit == 256);
    CHECK(ncnn::layer_to_index("Convolution") == ncnn::LayerType::Convolution);
    ncnn::Layer* made[] = {ncnn::create_layer("ReLU"),
                           ncnn::create_layer_cpu("ReLU"),
                           ncnn::create_layer_naive("ReLU"),
                           ncnn::create_layer(ncnn::LayerType::ReLU),
                           ncnn::create_layer_cpu(ncnn::LayerType::ReLU),
                           ncnn::create_layer_naive(ncnn::LayerType::ReLU)};
    for (ncnn::Layer* layer : made) {
        CHECK(layer && layer->one_blob_only && layer->support_inplace);
        CHECK(!layer->support_vulkan && !layer->support_tensor_storage && layer->featmask == 0);
        CHECK(layer->bottom_shapes.empty() && layer->userdata == 0);
        ncnn::ParamDict pd;
        pd.set(0, 0.5f);
        ncnn::Mat x(2), y;
        x[0] = -2.f, x[1] = 2.f;
        ncnn::Option opt;
        CHECK(layer->load_param(pd) == 0 && layer->create_pipeline(opt) == 0);
        CHECK(layer->forward(x, y, opt) == 0 && y[0] == -1.f && y[1] == 2.f);
        CHECK(layer->destroy_pipeline(opt) == 0);
        delete layer;
    }
    // ncnn's users write over the inputs of those that say so, and take as many outputs from there.
    for (const char* type : {"BinaryOp", "Eltwise", "CopyTo", "Concat", "Convolution"}) {
        ncnn::Layer* layer = ncnn::create_layer_cpu(type);
        CHECK(layer && !layer->support_inplace && !layer->support_reserved_2);
        delete layer;
    }
    ncnn::Layer* scalar = ncnn::create_layer_cpu("BinaryOp");
    ncnn::ParamDict with_scalar;
    with_scalar.set(1, 1);
    CHECK(scalar->load_param(with_scalar) == 0);
    CHECK(scalar->one_blob_only && scalar->support_inplace);
    delete scalar;
    const ncnn::layer_registry_entry row = {"ReLU", 0};
    const ncnn::custom_layer_registry_entry custom = {"Mine", 0, 0, 0};
    const ncnn::overwrite_builtin_layer_registry_entry other = {3, 0, 0, 0};
    CHECK(row.name && custom.name && other.typeindex == 3);
}

void test_expression() {
    CHECK(ncnn::count_expression_blobs("-1,1h,2w") == 3);
    std::vector<ncnn::Mat> blobs(1, ncnn::Mat(6, 7));
    std::vector<int> values;
    CHECK(ncnn::eval_list_expression("*(0w,2),-(0h,1)", blobs, values) == 0);
    CHECK(values.size() == 2 && values[0] == 12 && values[1] == 6);
    CHECK(ncnn::eval_list_expression("*(0w", blobs, values) != 0);
}

void test_cpu() {
    CHECK(ncnn::get_cpu_count() >= 1 && ncnn::get_physical_cpu_count() >= 1);
    CHECK(ncnn::get_little_cpu_count() + ncnn::get_big_cpu_count() >= 1);
    CHECK(ncnn::get_physical_little_cpu_count() + ncnn::get_physical_big_cpu_count() >= 1);
    CHECK(ncnn::get_cpu_level2_cache_size() > 0 && ncnn::get_cpu_level3_cache_size() >= 0);
    CHECK(ncnn::cpu_support_riscv_v() >= 0 && ncnn::cpu_riscv_vlenb() == 0);
    CHECK(ncnn::cpu_support_x86_avx2() <= ncnn::cpu_support_x86_avx());
    ncnn::CpuSet set;
    set.enable(0);
    CHECK(set.is_enabled(0) && set.num_enabled() == 1);
#if defined(__linux__)
    CPU_SET(3, &set.cpu_set);
    CHECK(set.is_enabled(3) && set.num_enabled() == 2 && CPU_ISSET(0, &set.cpu_set));
    set.disable(3);
#endif
    set.disable(0);
    set.disable_all();
    CHECK(set.num_enabled() == 0);
    CHECK(ncnn::get_cpu_thread_affinity_mask(0).num_enabled() >= 1);
    ncnn::set_omp_num_threads(2);
    CHECK(ncnn::get_omp_num_threads() == 2 && ncnn::get_omp_thread_num() == 0);
    const int mode = ncnn::get_flush_denormals();
    CHECK(ncnn::set_flush_denormals(mode) == 0);
    CHECK(ncnn::get_cpu_powersave() == 0 && ncnn::set_cpu_powersave(0) == 0);
    CHECK(ncnn::is_current_thread_running_on_a53_a55() == 0);
}

void test_gpu() {
    // Names alone: there may be no device.
    const int count = ncnn::get_gpu_count();
    CHECK(count >= 0);
    const ncnn::GpuInfo& info = ncnn::get_gpu_info();
    const bool is_there = count > 0;
    CHECK(info.device_index() == (is_there ? ncnn::get_default_gpu_index() : -1));
    CHECK(info.support_fp16_packed() == is_there && info.support_int8_packed() == is_there);
    CHECK(info.support_int16_packed() == is_there && !info.support_bf16_packed());
    CHECK(!info.support_bf16_storage() && !info.bug_implicit_fp16_arithmetic());
    CHECK(!info.bug_storage_buffer_no_l1() && !info.bug_corrupted_online_pipeline_cache());
    CHECK(!info.bug_buffer_image_load_zero() && info.unified_compute_transfer_queue());
    CHECK(info.support_fp16_storage() || !info.support_fp16_uniform());
    CHECK(info.support_int8_storage() || !info.support_int8_uniform());
    CHECK(info.support_int16_storage() == info.support_fp16_storage());
    CHECK(is_there || !(info.support_int16_arithmetic() || info.support_fp16_image() ||
                        info.support_int8_image() || info.support_ycbcr_conversion() ||
                        info.support_fp_fast_math() || info.resizable_bar_enabled()));
    CHECK(is_there ||
          !(info.support_cooperative_matrix_8_8_16() || info.support_cooperative_matrix_16_8_8() ||
            info.support_cooperative_matrix_16_8_16() ||
            info.support_cooperative_matrix_16_16_16() || info.support_int8_cooperative_matrix() ||
            info.support_bf16_cooperative_matrix()));
    CHECK(info.rough_score() <= 100 && (info.type() != 3 || info.rough_score() == 0));
    CHECK((info.max_workgroup_count_x() >= 65535) == is_there);
    CHECK((info.max_workgroup_count_y() >= 65535) == is_there);
    CHECK((info.max_workgroup_count_z() >= 65535) == is_there);
    CHECK((info.max_workgroup_size_x() >= 128) == is_there);
    CHECK((info.max_workgroup_size_y() >= 128) == is_there);
    CHECK((info.max_workgroup_size_z() >= 64) == is_there);
    CHECK((info.max_image_dimension_1d() >= 4096) == is_there);
    CHECK((info.max_image_dimension_2d() >= 4096) == is_there);
    CHECK((info.max_image_dimension_3d() >= 256) == is_there);
    CHECK((info.memory_map_alignment() >= 64) == is_there);
    CHECK((info.buffer_offset_alignment() >= 1) == is_there);
    CHECK((info.non_coherent_atom_size() >= 1) == is_there);
    CHECK((info.buffer_image_granularity() >= 1) == is_there);
    CHECK((info.timestamp_period() > 0.f) == is_there);
    CHECK((info.compute_queue_count() >= 1) == is_there);
    CHECK(info.transfer_queue_count() == info.compute_queue_count());
    CHECK(info.transfer_queue_family_index() == info.compute_queue_family_index());
    CHECK((info.max_subgroup_size() >= 1) == is_there);
    CHECK(info.min_subgroup_size() <= info.subgroup_size());
    CHECK(info.subgroup_size() <= info.max_subgroup_size());
    CHECK(info.support_subgroup_size_control() || !info.support_compute_full_subgroups());
    CHECK(((info.support_subgroup_ops() & 1) != 0) == is_there);  // the basic ones
    CHECK(info.driver_name() != 0 && info.pipeline_cache_uuid() != 0);
    CHECK(is_there || (info.driver_id() == 0 && info.max_compute_workgroup_subgroups() == 0));
    CHECK(info.extension_version("VK_KHR_no_such_thing") == 0);
    CHECK(info.support_VK_KHR_cooperative_matrix() >= 0 && info.support_VK_KHR_swapchain() >= 0);

    ncnn::VkMat none;
    CHECK(none.empty() && none.refcount == 0);
    ncnn::VkImageMat image;
    image.create_like(ncnn::Mat(3), (ncnn::VkAllocator*)0);
    CHECK(image.empty());
}

}  // namespace

int main() {
    test_platform();
    test_threads();
    test_mat();
    test_options();
    test_layers();
    test_derived();
    test_expression();
    test_cpu();
    test_gpu();
    return result_of_checks();
}
