// How a Net runs. Names are ncnn's; a field is here only if it is honoured.
#ifndef QUOLL_OPTION_H
#define QUOLL_OPTION_H

namespace quoll {

class Allocator;

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
    // inputs give what IEEE arithmetic has: what meets them is made on vectors.
    int use_fp32_split;
    // Convolutions of fp32 and fp16 blobs may multiply and add half floats where the processor does
    // (ARM's asimdhp), in half the time: 11 bits a product and a sum, and infinity beyond 65504.
    bool use_fp16_arithmetic;
    // What a GPU can run of a net runs there, by Vulkan, the rest on the CPU: on the device of
    // Net::set_vulkan_device. Set before load_model, as are the storage types that it takes over:
    // f16 with use_fp16_storage, else f32. Without a device everything runs on the CPU, after a
    // warning.
    bool use_vulkan_compute;
    // With use_fp16_storage a GPU may multiply on its matrix units (VK_KHR_cooperative_matrix): f16
    // factors, as blobs and weights are stored anyway, and fp32 sums. fp32 blobs never are.
    bool use_cooperative_matrix;
    // Layers may use channel-blocked blobs (elempack > 1).
    bool use_packing_layout;
    // 3x3 convolutions may use Winograd's algorithm, which rounds differently.
    bool use_winograd_convolution;
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
};

}  // namespace quoll

#endif
