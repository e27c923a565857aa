/* quoll for C programs (C89 on; C++98 takes it too).
 *
 *     quoll_net_t net = quoll_net_create();
 *     quoll_mat_t out = NULL;
 *     quoll_mat_t in = quoll_mat_from_pixels(rgb, QUOLL_MAT_PIXEL_RGB, w, h, 3 * w, NULL);
 *     quoll_extractor_t ex;
 *
 *     if (quoll_net_load_param(net, "model.param") || quoll_net_load_model(net, "model.bin"))
 *         puts(quoll_last_error());
 *     ex = quoll_extractor_create(net);
 *     quoll_extractor_input(ex, "data", in);
 *     if (quoll_extractor_extract(ex, "prob", &out))
 *         puts(quoll_last_error());
 *
 * Functions that return int return QUOLL_OK or another quoll_status, except getters; functions that
 * return an object return NULL on failure. quoll_last_error() says why.
 *
 * Objects from a *_create, *_clone, reshape, load or extract function belong to the caller, who
 * passes them to the *_destroy function of their kind, which takes NULL too. One object is for one
 * thread at a time, except that several Extractors of one Net may run at once.
 *
 * Functions do what those of the C++ classes of the same names do; quoll/net.h, mat.h, ... say more
 * about them. */
#ifndef QUOLL_C_API_H
#define QUOLL_C_API_H

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- errors */

/* What functions return. */
enum quoll_status {
    QUOLL_OK = 0,
    QUOLL_ERROR = -1,           /* bad input: a file, a shape, a parameter */
    QUOLL_UNEXPECTED_NULL = -2, /* an argument is NULL that must not be */
    QUOLL_BAD_STATE = -3,       /* calls in the wrong order */
    QUOLL_BAD_DATA = -4,        /* a model that does not load */
    QUOLL_OUT_OF_MEMORY = -100
};

/* "QUOLL_OK", ...; "QUOLL_ERROR" for a number that is none. */
const char* quoll_status_name(int status);

/* The message of the last function of this header that failed in this thread, "" if none has.
 * Valid until the next one fails. */
const char* quoll_last_error(void);

/* Forgets it. */
void quoll_clear_error(void);

/* The release, "0.1.0", and as a number: major * 10000 + minor * 100 + patch. */
const char* quoll_version(void);
int quoll_version_number(void);

/* ---------------------------------------------------------------- allocators */

/* A program may replace both functions of an allocator from quoll_allocator_create. */
typedef struct quoll_allocator* quoll_allocator_t;
struct quoll_allocator {
    /* For the program. */
    void* pthis;
    /* A block that is aligned to 64 bytes and may be read 64 bytes past its end, or NULL. */
    void* (*fast_malloc)(quoll_allocator_t allocator, size_t size);
    /* Takes it back. */
    void (*fast_free)(quoll_allocator_t allocator, void* ptr);
};

/* An allocator of the system's memory; a pool for any number of threads; a pool for one thread. */
quoll_allocator_t quoll_allocator_create(void);
quoll_allocator_t quoll_allocator_create_pool_allocator(void);
quoll_allocator_t quoll_allocator_create_unlocked_pool_allocator(void);

/* To be called after everything that uses it is destroyed. */
void quoll_allocator_destroy(quoll_allocator_t allocator);

/* ---------------------------------------------------------------- pipelines of a GPU */

/* What a GPU's driver compiled, for the next process (docs/vulkan.md). */
typedef struct quoll_pipelinecache* quoll_pipelinecache_t;

/* The cache of a device, which is opened; NULL if there is no such device. */
quoll_pipelinecache_t quoll_pipelinecache_create(int device_index);
void quoll_pipelinecache_destroy(quoll_pipelinecache_t cache);

/* The number of pipelines that the device has. They stay with the device: clear removes none. */
size_t quoll_pipelinecache_get_size(const quoll_pipelinecache_t cache);
void quoll_pipelinecache_clear(quoll_pipelinecache_t cache);

/* To be called before a net is loaded. QUOLL_ERROR for a cache that is damaged or belongs to
 * another driver, device or library: pipelines are then compiled as if there were none. */
int quoll_pipelinecache_load_memory(quoll_pipelinecache_t cache, const unsigned char* data,
                                    size_t size);
int quoll_pipelinecache_load(quoll_pipelinecache_t cache, const char* path);

/* *size: the bytes that data has room for; becomes the bytes that were written, or are needed.
 * QUOLL_ERROR if data is NULL or too small. */
