// How a Net runs. Names are ncnn's; all are honoured but those of the last group.
#ifndef QUOLL_OPTION_H
#define QUOLL_OPTION_H

namespace quoll {

class Allocator;
class PipelineCache;
class VkAllocator;

class Option {
public:
    // Threads = physical cores that the process may use; light mode; packing.
    Option();

    // Intermediate blobs are released as soon as their last consumer has run.
    bool lightmode;
    // Threads that a layer may use. At least 1.
    int num_threads;
    // Memory for named blobs (used by one thread at a time) and for a layer's temporary buffers
    // (may be asked from several threads); null: the aligned malloc.
    Allocator* blob_allocator;
    Allocator* workspace_allocator;
    // Milliseconds that idle workers spin before they sleep; never more than 0.1, so that other
    // processes have the processors.
    int openmp_blocktime;
    // Blobs between layers are kept as IEEE half floats, or as bfloat16; arithmetic stays fp32, but
    // that convolutions and inner products of bfloat16 blobs multiply bfloat16 weights where the
    // processor has units for that (AMX) and they are faster.
    bool use_fp16_storage;
    bool use_bf16_storage;
    // Convolutions and inner products of fp32 blobs may run on tile units (AMX). 6, as good as fp32
    // arithmetic: convolutions by products of 24-bit integers, whose three int8 slices the units
    // multiply, all else by six products of bfloat16 terms. 3: by three such products, to
    // about 16 bits, where that is faster still; 1: by one, to 8 bits; 0: never. NaN and infinite
    // inputs give what IEEE arithmetic has: what meets them is made on vectors. With 1, nine rows
    // and more meet weights in blocks (Gemm, MultiHeadAttention) as bytes wherever the processor
    // has dot products of these: inputs are rounded to 1/127 of the largest of their block.
    int use_fp32_split;
    // Convolutions of fp32 and fp16 blobs may multiply and add half floats where the processor does
    // (ARM's asimdhp), in half the time: 11 bits a product and a sum, and infinity beyond 65504.
    bool use_fp16_arithmetic;
    // What a GPU can run of a net runs there, by Vulkan, the rest on the CPU: on the device of
    // Net::set_vulkan_device. Set before load_model, as are the storage types that it takes over:
    // f16 with use_fp16_storage, bf16 with use_bf16_storage where it multiplies matrices of bf16,
    // else f32. Without a device everything runs on the CPU, after a warning.
    bool use_vulkan_compute;
    // With use_fp16_storage or use_bf16_storage a GPU may multiply on its matrix units
    // (VK_KHR_cooperative_matrix): factors as blobs and weights are stored anyway, and fp32 sums.
    // fp32 blobs never are.
    bool use_cooperative_matrix;
    // Memory on the device for what Extractor and VkCompute make in VkMats, and of the host for
    // copies from and to it (quoll/vkmat.h); null: the device's own.
    VkAllocator* blob_vkallocator;
    VkAllocator* staging_vkallocator;
    // What does not fit into the device's memory runs on the CPU, after a warning: the whole net if
    // its weights do not. Else that is an error.
    bool vulkan_fallback;
    // Work on a GPU is submitted in parts that take at most so many microseconds each, but one
    // dispatch at least, measured when a size first runs, so that others (the screen) get their turn
    // in between; 0: an inference is one submission. And how many submissions may wait on the device
    // at a time, 0: any number.
    int vulkan_slice_us;
    int vulkan_max_in_flight;
    // Layers may use channel-blocked blobs (elempack > 1).
    bool use_packing_layout;
    // 3x3 convolutions may use Winograd's algorithm, which rounds differently: by tiles of 2, 4 or 6
    // outputs, of which this engine has F(4, 3): use_winograd43_convolution.
    bool use_winograd_convolution;
    bool use_winograd23_convolution;
    bool use_winograd43_convolution;
    bool use_winograd63_convolution;
    // load_model folds layers into each other: batch norm, scale, bias and activations into
    // convolutions and the like, padding into convolutions, layers that change nothing away. Blobs
    // between them are no more, unless Net::keep_blob asks for them.
    bool use_graph_fusion;
    // Run the scalar reference of every operator instead of its fast implementation: slow, for
    // checking.
    bool use_reference_layers;
    // The first layer that makes an infinite value of finite inputs, or NaN of inputs without, ends
    // the run with an error that names it (fp16 storage: values beyond 65504 are infinite). Costs a
    // pass over every blob.
    bool check_finite;
    // Denormals are zero while layers run: bit 0 as operands (DAZ), bit 1 as results (FTZ).
    int flush_denormals;
    // Blobs and temporary buffers without an allocator of the application come from memory that the
    // Net keeps from run to run; otherwise from the system.
    bool use_local_pool_allocator;
    // The keys and values that SDPA hands out for the next step have room for more rows, which that
    // step fills: it copies none of the earlier ones, and its output shares their memory. Without an
    // allocator of the application only. On a device, VkMats that one step hands to the next.
    bool use_growing_cache;

    // ncnn's fields that change nothing here, so that its programs compile. Blobs on the device
    // are f16 with use_fp16_storage alone; how they are packed, and what of the device shaders use,
    // the back end decides. Pipelines are kept by the device: a PipelineCache (quoll/gpu.h) loads
    // and saves them whether or not it is named here. Files are mapped wherever they can be, int8
    // models run in int8, kernels are chosen by the processor.
    PipelineCache* pipeline_cache;
    VkAllocator* workspace_vkallocator;
    bool use_sgemm_convolution;
    bool use_int8_inference;
    bool use_int8_packed, use_int8_storage, use_int8_arithmetic;
    bool use_fp16_packed, use_bf16_packed;
    bool use_int16_packed, use_int16_storage;
    bool use_fp16_uniform, use_int8_uniform;
    bool use_subgroup_ops, use_shader_local_memory, use_tensor_storage;
    bool use_shader_pack8, use_image_storage;  // of ncnn before August 2025
    bool use_weights_in_host_memory;
    bool use_mapped_model_loading;
    bool use_a53_a55_optimized_kernel;
    // This one counts: the device where Net::set_vulkan_device names none; -1: the default one.
    int vulkan_device_index;
    bool use_reserved_m0, use_reserved_0, use_reserved_1p, use_reserved_2f, use_reserved_3f,
        use_reserved_11;
};

}  // namespace quoll

#endif
