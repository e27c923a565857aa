// How a Net runs. Names are ncnn's; all fields have an effect except those of the last group.
#ifndef QUOLL_OPTION_H
#define QUOLL_OPTION_H

namespace quoll {

class Allocator;
class PipelineCache;
class VkAllocator;

class Option {
public:
    // The defaults: as many threads as physical cores that the process may use, light mode,
    // packing.
    Option();

    // Intermediate blobs are freed as soon as their last reader has run.
    bool lightmode;
    // Threads that a layer may use. At least 1.
    int num_threads;
    // Memory for blobs (asked by one thread at a time) and for a layer's temporary buffers (asked
    // by several threads at once); null: the aligned malloc.
    Allocator* blob_allocator;
    Allocator* workspace_allocator;
    // Milliseconds that idle workers spin before they sleep; never more than 0.1, so as to leave
    // the processors to other processes.
    int openmp_blocktime;
    // Blobs between layers are kept as IEEE half floats, or as bfloat16. Arithmetic stays fp32,
    // except that convolutions and inner products of bfloat16 blobs multiply bfloat16 weights if
    // the processor has units for that (AMX, AVX512_BF16, BFMMLA) and they are faster.
    bool use_fp16_storage;
    bool use_bf16_storage;
    // Convolutions and inner products of fp32 blobs may run on tile units (AMX):
    // - 6, as good as fp32 arithmetic: convolutions by products of 24-bit integers, as three int8
    //   slices each; all else by six products of bfloat16 terms.
    // - 3: by three such products, to about 16 bits, where that is faster still.
    // - 1: by one, to 8 bits. With 1, nine rows and more also meet weights in blocks (Gemm,
    //   MultiHeadAttention) as bytes wherever the processor has dot products of bytes: inputs are
    //   rounded to 1/127 of the largest of their block.
    // - 0: never.
    // NaN and infinite inputs give what IEEE arithmetic gives: outputs that they reach are computed
    // on vectors.
    int use_fp32_split;
    // Convolutions of fp32 and fp16 blobs may multiply and add half floats if the processor does so
    // (ARM's asimdhp), in half the time: with 11 bits for each product and sum, and infinity beyond
    // 65504. With use_fp16_storage GPUs multiply so outside matrix units (docs/vulkan.md).
    bool use_fp16_arithmetic;
    // What a GPU can run of a net runs there, by Vulkan, and the rest on the CPU; the device is
    // that of Net::set_vulkan_device. To be set before load_model, like the storage types that the
    // GPU takes over: f16 with use_fp16_storage; bf16 with use_bf16_storage if it multiplies
    // matrices of bf16; else f32. Without a device everything runs on the CPU, after a warning.
    bool use_vulkan_compute;
    // With use_fp16_storage or use_bf16_storage a GPU may multiply on its matrix units
    // (VK_KHR_cooperative_matrix): factors as blobs and weights are stored anyway, with fp32 sums.
    // fp32 blobs are never multiplied there.
    bool use_cooperative_matrix;
    // Memory on the device for the VkMats that Extractor and VkCompute make, and memory of the host
    // for copies from and to it (quoll/vkmat.h); null: the device's own.
    VkAllocator* blob_vkallocator;
    VkAllocator* staging_vkallocator;
    // What does not fit into the device's memory runs on the CPU, after a warning: the whole net if
    // its weights do not fit. Without this option it is an error.
    bool vulkan_fallback;
    // Microseconds that a submission to the GPU may take at most: work is submitted in parts (of at
    // least one dispatch, measured when a size first runs), so that others, such as the screen, get
    // their turn in between. 0: an inference is one submission. And how many submissions may wait
    // on the device at a time; 0: any number.
    int vulkan_slice_us;
    int vulkan_max_in_flight;
    // Layers may use channel-blocked blobs (elempack > 1).
    bool use_packing_layout;
    // 3x3 convolutions may use Winograd's algorithm, which rounds differently: in tiles of 2, 4 or
    // 6 outputs, of which this engine has F(4, 3): use_winograd43_convolution.
    bool use_winograd_convolution;
    bool use_winograd23_convolution;
    bool use_winograd43_convolution;
    bool use_winograd63_convolution;
    // load_model folds layers into each other: batch norm, scale, bias and activations into
    // convolutions and the like, padding into convolutions; layers that change nothing are removed.
    // Blobs between them are then not computed, unless Net::keep_blob asks for them.
    bool use_graph_fusion;
    // Run the scalar reference of every operator instead of its fast implementation: slow, for
    // checking.
    bool use_reference_layers;
    // The first layer that makes an infinite value from finite inputs, or NaN from inputs without
    // NaN, ends the run with an error that names it (with fp16 storage, values beyond 65504 are
    // infinite). Costs a pass over every blob.
    bool check_finite;
    // Denormals are taken as zero while layers run: bit 0 as operands (DAZ), bit 1 as results
    // (FTZ).
    int flush_denormals;
    // Blobs and temporary buffers for which the application has no allocator come from memory that
    // the Net keeps from run to run; otherwise from the system.
    bool use_local_pool_allocator;
    // The keys and values that SDPA hands out for the next step have room for more rows, which that
    // step fills: it copies none of the earlier ones, and its output shares their memory. Only
    // without an allocator of the application. On a device this applies to VkMats that one step
    // hands to the next.
    bool use_growing_cache;

    // ncnn's fields that have no effect here, so that its programs compile. The back end decides
    // how blobs on the device are packed, and what shaders use of the device; blobs there are f16
    // with use_fp16_storage alone. Pipelines are kept by the device: a PipelineCache (quoll/gpu.h)
    // loads and saves them whether or not it is named here. Files are mapped wherever they can be,
    // int8 models run in int8, and kernels are chosen by the processor.
    PipelineCache* pipeline_cache;
    VkAllocator* workspace_vkallocator;
    bool use_sgemm_convolution;
    bool use_int8_inference;
    bool use_int8_packed, use_int8_storage, use_int8_arithmetic;
    bool use_fp16_packed, use_bf16_packed;
    bool use_int16_packed, use_int16_storage;
    bool use_fp16_uniform, use_int8_uniform;
    bool use_subgroup_ops;  // has an effect: convolutions of software devices (docs/vulkan.md)
    bool use_shader_local_memory, use_tensor_storage;
    bool use_shader_pack8, use_image_storage;  // of ncnn before August 2025
    bool use_weights_in_host_memory;
    bool use_mapped_model_loading;
    bool use_a53_a55_optimized_kernel;
    // This one has an effect: the device, if Net::set_vulkan_device names none; -1: the default
    // one.
    int vulkan_device_index;
    bool use_reserved_m0, use_reserved_0, use_reserved_1p, use_reserved_2f, use_reserved_3f,
        use_reserved_11;
};

}  // namespace quoll

#endif