int quoll_pipelinecache_save_memory(const quoll_pipelinecache_t cache, unsigned char* data,
                                    size_t* size);
int quoll_pipelinecache_save(const quoll_pipelinecache_t cache, const char* path);

/* ---------------------------------------------------------------- options */

typedef struct quoll_option* quoll_option_t;

/* Options with the defaults of the C++ class. */
quoll_option_t quoll_option_create(void);
void quoll_option_destroy(quoll_option_t opt);

/* Threads that a layer may use, at least 1. */
int quoll_option_get_num_threads(const quoll_option_t opt);
void quoll_option_set_num_threads(quoll_option_t opt, int num_threads);

/* Memory for blobs, and for temporary buffers of layers; NULL: the default. */
void quoll_option_set_blob_allocator(quoll_option_t opt, quoll_allocator_t allocator);
void quoll_option_set_workspace_allocator(quoll_option_t opt, quoll_allocator_t allocator);

/* Accepted without effect: a device keeps its pipelines whether or not a cache is named here. */
void quoll_option_set_pipeline_cache(quoll_option_t opt, quoll_pipelinecache_t cache);

/* The switches of the C++ class Option, with their names (quoll/option.h); 0 or 1. */
int quoll_option_get_use_vulkan_compute(const quoll_option_t opt);
int quoll_option_get_use_local_pool_allocator(const quoll_option_t opt);
int quoll_option_get_use_winograd_convolution(const quoll_option_t opt);
int quoll_option_get_use_sgemm_convolution(const quoll_option_t opt);
int quoll_option_get_use_packing_layout(const quoll_option_t opt);
int quoll_option_get_use_fp16_packed(const quoll_option_t opt);
int quoll_option_get_use_fp16_storage(const quoll_option_t opt);
int quoll_option_get_use_fp16_arithmetic(const quoll_option_t opt);
int quoll_option_get_use_int8_packed(const quoll_option_t opt);
int quoll_option_get_use_int8_storage(const quoll_option_t opt);
int quoll_option_get_use_int8_arithmetic(const quoll_option_t opt);
int quoll_option_get_use_int16_packed(const quoll_option_t opt);
int quoll_option_get_use_int16_storage(const quoll_option_t opt);
int quoll_option_get_use_bf16_packed(const quoll_option_t opt);
int quoll_option_get_use_bf16_storage(const quoll_option_t opt);
int quoll_option_get_use_shader_local_memory(const quoll_option_t opt);
int quoll_option_get_use_cooperative_matrix(const quoll_option_t opt);
int quoll_option_get_use_graph_fusion(const quoll_option_t opt);
int quoll_option_get_use_reference_layers(const quoll_option_t opt);
int quoll_option_get_check_finite(const quoll_option_t opt);
int quoll_option_get_lightmode(const quoll_option_t opt);
void quoll_option_set_use_vulkan_compute(quoll_option_t opt, int enable);
void quoll_option_set_use_local_pool_allocator(quoll_option_t opt, int enable);
void quoll_option_set_use_winograd_convolution(quoll_option_t opt, int enable);
void quoll_option_set_use_sgemm_convolution(quoll_option_t opt, int enable);
void quoll_option_set_use_packing_layout(quoll_option_t opt, int enable);
void quoll_option_set_use_fp16_packed(quoll_option_t opt, int enable);
void quoll_option_set_use_fp16_storage(quoll_option_t opt, int enable);
void quoll_option_set_use_fp16_arithmetic(quoll_option_t opt, int enable);
void quoll_option_set_use_int8_packed(quoll_option_t opt, int enable);
void quoll_option_set_use_int8_storage(quoll_option_t opt, int enable);
void quoll_option_set_use_int8_arithmetic(quoll_option_t opt, int enable);
void quoll_option_set_use_int16_packed(quoll_option_t opt, int enable);
void quoll_option_set_use_int16_storage(quoll_option_t opt, int enable);
void quoll_option_set_use_bf16_packed(quoll_option_t opt, int enable);
void quoll_option_set_use_bf16_storage(quoll_option_t opt, int enable);
void quoll_option_set_use_shader_local_memory(quoll_option_t opt, int enable);
void quoll_option_set_use_cooperative_matrix(quoll_option_t opt, int enable);
void quoll_option_set_use_graph_fusion(quoll_option_t opt, int enable);
void quoll_option_set_use_reference_layers(quoll_option_t opt, int enable);
void quoll_option_set_check_finite(quoll_option_t opt, int enable);
void quoll_option_set_lightmode(quoll_option_t opt, int enable);

/* ---------------------------------------------------------------- mats */

/* What one scalar of a Mat is. */
enum quoll_dtype { QUOLL_F32, QUOLL_F16, QUOLL_BF16, QUOLL_S32, QUOLL_S8, QUOLL_U8 };

typedef struct quoll_mat* quoll_mat_t;

/* An empty Mat. */
quoll_mat_t quoll_mat_create(void);

/* f32 Mats of uninitialised memory; batches of n items, each beginning on a 4096-byte multiple. */
quoll_mat_t quoll_mat_create_1d(int w, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_2d(int w, int h, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_3d(int w, int h, int c, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_4d(int w, int h, int d, int c, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_1d_batch(int w, int n, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_2d_batch(int w, int h, int n, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_3d_batch(int w, int h, int c, int n, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_4d_batch(int w, int h, int d, int c, int n,
                                      quoll_allocator_t allocator);

/* Views of f32 memory that the caller keeps; channels begin on 16-byte multiples. */
quoll_mat_t quoll_mat_create_external_1d(int w, void* data, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_external_2d(int w, int h, void* data, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_external_3d(int w, int h, int c, void* data,
                                         quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_external_4d(int w, int h, int d, int c, void* data,
                                         quoll_allocator_t allocator);

/* The same with elements of elemsize bytes, elempack scalars each. */
quoll_mat_t quoll_mat_create_1d_elem(int w, size_t elemsize, int elempack,
                                     quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_2d_elem(int w, int h, size_t elemsize, int elempack,
                                     quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_3d_elem(int w, int h, int c, size_t elemsize, int elempack,
                                     quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_4d_elem(int w, int h, int d, int c, size_t elemsize, int elempack,
                                     quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_1d_elem_batch(int w, size_t elemsize, int elempack, int n,
                                           quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_2d_elem_batch(int w, int h, size_t elemsize, int elempack, int n,
                                           quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_3d_elem_batch(int w, int h, int c, size_t elemsize, int elempack,
                                           int n, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_4d_elem_batch(int w, int h, int d, int c, size_t elemsize,
                                           int elempack, int n, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_external_1d_elem(int w, void* data, size_t elemsize, int elempack,
                                              quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_external_2d_elem(int w, int h, void* data, size_t elemsize,
                                              int elempack, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_external_3d_elem(int w, int h, int c, void* data, size_t elemsize,
                                              int elempack, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_create_external_4d_elem(int w, int h, int d, int c, void* data,
                                              size_t elemsize, int elempack,
                                              quoll_allocator_t allocator);

/* Frees the memory, unless another Mat shares it. */
void quoll_mat_destroy(quoll_mat_t mat);

/* Sets all values of an f32 Mat. */
void quoll_mat_fill_float(quoll_mat_t mat, float v);

/* A deep copy. */
quoll_mat_t quoll_mat_clone(const quoll_mat_t mat, quoll_allocator_t allocator);

/* The same values in another shape, sharing the memory if the layout allows; NULL if the number of
 * values differs. */
quoll_mat_t quoll_mat_reshape_1d(const quoll_mat_t mat, int w, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_reshape_2d(const quoll_mat_t mat, int w, int h, quoll_allocator_t allocator);
quoll_mat_t quoll_mat_reshape_3d(const quoll_mat_t mat, int w, int h, int c,
                                 quoll_allocator_t allocator);
quoll_mat_t quoll_mat_reshape_4d(const quoll_mat_t mat, int w, int h, int d, int c,
                                 quoll_allocator_t allocator);

/* Axes, sizes in elements, batch items; bytes and scalars of an element; elements from one
 * channel, and one item, to the next. */
int quoll_mat_get_dims(const quoll_mat_t mat);
int quoll_mat_get_w(const quoll_mat_t mat);
int quoll_mat_get_h(const quoll_mat_t mat);
int quoll_mat_get_d(const quoll_mat_t mat);
int quoll_mat_get_c(const quoll_mat_t mat);
int quoll_mat_get_n(const quoll_mat_t mat);
size_t quoll_mat_get_elemsize(const quoll_mat_t mat);
int quoll_mat_get_elempack(const quoll_mat_t mat);
size_t quoll_mat_get_cstep(const quoll_mat_t mat);
size_t quoll_mat_get_nstep(const quoll_mat_t mat);

/* A quoll_dtype. Setting it reinterprets the bytes; both types must have the same size. */
int quoll_mat_get_dtype(const quoll_mat_t mat);
int quoll_mat_set_dtype(quoll_mat_t mat, int dtype);

/* The first value: of the Mat, of item b, of channel c. */
void* quoll_mat_get_data(const quoll_mat_t mat);
void* quoll_mat_get_batch_data(const quoll_mat_t mat, int b);
void* quoll_mat_get_channel_data(const quoll_mat_t mat, int c);

/* The colours of a pixel, in order. */
#define QUOLL_MAT_PIXEL_RGB 1
#define QUOLL_MAT_PIXEL_BGR 2
#define QUOLL_MAT_PIXEL_GRAY 3
#define QUOLL_MAT_PIXEL_RGBA 4
#define QUOLL_MAT_PIXEL_BGRA 5
/* From format X to format Y. */
#define QUOLL_MAT_PIXEL_X2Y(X, Y) ((X) | ((Y) << 16))

/* f32 Mats from w x h pixels of 8-bit values in rows of stride bytes: as they are, resized
 * (bilinear), or of a rectangle. type: a QUOLL_MAT_PIXEL. */
quoll_mat_t quoll_mat_from_pixels(const unsigned char* pixels, int type, int w, int h, int stride,
                                  quoll_allocator_t allocator);
quoll_mat_t quoll_mat_from_pixels_resize(const unsigned char* pixels, int type, int w, int h,
                                         int stride, int target_width, int target_height,
                                         quoll_allocator_t allocator);
quoll_mat_t quoll_mat_from_pixels_roi(const unsigned char* pixels, int type, int w, int h,
                                      int stride, int roix, int roiy, int roiw, int roih,
                                      quoll_allocator_t allocator);
quoll_mat_t quoll_mat_from_pixels_roi_resize(const unsigned char* pixels, int type, int w, int h,
                                             int stride, int roix, int roiy, int roiw, int roih,
                                             int target_width, int target_height,
                                             quoll_allocator_t allocator);

/* And back; values are clamped to 0..255. */
void quoll_mat_to_pixels(const quoll_mat_t mat, unsigned char* pixels, int type, int stride);
void quoll_mat_to_pixels_resize(const quoll_mat_t mat, unsigned char* pixels, int type,
                                int target_width, int target_height, int target_stride);

/* (x - mean) * norm by channel, in place; either may be NULL. */
void quoll_mat_substract_mean_normalize(quoll_mat_t mat, const float* mean_vals,
                                        const float* norm_vals);

/* *dst becomes a new Mat: with another elempack; with all values in one axis. */
void quoll_convert_packing(const quoll_mat_t src, quoll_mat_t* dst, int elempack,
                           const quoll_option_t opt);
void quoll_flatten(const quoll_mat_t src, quoll_mat_t* dst, const quoll_option_t opt);

/* What a border is filled with. */
#define QUOLL_BORDER_CONSTANT 0
#define QUOLL_BORDER_REPLICATE 1
#define QUOLL_BORDER_REFLECT 2
#define QUOLL_BORDER_TRANSPARENT -233

/* dst, an existing Mat, becomes src with a border added, or cut off. type: a QUOLL_BORDER. */
void quoll_copy_make_border(const quoll_mat_t src, quoll_mat_t dst, int top, int bottom, int left,
                            int right, int type, float v, const quoll_option_t opt);
void quoll_copy_make_border_3d(const quoll_mat_t src, quoll_mat_t dst, int top, int bottom,
                               int left, int right, int front, int behind, int type, float v,
                               const quoll_option_t opt);
void quoll_copy_cut_border(const quoll_mat_t src, quoll_mat_t dst, int top, int bottom, int left,
                           int right, const quoll_option_t opt);
void quoll_copy_cut_border_3d(const quoll_mat_t src, quoll_mat_t dst, int top, int bottom, int left,
                              int right, int front, int behind, const quoll_option_t opt);

/* ---------------------------------------------------------------- parameters */

typedef struct quoll_paramdict* quoll_paramdict_t;

/* No parameters at first. */
quoll_paramdict_t quoll_paramdict_create(void);
void quoll_paramdict_destroy(quoll_paramdict_t pd);

/* What parameter id (0 to 31) is: 0 not there, 1 a number, 2 an int, 3 a float, 4 to 6 arrays
 * of these, 7 a string. */
int quoll_paramdict_get_type(const quoll_paramdict_t pd, int id);

/* Its value, or def if it is not there. The array is a new Mat, or a copy of def. */
int quoll_paramdict_get_int(const quoll_paramdict_t pd, int id, int def);
float quoll_paramdict_get_float(const quoll_paramdict_t pd, int id, float def);
quoll_mat_t quoll_paramdict_get_array(const quoll_paramdict_t pd, int id, const quoll_mat_t def);

/* Sets it. Arrays are 1-D Mats of f32 or s32. */
void quoll_paramdict_set_int(quoll_paramdict_t pd, int id, int i);
void quoll_paramdict_set_float(quoll_paramdict_t pd, int id, float f);
void quoll_paramdict_set_array(quoll_paramdict_t pd, int id, const quoll_mat_t v);

/* ---------------------------------------------------------------- where models are read from */

/* A program may replace the functions of a reader from quoll_datareader_create. */
typedef struct quoll_datareader* quoll_datareader_t;
struct quoll_datareader {
    /* For the program. */
    void* pthis;
    /* As fscanf with one conversion; may be left alone. */
    int (*scan)(quoll_datareader_t dr, const char* format, void* p);
    /* The number of bytes that came, fewer at the end. */
    size_t (*read)(quoll_datareader_t dr, void* buf, size_t size);
};

/* A reader without bytes; of a file from its position on; of memory that the caller keeps, where
 * *mem moves on. */
quoll_datareader_t quoll_datareader_create(void);
quoll_datareader_t quoll_datareader_create_from_stdio(FILE* fp);
quoll_datareader_t quoll_datareader_create_from_memory(const unsigned char** mem);
void quoll_datareader_destroy(quoll_datareader_t dr);

/* Weights for layers. */
typedef struct quoll_modelbin* quoll_modelbin_t;
struct quoll_modelbin {
    /* For the program. */
    void* pthis;
    /* The next weight, a new Mat, or NULL. type 0: tagged, 1: f32, 2: f16, 3: int8. */
    quoll_mat_t (*load_1d)(const quoll_modelbin_t mb, int w, int type);
    quoll_mat_t (*load_2d)(const quoll_modelbin_t mb, int w, int h, int type);
    quoll_mat_t (*load_3d)(const quoll_modelbin_t mb, int w, int h, int c, int type);
};

/* From a reader, which has to outlive it; from n Mats, as they are now. */
quoll_modelbin_t quoll_modelbin_create_from_datareader(const quoll_datareader_t dr);
quoll_modelbin_t quoll_modelbin_create_from_mat_array(const quoll_mat_t* weights, int n);
void quoll_modelbin_destroy(quoll_modelbin_t mb);

/* ---------------------------------------------------------------- layers */

/* The functions call the layer. For a layer of quoll_layer_create the program sets those that it
 * implements. They return 0 or a negative number. */
typedef struct quoll_layer* quoll_layer_t;
struct quoll_layer {
    /* The library's. */
    void* pthis;
    /* Takes parameters, then weights. */
    int (*load_param)(quoll_layer_t layer, const quoll_paramdict_t pd);
    int (*load_model)(quoll_layer_t layer, const quoll_modelbin_t mb);
    /* Prepare runs after loading, and undo that. */
    int (*create_pipeline)(quoll_layer_t layer, const quoll_option_t opt);
    int (*destroy_pipeline)(quoll_layer_t layer, const quoll_option_t opt);
    /* *top_blob becomes a new Mat. */
    int (*forward_1)(const quoll_layer_t layer, const quoll_mat_t bottom_blob,
                     quoll_mat_t* top_blob, const quoll_option_t opt);
    /* The same with n inputs and n2 outputs. */
    int (*forward_n)(const quoll_layer_t layer, const quoll_mat_t* bottom_blobs, int n,
                     quoll_mat_t* top_blobs, int n2, const quoll_option_t opt);
    /* The Mat becomes the output. */
    int (*forward_inplace_1)(const quoll_layer_t layer, quoll_mat_t bottom_top_blob,
                             const quoll_option_t opt);
    /* The same with n Mats. */
    int (*forward_inplace_n)(const quoll_layer_t layer, quoll_mat_t* bottom_top_blobs, int n,
                             const quoll_option_t opt);
};

/* A layer of the program's own; a built-in layer. */
quoll_layer_t quoll_layer_create(void);
quoll_layer_t quoll_layer_create_by_typeindex(int typeindex);
quoll_layer_t quoll_layer_create_by_type(const char* type);
void quoll_layer_destroy(quoll_layer_t layer);

/* -1 if there is no such built-in layer. */
int quoll_layer_type_to_index(const char* type);

/* Name, type and index of the type (-1: not built in) as a Net has given them. */
const char* quoll_layer_get_name(const quoll_layer_t layer);
int quoll_layer_get_typeindex(const quoll_layer_t layer);
const char* quoll_layer_get_type(const quoll_layer_t layer);

/* A pointer of the program's own. */
void* quoll_layer_get_userdata(const quoll_layer_t layer);
void quoll_layer_set_userdata(quoll_layer_t layer, void* userdata);

/* The flags of the C++ class Layer. */
int quoll_layer_get_one_blob_only(const quoll_layer_t layer);
int quoll_layer_get_support_inplace(const quoll_layer_t layer);
int quoll_layer_get_support_packing(const quoll_layer_t layer);
int quoll_layer_get_support_batch(const quoll_layer_t layer);
int quoll_layer_get_support_bf16_storage(const quoll_layer_t layer);
int quoll_layer_get_support_fp16_storage(const quoll_layer_t layer);
int quoll_layer_get_support_any_packing(const quoll_layer_t layer);
int quoll_layer_get_support_vulkan(const quoll_layer_t layer);
int quoll_layer_get_support_vulkan_packing(const quoll_layer_t layer);
int quoll_layer_get_support_vulkan_any_packing(const quoll_layer_t layer);
void quoll_layer_set_one_blob_only(quoll_layer_t layer, int enable);
void quoll_layer_set_support_inplace(quoll_layer_t layer, int enable);
void quoll_layer_set_support_packing(quoll_layer_t layer, int enable);
void quoll_layer_set_support_batch(quoll_layer_t layer, int enable);
void quoll_layer_set_support_bf16_storage(quoll_layer_t layer, int enable);
void quoll_layer_set_support_fp16_storage(quoll_layer_t layer, int enable);
void quoll_layer_set_support_any_packing(quoll_layer_t layer, int enable);
void quoll_layer_set_support_vulkan(quoll_layer_t layer, int enable);
void quoll_layer_set_support_vulkan_packing(quoll_layer_t layer, int enable);
void quoll_layer_set_support_vulkan_any_packing(quoll_layer_t layer, int enable);

/* The number of blobs that it reads and makes, and their indexes; -1 if i is out of range. */
int quoll_layer_get_bottom_count(const quoll_layer_t layer);
int quoll_layer_get_bottom(const quoll_layer_t layer, int i);
int quoll_layer_get_top_count(const quoll_layer_t layer);
int quoll_layer_get_top(const quoll_layer_t layer, int i);

/* Sizes as the model hints them; zeros without a hint. */
void quoll_layer_get_bottom_shape(const quoll_layer_t layer, int i, int* dims, int* w, int* h,
                                  int* c);
void quoll_layer_get_top_shape(const quoll_layer_t layer, int i, int* dims, int* w, int* h, int* c);

/* Make a layer for a Net, and destroy it. */
typedef quoll_layer_t (*quoll_layer_creator_t)(void* userdata);
typedef void (*quoll_layer_destroyer_t)(quoll_layer_t layer, void* userdata);

/* ---------------------------------------------------------------- nets */

/* A model. */
typedef struct quoll_net* quoll_net_t;
/* Its public part. */
struct quoll_net {
    /* The quoll::Net, for code in C++: not to be changed. */
    void* pthis;
};

/* A net without a model. */
quoll_net_t quoll_net_create(void);
void quoll_net_destroy(quoll_net_t net);

/* Get the Net's own options, which are not to be destroyed; or copy opt into them. To be set before
 * loading. */
quoll_option_t quoll_net_get_option(quoll_net_t net);
void quoll_net_set_option(quoll_net_t net, quoll_option_t opt);

/* The GPU for use_vulkan_compute. */
void quoll_net_set_vulkan_device(quoll_net_t net, int device_index);

/* Registers a layer type; to be called before loading. A NULL destroyer: quoll_layer_destroy. */
int quoll_net_register_custom_layer_by_type(quoll_net_t net, const char* type,
                                            quoll_layer_creator_t creator,
                                            quoll_layer_destroyer_t destroyer, void* userdata);
int quoll_net_register_custom_layer_by_typeindex(quoll_net_t net, int typeindex,
                                                 quoll_layer_creator_t creator,
                                                 quoll_layer_destroyer_t destroyer, void* userdata);

/* The graph: text or binary, from a path, text in memory, or a reader. QUOLL_BAD_DATA if it
 * does not load; the Net is empty then. */
int quoll_net_load_param(quoll_net_t net, const char* path);
int quoll_net_load_param_bin(quoll_net_t net, const char* path);
int quoll_net_load_param_memory(quoll_net_t net, const char* text);
int quoll_net_load_param_datareader(quoll_net_t net, const quoll_datareader_t dr);
int quoll_net_load_param_bin_datareader(quoll_net_t net, const quoll_datareader_t dr);

/* The weights. QUOLL_BAD_STATE before a graph, or a second time. */
int quoll_net_load_model(quoll_net_t net, const char* path);
int quoll_net_load_model_datareader(quoll_net_t net, const quoll_datareader_t dr);

/* From 4-byte aligned memory; weights are used in place, so theirs has to outlive the Net. Return
 * the bytes that were read, 0 on failure. */
size_t quoll_net_load_param_bin_memory(quoll_net_t net, const unsigned char* mem);
size_t quoll_net_load_model_memory(quoll_net_t net, const unsigned char* mem);

/* To be called between the two: no layer may be fused across this blob. */
int quoll_net_keep_blob(quoll_net_t net, const char* name);

/* Unloads the model. */
void quoll_net_clear(quoll_net_t net);

/* Inputs and outputs; NULL and -1 if i is out of range. */
int quoll_net_get_input_count(const quoll_net_t net);
int quoll_net_get_output_count(const quoll_net_t net);
const char* quoll_net_get_input_name(const quoll_net_t net, int i);
const char* quoll_net_get_output_name(const quoll_net_t net, int i);
int quoll_net_get_input_index(const quoll_net_t net, int i);
int quoll_net_get_output_index(const quoll_net_t net, int i);

typedef struct quoll_blob* quoll_blob_t;

/* The blobs of a loaded Net, which owns them; NULL if i is out of range. */
int quoll_net_get_blob_count(const quoll_net_t net);
quoll_blob_t quoll_net_get_blob(const quoll_net_t net, int i);

/* Its name, the layer that makes it, the last layer that reads it (-1: none), and its size as the
 * model hints it (zeros without a hint). */
const char* quoll_blob_get_name(const quoll_blob_t blob);
int quoll_blob_get_producer(const quoll_blob_t blob);
int quoll_blob_get_consumer(const quoll_blob_t blob);
void quoll_blob_get_shape(const quoll_blob_t blob, int* dims, int* w, int* h, int* c);

/* ---------------------------------------------------------------- runs */

typedef struct quoll_extractor* quoll_extractor_t;

/* One inference of a Net, which has to outlive it. */
quoll_extractor_t quoll_extractor_create(quoll_net_t net);
void quoll_extractor_destroy(quoll_extractor_t ex);

/* Threads, light mode and allocators for this run. */
void quoll_extractor_set_option(quoll_extractor_t ex, const quoll_option_t opt);

/* Gives a blob, by name or index. QUOLL_BAD_STATE while the Net has no model. */
int quoll_extractor_input(quoll_extractor_t ex, const char* name, const quoll_mat_t mat);
int quoll_extractor_input_index(quoll_extractor_t ex, int index, const quoll_mat_t mat);

/* *mat becomes a new Mat with the blob's values, as f32 with elempack 1. */
int quoll_extractor_extract(quoll_extractor_t ex, const char* name, quoll_mat_t* mat);
int quoll_extractor_extract_index(quoll_extractor_t ex, int index, quoll_mat_t* mat);

/* ---------------------------------------------------------------- models that a program builds */

/* A graph layer by layer, without files:
 *
 *     quoll_model_t model = quoll_model_create();
 *     const char *in[] = {"data"}, *out[] = {"prob"};
 *     int fc;
 *     quoll_model_add_layer(model, "Input", "data", NULL, 0, in, 1);
 *     fc = quoll_model_add_layer(model, "InnerProduct", "fc", in, 1, out, 1);
 *     quoll_model_set_int(model, fc, "num_output", 10);
 *     quoll_model_set_int(model, fc, "weight_data_size", 640);
 *     quoll_model_set_weight(model, fc, "weight_data", weights);
 *     if (quoll_model_finish(model) || quoll_model_make_net(model, net)) puts(quoll_last_error());
 *
 * Types, parameters and weights have the names of docs/operators. A finished model takes no
 * changes. */
typedef struct quoll_model* quoll_model_t;

/* A model without layers. */
quoll_model_t quoll_model_create(void);
void quoll_model_destroy(quoll_model_t model);

/* Adds a layer that reads and makes the blobs of these names. Returns its number, or a negative
 * quoll_status. */
int quoll_model_add_layer(quoll_model_t model, const char* type, const char* name,
                          const char* const* inputs, int input_count, const char* const* outputs,
                          int output_count);

/* Parameters of a layer. */
int quoll_model_set_int(quoll_model_t model, int layer, const char* param, int value);
int quoll_model_set_float(quoll_model_t model, int layer, const char* param, float value);
int quoll_model_set_string(quoll_model_t model, int layer, const char* param, const char* value);
int quoll_model_set_ints(quoll_model_t model, int layer, const char* param, const int* values,
                         int count);
int quoll_model_set_floats(quoll_model_t model, int layer, const char* param, const float* values,
                           int count);

/* A weight of f32, f16, bf16 or s8 values; the memory of `values` is shared. */
int quoll_model_set_weight(quoll_model_t model, int layer, const char* weight,
                           const quoll_mat_t values);

/* Checks names and parameters, and that all weights are there. */
int quoll_model_finish(quoll_model_t model);

/* For a finished model (else QUOLL_BAD_STATE): load a Net with it, whose options are set already
 * (blobs that are fused away cannot be extracted: see quoll_option_set_use_graph_fusion); or write
 * its files. */
int quoll_model_make_net(const quoll_model_t model, quoll_net_t net);
int quoll_model_save(const quoll_model_t model, const char* param_path, const char* bin_path);

/* ---------------------------------------------------------------- drawing */

/* Draw into w x h pixels of 1 to 4 bytes; see quoll/image.h. */
void quoll_draw_rectangle_c1(unsigned char* pixels, int w, int h, int rx, int ry, int rw, int rh,
                             unsigned int color, int thickness);
void quoll_draw_rectangle_c2(unsigned char* pixels, int w, int h, int rx, int ry, int rw, int rh,
                             unsigned int color, int thickness);
void quoll_draw_rectangle_c3(unsigned char* pixels, int w, int h, int rx, int ry, int rw, int rh,
                             unsigned int color, int thickness);
void quoll_draw_rectangle_c4(unsigned char* pixels, int w, int h, int rx, int ry, int rw, int rh,
                             unsigned int color, int thickness);
void quoll_draw_text_c1(unsigned char* pixels, int w, int h, const char* text, int x, int y,
                        int fontpixelsize, unsigned int color);
void quoll_draw_text_c2(unsigned char* pixels, int w, int h, const char* text, int x, int y,
                        int fontpixelsize, unsigned int color);
void quoll_draw_text_c3(unsigned char* pixels, int w, int h, const char* text, int x, int y,
                        int fontpixelsize, unsigned int color);
void quoll_draw_text_c4(unsigned char* pixels, int w, int h, const char* text, int x, int y,
                        int fontpixelsize, unsigned int color);
void quoll_draw_circle_c1(unsigned char* pixels, int w, int h, int cx, int cy, int radius,
                          unsigned int color, int thickness);
void quoll_draw_circle_c2(unsigned char* pixels, int w, int h, int cx, int cy, int radius,
                          unsigned int color, int thickness);
void quoll_draw_circle_c3(unsigned char* pixels, int w, int h, int cx, int cy, int radius,
                          unsigned int color, int thickness);
void quoll_draw_circle_c4(unsigned char* pixels, int w, int h, int cx, int cy, int radius,
                          unsigned int color, int thickness);
void quoll_draw_line_c1(unsigned char* pixels, int w, int h, int x0, int y0, int x1, int y1,
                        unsigned int color, int thickness);
void quoll_draw_line_c2(unsigned char* pixels, int w, int h, int x0, int y0, int x1, int y1,
                        unsigned int color, int thickness);
void quoll_draw_line_c3(unsigned char* pixels, int w, int h, int x0, int y0, int x1, int y1,
                        unsigned int color, int thickness);
void quoll_draw_line_c4(unsigned char* pixels, int w, int h, int x0, int y0, int x1, int y1,
                        unsigned int color, int thickness);

#ifdef __cplusplus
}
#endif

#endif /* QUOLL_C_API_H */
