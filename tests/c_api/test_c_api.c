/* quoll/c_api.h from C89. Each check says its line; the program returns how many failed. */
#include <quoll/c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int g_failed = 0;
#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            printf("%s:%d: %s\n  %s\n", __FILE__, __LINE__, #condition, quoll_last_error()); \
            g_failed++;                                                                      \
        }                                                                                    \
    } while (0)

static int near_to(float a, float b) { return a - b < 1e-5f && b - a < 1e-5f; }
static float* values(quoll_mat_t m) { return (float*)quoll_mat_get_data(m); }

/* ---------------------------------------------------------------- errors */

static void test_errors(void) {
    quoll_net_t net = quoll_net_create();
    quoll_mat_t out = NULL;
    CHECK(strcmp(quoll_status_name(QUOLL_OK), "QUOLL_OK") == 0);
    CHECK(strcmp(quoll_status_name(QUOLL_BAD_STATE), "QUOLL_BAD_STATE") == 0);
    CHECK(strcmp(quoll_status_name(QUOLL_UNEXPECTED_NULL), "QUOLL_UNEXPECTED_NULL") == 0);
    CHECK(strcmp(quoll_status_name(QUOLL_BAD_DATA), "QUOLL_BAD_DATA") == 0);
    CHECK(strcmp(quoll_status_name(QUOLL_OUT_OF_MEMORY), "QUOLL_OUT_OF_MEMORY") == 0);
    CHECK(strcmp(quoll_status_name(77), "QUOLL_ERROR") == 0);
    CHECK(strchr(quoll_version(), '.') != NULL && quoll_version_number() > 0);

    quoll_clear_error();
    CHECK(quoll_last_error()[0] == 0);
    CHECK(quoll_net_load_model(net, "/nonexistent") == QUOLL_BAD_STATE);
    CHECK(strstr(quoll_last_error(), "load_param has to come first") != NULL);
    CHECK(quoll_net_load_param(net, "/nonexistent") == QUOLL_BAD_DATA);
    CHECK(strstr(quoll_last_error(), "/nonexistent") != NULL);
    CHECK(quoll_net_load_param(NULL, "x") == QUOLL_UNEXPECTED_NULL);
    CHECK(quoll_net_load_param(net, NULL) == QUOLL_UNEXPECTED_NULL);
    CHECK(quoll_net_load_param_memory(net, "nonsense") == QUOLL_BAD_DATA);
    CHECK(quoll_mat_create_1d(-1, NULL) == NULL);
    CHECK(quoll_mat_get_w(NULL) == 0);
    {
        quoll_extractor_t ex = quoll_extractor_create(net);
        quoll_mat_t in = quoll_mat_create_1d(1, NULL);
        CHECK(quoll_extractor_input(ex, "x", in) == QUOLL_BAD_STATE);
        CHECK(quoll_extractor_extract(ex, "x", &out) == QUOLL_BAD_STATE && out == NULL);
        CHECK(quoll_extractor_extract_index(ex, 0, NULL) == QUOLL_UNEXPECTED_NULL);
        quoll_mat_destroy(in);
        quoll_extractor_destroy(ex);
    }
    CHECK(quoll_extractor_create(NULL) == NULL);
    CHECK(quoll_layer_create_by_type("NoSuchLayer") == NULL);
    CHECK(strstr(quoll_last_error(), "no such layer") != NULL);
    quoll_net_destroy(net);
    quoll_net_destroy(NULL);
    quoll_mat_destroy(NULL);
}

/* ---------------------------------------------------------------- options */

#define CHECK_SWITCH(name)                    \
    quoll_option_set_##name(opt, 1);          \
    CHECK(quoll_option_get_##name(opt) == 1); \
    quoll_option_set_##name(opt, 0);          \
    CHECK(quoll_option_get_##name(opt) == 0); \
    CHECK(quoll_option_get_##name(NULL) == QUOLL_UNEXPECTED_NULL)

static void test_options(void) {
    quoll_option_t opt = quoll_option_create();
    CHECK_SWITCH(use_vulkan_compute);
    CHECK_SWITCH(use_local_pool_allocator);
    CHECK_SWITCH(use_winograd_convolution);
    CHECK_SWITCH(use_sgemm_convolution);
    CHECK_SWITCH(use_packing_layout);
    CHECK_SWITCH(use_fp16_packed);
    CHECK_SWITCH(use_fp16_storage);
    CHECK_SWITCH(use_fp16_arithmetic);
    CHECK_SWITCH(use_int8_packed);
    CHECK_SWITCH(use_int8_storage);
    CHECK_SWITCH(use_int8_arithmetic);
    CHECK_SWITCH(use_int16_packed);
    CHECK_SWITCH(use_int16_storage);
    CHECK_SWITCH(use_bf16_packed);
    CHECK_SWITCH(use_bf16_storage);
    CHECK_SWITCH(use_shader_local_memory);
    CHECK_SWITCH(use_cooperative_matrix);
    CHECK_SWITCH(use_graph_fusion);
    CHECK_SWITCH(use_reference_layers);
    CHECK_SWITCH(check_finite);
    CHECK_SWITCH(lightmode);
    quoll_option_set_num_threads(opt, 3);
    quoll_option_set_num_threads(opt, 0);
    CHECK(quoll_option_get_num_threads(opt) == 3);
    quoll_option_destroy(opt);
}

/* ---------------------------------------------------------------- pipelines of a GPU */

/* Where there is no device the calls are refused; with one its cache goes from here to there. */
static void test_pipelinecache(void) {
    const char* path = "test_c_api.pipelines";
    quoll_option_t opt = quoll_option_create();
    quoll_pipelinecache_t cache = quoll_pipelinecache_create(0);
    unsigned char* bytes;
    size_t size = 0;
    CHECK(quoll_pipelinecache_create(9999) == NULL && quoll_last_error()[0] != 0);
    CHECK(quoll_pipelinecache_load(NULL, path) == QUOLL_UNEXPECTED_NULL);
    CHECK(quoll_pipelinecache_save(NULL, path) == QUOLL_UNEXPECTED_NULL);
    CHECK(quoll_pipelinecache_save_memory(NULL, NULL, &size) == QUOLL_UNEXPECTED_NULL);
    CHECK(quoll_pipelinecache_load_memory(NULL, NULL, 0) == QUOLL_UNEXPECTED_NULL);
    CHECK(quoll_pipelinecache_get_size(NULL) == 0);
    quoll_pipelinecache_clear(NULL);
    quoll_option_set_pipeline_cache(opt, cache);
    quoll_option_destroy(opt);
    if (!cache) return;
    CHECK(quoll_pipelinecache_save_memory(cache, NULL, &size) == QUOLL_ERROR && size > 0);
    bytes = (unsigned char*)malloc(size);
    CHECK(quoll_pipelinecache_save_memory(cache, bytes, &size) == QUOLL_OK);
    CHECK(quoll_pipelinecache_load_memory(cache, bytes, size) == QUOLL_OK);
    bytes[size / 2] ^= 1;
    CHECK(quoll_pipelinecache_load_memory(cache, bytes, size) == QUOLL_ERROR);
    CHECK(quoll_pipelinecache_save(cache, path) == QUOLL_OK);
    CHECK(quoll_pipelinecache_load(cache, path) == QUOLL_OK);
    CHECK(quoll_pipelinecache_get_size(cache) == 0); /* nothing has run */
    quoll_pipelinecache_clear(cache);
    quoll_pipelinecache_destroy(cache);
    quoll_pipelinecache_destroy(NULL);
    free(bytes);
    remove(path);
}

/* ---------------------------------------------------------------- mats */

static void test_mats(void) {
    static float memory[24];
    quoll_option_t opt = quoll_option_create();
    quoll_mat_t all[24], m, n = NULL;
    int i;
    all[0] = quoll_mat_create_1d(2, NULL);
    all[1] = quoll_mat_create_2d(2, 3, NULL);
    all[2] = quoll_mat_create_3d(2, 3, 4, NULL);
    all[3] = quoll_mat_create_4d(2, 3, 4, 5, NULL);
    all[4] = quoll_mat_create_1d_batch(2, 6, NULL);
    all[5] = quoll_mat_create_2d_batch(2, 3, 6, NULL);
    all[6] = quoll_mat_create_3d_batch(2, 3, 4, 6, NULL);
    all[7] = quoll_mat_create_4d_batch(2, 3, 4, 5, 6, NULL);
    all[8] = quoll_mat_create_1d_elem(2, 2, 1, NULL);
    all[9] = quoll_mat_create_2d_elem(2, 3, 16, 4, NULL);
    all[10] = quoll_mat_create_3d_elem(2, 3, 4, 16, 4, NULL);
    all[11] = quoll_mat_create_4d_elem(2, 3, 4, 5, 1, 1, NULL);
    all[12] = quoll_mat_create_1d_elem_batch(2, 4, 1, 6, NULL);
    all[13] = quoll_mat_create_2d_elem_batch(2, 3, 4, 1, 6, NULL);
    all[14] = quoll_mat_create_3d_elem_batch(2, 3, 4, 4, 1, 6, NULL);
    all[15] = quoll_mat_create_4d_elem_batch(2, 3, 4, 5, 4, 1, 6, NULL);
    all[16] = quoll_mat_create_external_1d(2, memory, NULL);
    all[17] = quoll_mat_create_external_2d(2, 3, memory, NULL);
    all[18] = quoll_mat_create_external_3d(2, 2, 3, memory, NULL);
    all[19] = quoll_mat_create_external_4d(2, 2, 1, 3, memory, NULL);
    all[20] = quoll_mat_create_external_1d_elem(2, memory, 4, 1, NULL);
    all[21] = quoll_mat_create_external_2d_elem(2, 3, memory, 4, 1, NULL);
    all[22] = quoll_mat_create_external_3d_elem(2, 2, 3, memory, 4, 1, NULL);
    all[23] = quoll_mat_create_external_4d_elem(2, 2, 1, 3, memory, 4, 1, NULL);
    for (i = 0; i < 24; i++) {
        CHECK(all[i] != NULL);
        CHECK(quoll_mat_get_dims(all[i]) == i % 4 + 1);
        CHECK(quoll_mat_get_w(all[i]) == 2);
        CHECK(quoll_mat_get_n(all[i]) == (i / 4 == 1 || i / 4 == 3 ? 6 : 1));
        CHECK((quoll_mat_get_data(all[i]) == (void*)memory) == (i >= 16));
    }
    CHECK(quoll_mat_get_h(all[3]) == 3 && quoll_mat_get_d(all[3]) == 4 &&
          quoll_mat_get_c(all[3]) == 5);
    CHECK(quoll_mat_get_elempack(all[9]) == 4 && quoll_mat_get_elemsize(all[9]) == 16);
    CHECK(quoll_mat_get_cstep(all[2]) == 8 && quoll_mat_get_nstep(all[6]) == 1024);
    CHECK((char*)quoll_mat_get_channel_data(all[2], 1) - (char*)quoll_mat_get_data(all[2]) == 32);
    CHECK((char*)quoll_mat_get_batch_data(all[6], 2) - (char*)quoll_mat_get_data(all[6]) ==
          2 * 4096);
    CHECK(quoll_mat_get_channel_data(all[2], 4) == NULL);
    CHECK(quoll_mat_get_dtype(all[8]) == QUOLL_F16);
    CHECK(quoll_mat_set_dtype(all[8], QUOLL_BF16) == 0);
    CHECK(quoll_mat_get_dtype(all[8]) == QUOLL_BF16);
    CHECK(quoll_mat_set_dtype(all[8], QUOLL_S32) == QUOLL_ERROR);

    CHECK(quoll_mat_create_external_1d(-1, memory, NULL) == NULL);
    CHECK(quoll_mat_create_external_2d(-2, -3, memory, NULL) == NULL);
    CHECK(quoll_mat_create_external_3d(2, 2, 3, NULL, NULL) == NULL);
    CHECK(quoll_mat_create_external_3d_elem(2, 2, 3, memory, 0, 1, NULL) == NULL);
    CHECK(quoll_mat_create_external_4d_elem(2, 2, 1, 3, memory, 4, 0, NULL) == NULL);
    quoll_mat_fill_float(all[16], 7.f);
    CHECK(memory[0] == 7.f && memory[1] == 7.f && memory[2] == 0.f);
    m = quoll_mat_clone(all[16], NULL);
    CHECK(quoll_mat_get_data(m) != (void*)memory && values(m)[1] == 7.f);
    quoll_mat_destroy(m);

    for (i = 0; i < 24; i++) memory[i] = (float)i;
    m = quoll_mat_create_external_1d(24, memory, NULL);
    n = quoll_mat_reshape_3d(m, 2, 2, 6, NULL);
    CHECK(quoll_mat_get_c(n) == 6 && ((float*)quoll_mat_get_channel_data(n, 5))[3] == 23.f);
    quoll_mat_destroy(n);
    n = quoll_mat_reshape_2d(m, 6, 4, NULL);
    CHECK(quoll_mat_get_h(n) == 4);
    quoll_mat_destroy(n);
    n = quoll_mat_reshape_4d(m, 2, 2, 3, 2, NULL);
    CHECK(quoll_mat_get_d(n) == 3);
    quoll_mat_destroy(n);
    n = quoll_mat_reshape_1d(m, 24, NULL);
    CHECK(quoll_mat_get_w(n) == 24);
    quoll_mat_destroy(n);
    CHECK(quoll_mat_reshape_1d(m, 25, NULL) == NULL);

    quoll_convert_packing(m, &n, 4, opt);
    CHECK(quoll_mat_get_elempack(n) == 4 && quoll_mat_get_w(n) == 6);
    quoll_mat_destroy(n);
    n = quoll_mat_create();
    quoll_copy_make_border(all[17], n, 1, 1, 2, 2, QUOLL_BORDER_CONSTANT, 9.f, opt);
    CHECK(quoll_mat_get_w(n) == 6 && quoll_mat_get_h(n) == 5 && values(n)[0] == 9.f);
    quoll_copy_cut_border(n, n, 1, 1, 2, 2, opt);
    CHECK(quoll_mat_get_w(n) == 2 && values(n)[3] == memory[3]);
    quoll_copy_make_border_3d(all[18], n, 0, 0, 0, 0, 1, 1, QUOLL_BORDER_CONSTANT, 9.f, opt);
    CHECK(quoll_mat_get_c(n) == 5);
    quoll_copy_cut_border_3d(n, n, 0, 0, 0, 0, 1, 1, opt);
    CHECK(quoll_mat_get_c(n) == 3);
    quoll_mat_destroy(n);
    quoll_flatten(all[17], &n, opt);
    CHECK(quoll_mat_get_dims(n) == 1 && quoll_mat_get_w(n) == 6);
    quoll_mat_destroy(n);
    quoll_mat_destroy(m);
    for (i = 0; i < 24; i++) quoll_mat_destroy(all[i]);
    quoll_option_destroy(opt);
}

static void test_pixels(void) {
    static unsigned char rgb[4 * 4 * 3], back[8 * 8 * 3], canvas[64 * 64 * 4];
    const float mean[3] = {1.f, 1.f, 1.f}, norm[3] = {2.f, 2.f, 2.f};
    quoll_mat_t m;
    int i;
    for (i = 0; i < 48; i++) rgb[i] = (unsigned char)(i * 5);
    m = quoll_mat_from_pixels(rgb, QUOLL_MAT_PIXEL_RGB, 4, 4, 12, NULL);
    CHECK(quoll_mat_get_c(m) == 3 && values(m)[1] == 15.f);
    quoll_mat_to_pixels(m, back, QUOLL_MAT_PIXEL_X2Y(QUOLL_MAT_PIXEL_RGB, QUOLL_MAT_PIXEL_BGR), 12);
    CHECK(back[0] == rgb[2] && back[2] == rgb[0]);
    quoll_mat_to_pixels_resize(m, back, QUOLL_MAT_PIXEL_RGB, 8, 8, 24);
    CHECK(back[0] == rgb[0]);
    quoll_mat_substract_mean_normalize(m, mean, norm);
    CHECK(values(m)[1] == 28.f);
    quoll_mat_destroy(m);
    m = quoll_mat_from_pixels_resize(rgb, QUOLL_MAT_PIXEL_RGB, 4, 4, 12, 2, 2, NULL);
    CHECK(quoll_mat_get_w(m) == 2);
    quoll_mat_destroy(m);
    m = quoll_mat_from_pixels_roi(rgb, QUOLL_MAT_PIXEL_RGB, 4, 4, 12, 1, 1, 2, 3, NULL);
    CHECK(quoll_mat_get_h(m) == 3 && values(m)[0] == rgb[15]);
    quoll_mat_destroy(m);
    m = quoll_mat_from_pixels_roi_resize(rgb, QUOLL_MAT_PIXEL_RGB, 4, 4, 12, 0, 0, 2, 2, 5, 6,
                                         NULL);
    CHECK(quoll_mat_get_w(m) == 5 && quoll_mat_get_h(m) == 6);
    quoll_mat_destroy(m);

#define CHECK_DRAWING(C, size)                                             \
    memset(canvas, 0, sizeof(canvas));                                     \
    quoll_draw_rectangle_##C(canvas, 64, 64, 0, 0, 4, 4, 0xffffffffu, -1); \
    CHECK(canvas[0] == 255 && canvas[8 * size] == 0);                      \
    quoll_draw_circle_##C(canvas, 64, 64, 32, 32, 3, 0xffffffffu, -1);     \
    CHECK(canvas[(32 * 64 + 32) * size] == 255);                           \
    quoll_draw_line_##C(canvas, 64, 64, 40, 0, 40, 63, 0xffffffffu, 1);    \
    CHECK(canvas[(10 * 64 + 40) * size] == 255);                           \
    memset(canvas, 0, sizeof(canvas));                                     \
    quoll_draw_text_##C(canvas, 64, 64, "X", 0, 0, 16, 0xffffffffu);       \
    for (i = 0; i < 64 * 64 * size && !canvas[i]; i++) continue;           \
    CHECK(i < 64 * 64 * size)
    CHECK_DRAWING(c1, 1);
    CHECK_DRAWING(c2, 2);
    CHECK_DRAWING(c3, 3);
    CHECK_DRAWING(c4, 4);
}

/* ---------------------------------------------------------------- parameters, layers */

static void test_paramdict(void) {
    quoll_paramdict_t pd = quoll_paramdict_create();
    quoll_mat_t array = quoll_mat_create_1d(2, NULL), got;
    quoll_mat_fill_float(array, 4.f);
    CHECK(quoll_paramdict_get_type(pd, 3) == 0);
    CHECK(quoll_paramdict_get_int(pd, 3, -7) == -7);
    quoll_paramdict_set_int(pd, 3, 5);
    quoll_paramdict_set_float(pd, 4, 0.5f);
    quoll_paramdict_set_array(pd, 5, array);
    CHECK(quoll_paramdict_get_type(pd, 3) == 2 && quoll_paramdict_get_int(pd, 3, 0) == 5);
    CHECK(quoll_paramdict_get_float(pd, 4, 0.f) == 0.5f);
    got = quoll_paramdict_get_array(pd, 5, NULL);
    CHECK(quoll_mat_get_w(got) == 2 && values(got)[1] == 4.f);
    quoll_mat_destroy(got);
    got = quoll_paramdict_get_array(pd, 6, array);
    CHECK(quoll_mat_get_w(got) == 2);
    quoll_mat_destroy(got);
    quoll_mat_destroy(array);
    quoll_paramdict_destroy(pd);
}

/* Runs a built-in layer: out = a op b, and a scaled in place. */
static void test_built_in_layers(void) {
    quoll_option_t opt = quoll_option_create();
    quoll_paramdict_t pd = quoll_paramdict_create();
    quoll_mat_t in[2], out[1], weights[1], one = NULL;
    quoll_modelbin_t none = quoll_modelbin_create_from_mat_array(NULL, 0), mb;
    quoll_layer_t layer = quoll_layer_create_by_type("BinaryOp");
    in[0] = quoll_mat_create_1d(2, NULL);
    in[1] = quoll_mat_create_1d(2, NULL);
    out[0] = NULL;
    quoll_mat_fill_float(in[0], 2.f);
    quoll_mat_fill_float(in[1], 3.f);
    quoll_paramdict_set_int(pd, 0, 2);
    CHECK(layer->load_param(layer, pd) == 0);
    CHECK(layer->load_model(layer, none) == 0);
    CHECK(layer->create_pipeline(layer, opt) == 0);
    CHECK(layer->create_pipeline(layer, opt) == QUOLL_BAD_STATE);
    CHECK(layer->forward_n(layer, in, 2, out, 1, opt) == 0);
    CHECK(values(out[0])[1] == 6.f);
    CHECK(layer->destroy_pipeline(layer, opt) == 0);
    quoll_mat_destroy(out[0]);
    quoll_layer_destroy(layer);

    /* Right behind load_param, as programs run layers without weights. */
    layer = quoll_layer_create_by_type("BinaryOp");
    CHECK(layer->load_param(layer, pd) == 0);
    CHECK(layer->forward_n(layer, in, 2, out, 1, opt) == 0 && values(out[0])[0] == 6.f);
    quoll_mat_destroy(out[0]);
    quoll_layer_destroy(layer);

    /* Another order, or a function that failed before. */
    layer = quoll_layer_create_by_type("Convolution");
    CHECK(layer->create_pipeline(layer, opt) < 0);
    CHECK(strstr(quoll_last_error(), "have to come first") != NULL);
    CHECK(layer->forward_1(layer, in[0], &one, opt) < 0);
    CHECK(layer->forward_n(layer, in, 1, out, 1, opt) < 0);
    CHECK(layer->forward_inplace_1(layer, in[0], opt) < 0);
    CHECK(layer->forward_inplace_n(layer, in, 1, opt) < 0);
    CHECK(layer->load_model(layer, none) < 0 && layer->destroy_pipeline(layer, opt) < 0);
    CHECK(layer->load_param(layer, pd) < 0); /* no kernel */
    CHECK(layer->create_pipeline(layer, opt) < 0);
    CHECK(layer->load_param(layer, NULL) == QUOLL_UNEXPECTED_NULL);
    CHECK(layer->forward_n(layer, NULL, 1, out, 1, opt) == QUOLL_UNEXPECTED_NULL);
    quoll_layer_destroy(layer);

    /* An elempack that only a Net would undo. */
    layer = quoll_layer_create_by_type("LogSoftmax");
    weights[0] = quoll_mat_create_3d_elem(4, 4, 2, 32, 8, NULL);
    CHECK(layer->load_param(layer, pd) == 0);
    CHECK(layer->forward_1(layer, weights[0], &one, opt) == QUOLL_BAD_STATE && one == NULL);
    CHECK(layer->forward_n(layer, weights, 1, out, 1, opt) == QUOLL_BAD_STATE);
    quoll_mat_destroy(weights[0]);
    quoll_layer_destroy(layer);

    layer = quoll_layer_create_by_typeindex(quoll_layer_type_to_index("Scale"));
    CHECK(quoll_layer_get_typeindex(layer) == quoll_layer_type_to_index("Scale"));
    CHECK(quoll_layer_type_to_index("NoSuchLayer") == -1);
    weights[0] = in[1];
    mb = quoll_modelbin_create_from_mat_array(weights, 1);
    quoll_paramdict_set_int(pd, 0, 2);
    CHECK(layer->load_param(layer, pd) == 0 && layer->load_model(layer, mb) == 0);
    CHECK(layer->create_pipeline(layer, opt) == 0);
    CHECK(layer->forward_1(layer, in[0], &one, opt) == 0);
    CHECK(values(one)[0] == 6.f && values(in[0])[0] == 2.f);
    CHECK(layer->forward_inplace_1(layer, in[0], opt) == 0 && values(in[0])[1] == 6.f);
    CHECK(layer->forward_inplace_n(layer, in, 1, opt) == 0 && values(in[0])[1] == 18.f);
    layer->destroy_pipeline(layer, opt);
    quoll_layer_destroy(layer);
    quoll_mat_destroy(one);
    quoll_modelbin_destroy(mb);
    {
        static const float bytes[] = {1.f, 2.f, 3.f};
        const unsigned char* mem = (const unsigned char*)bytes;
        quoll_datareader_t dr = quoll_datareader_create_from_memory(&mem);
        mb = quoll_modelbin_create_from_datareader(dr);
        one = mb->load_1d(mb, 2, 1);
        CHECK(quoll_mat_get_w(one) == 2 && values(one)[1] == 2.f);
        CHECK(mem == (const unsigned char*)(bytes + 2));
        quoll_mat_destroy(one);
        quoll_modelbin_destroy(mb);
        quoll_datareader_destroy(dr);
    }
    quoll_modelbin_destroy(none);
    quoll_mat_destroy(in[0]);
    quoll_mat_destroy(in[1]);
    quoll_paramdict_destroy(pd);
    quoll_option_destroy(opt);
}

/* A layer of the program's own: adds a weight and a parameter. */
struct adder {
    float addend;
    quoll_mat_t weight;
    int* alive;
};

static int adder_load_param(quoll_layer_t layer, const quoll_paramdict_t pd) {
    ((struct adder*)quoll_layer_get_userdata(layer))->addend =
        quoll_paramdict_get_float(pd, 0, 0.f);
    return 0;
}
static int adder_load_model(quoll_layer_t layer, const quoll_modelbin_t mb) {
    struct adder* adder = (struct adder*)quoll_layer_get_userdata(layer);
    quoll_mat_t square = mb->load_2d(mb, 1, 1, 1), cube;
    adder->weight = mb->load_1d(mb, 1, 1);
    cube = mb->load_3d(mb, 1, 1, 1, 1);
    CHECK(quoll_mat_get_dims(square) == 2 && quoll_mat_get_dims(cube) == 3);
    quoll_mat_destroy(square);
    quoll_mat_destroy(cube);
    return adder->weight ? 0 : -100;
}
static int adder_forward(const quoll_layer_t layer, quoll_mat_t blob, const quoll_option_t opt) {
    const struct adder* adder = (const struct adder*)quoll_layer_get_userdata(layer);
    int i;
    CHECK(quoll_option_get_num_threads(opt) >= 1);
    for (i = 0; i < quoll_mat_get_w(blob); i++)
        values(blob)[i] += adder->addend + values(adder->weight)[0];
    return 0;
}
static quoll_layer_t adder_create(void* userdata) {
    quoll_layer_t layer = quoll_layer_create();
    struct adder* adder = (struct adder*)calloc(1, sizeof(struct adder));
    adder->alive = (int*)userdata;
    ++*adder->alive;
    quoll_layer_set_userdata(layer, adder);
    quoll_layer_set_one_blob_only(layer, 1);
    quoll_layer_set_support_inplace(layer, 1);
    layer->load_param = adder_load_param;
    layer->load_model = adder_load_model;
    layer->forward_inplace_1 = adder_forward;
    return layer;
}
static void adder_destroy(quoll_layer_t layer, void* userdata) {
    struct adder* adder = (struct adder*)quoll_layer_get_userdata(layer);
    CHECK(adder->alive == (int*)userdata);
    --*adder->alive;
    quoll_mat_destroy(adder->weight);
    free(adder);
    quoll_layer_destroy(layer);
}

/* A cipher. */
struct cipher {
    const unsigned char* bytes;
    size_t size, at;
};
static size_t cipher_read(quoll_datareader_t dr, void* buf, size_t size) {
    struct cipher* c = (struct cipher*)dr->pthis;
    size_t i;
    if (size > c->size - c->at) size = c->size - c->at;
    for (i = 0; i < size; i++) ((unsigned char*)buf)[i] = c->bytes[c->at++] ^ 0x5a;
    return size;
}

static int g_blocks = 0;
static void* counting_malloc(quoll_allocator_t allocator, size_t size) {
    ++*(int*)allocator->pthis;
    return malloc(size + 128);
}
static void counting_free(quoll_allocator_t allocator, void* ptr) {
    --*(int*)allocator->pthis;
    free(ptr);
}

#define CHECK_FLAG(name)                       \
    quoll_layer_set_##name(layer, 1);          \
    CHECK(quoll_layer_get_##name(layer) == 1); \
    quoll_layer_set_##name(layer, 0);          \
    CHECK(quoll_layer_get_##name(layer) == 0)

static const char kParam[] =
    "7767517\n3 3\nInput in 0 1 x -23330=4,1,2,1,1\nAdder add 1 1 x y 0=10.0\nAbsVal a 1 1 y z\n";

static void run_adder(quoll_net_t net, float expected) {
    quoll_option_t opt = quoll_option_create();
    quoll_allocator_t pool = quoll_allocator_create_pool_allocator();
    quoll_allocator_t unlocked = quoll_allocator_create_unlocked_pool_allocator();
    quoll_extractor_t ex = quoll_extractor_create(net);
    quoll_mat_t in = quoll_mat_create_1d(2, pool), out = NULL;
    quoll_mat_fill_float(in, -100.f);
    quoll_option_set_num_threads(opt, 2);
    quoll_option_set_blob_allocator(opt, unlocked);
    quoll_option_set_workspace_allocator(opt, pool);
    quoll_extractor_set_option(ex, opt);
    CHECK(quoll_extractor_input(ex, "nothing", in) != 0);
    CHECK(strstr(quoll_last_error(), "nothing") != NULL);
    CHECK(quoll_extractor_input_index(ex, quoll_net_get_input_index(net, 0), in) == 0);
    CHECK(quoll_extractor_extract_index(ex, quoll_net_get_output_index(net, 0), &out) == 0);
    CHECK(out && near_to(values(out)[1], expected));
    quoll_mat_destroy(out);
    quoll_mat_destroy(in);
    quoll_extractor_destroy(ex);
    quoll_option_destroy(opt);
    quoll_allocator_destroy(pool);
    quoll_allocator_destroy(unlocked);
}

static void test_nets(void) {
    static float weights[3] = {0.f, 5.f, 0.f};
    const unsigned char* mem = (const unsigned char*)weights;
    unsigned char hidden_param[sizeof(kParam)], hidden_weights[sizeof(weights)];
    struct cipher cipher;
    quoll_datareader_t dr = quoll_datareader_create();
    quoll_net_t net = quoll_net_create();
    quoll_layer_t layer;
    quoll_blob_t blob;
    FILE* fp;
    char scanned[8];
    int alive = 0, dims, w, h, c;
    size_t i;
    CHECK(dr->read(dr, scanned, 1) == 0 && dr->scan(dr, "%7s", scanned) == 0);

    CHECK(quoll_net_register_custom_layer_by_type(net, "Adder", adder_create, adder_destroy,
                                                  &alive) == 0);
    CHECK(quoll_net_load_param_memory(net, kParam) == 0);
    CHECK(alive == 1);
    CHECK(quoll_net_keep_blob(net, "y") == 0);
    CHECK(quoll_net_load_model_memory(net, mem) == sizeof(weights));
    CHECK(quoll_net_load_model_memory(net, mem) == 0);
    CHECK(strstr(quoll_last_error(), "already loaded") != NULL);
    CHECK(quoll_net_get_input_count(net) == 1 && quoll_net_get_output_count(net) == 1);
    CHECK(strcmp(quoll_net_get_input_name(net, 0), "x") == 0);
    CHECK(strcmp(quoll_net_get_output_name(net, 0), "z") == 0);
    CHECK(quoll_net_get_output_name(net, 1) == NULL && quoll_net_get_input_index(net, -1) == -1);
    CHECK(quoll_net_get_blob_count(net) == 3 && quoll_net_get_blob(net, 3) == NULL);
    blob = quoll_net_get_blob(net, 1);
    CHECK(strcmp(quoll_blob_get_name(blob), "y") == 0);
    CHECK(quoll_blob_get_producer(blob) == 1 && quoll_blob_get_consumer(blob) == 2);
    quoll_blob_get_shape(quoll_net_get_blob(net, 0), &dims, &w, &h, &c);
    CHECK(dims == 1 && w == 2 && h == 1 && c == 1);
    run_adder(net, 85.f);
    quoll_net_clear(net);
    CHECK(alive == 0);

    /* The same through a cipher, and from files. */
    for (i = 0; i < sizeof(kParam); i++) hidden_param[i] = (unsigned char)(kParam[i] ^ 0x5a);
    for (i = 0; i < sizeof(weights); i++) hidden_weights[i] = ((unsigned char*)weights)[i] ^ 0x5a;
    dr->read = cipher_read;
    dr->pthis = &cipher;
    cipher.bytes = hidden_param, cipher.size = sizeof(kParam) - 1, cipher.at = 0;
    CHECK(quoll_net_load_param_datareader(net, dr) == 0);
    cipher.bytes = hidden_weights, cipher.size = sizeof(weights), cipher.at = 0;
    CHECK(quoll_net_load_model_datareader(net, dr) == 0);
    run_adder(net, 85.f);
    quoll_datareader_destroy(dr);

    fp = fopen("test_c_api.param", "wb");
    fwrite(kParam, 1, sizeof(kParam) - 1, fp);
    fclose(fp);
    fp = fopen("test_c_api.bin", "wb");
    fwrite(weights, 1, sizeof(weights), fp);
    fclose(fp);
    CHECK(quoll_net_load_param(net, "test_c_api.param") == 0);
    CHECK(quoll_net_load_model(net, "test_c_api.bin") == 0);
    run_adder(net, 85.f);
    CHECK(quoll_net_load_param_bin(net, "test_c_api.param") == QUOLL_BAD_DATA);
    fp = fopen("test_c_api.param", "rb");
    dr = quoll_datareader_create_from_stdio(fp);
    CHECK(quoll_net_load_param_datareader(net, dr) == 0);
    quoll_datareader_destroy(dr);
    fclose(fp);
    dr = quoll_datareader_create_from_memory(&mem);
    CHECK(quoll_net_load_param_bin_datareader(net, dr) == QUOLL_BAD_DATA);
    CHECK(quoll_net_load_param_bin_memory(net, (const unsigned char*)weights) == 0);
    quoll_datareader_destroy(dr);
    remove("test_c_api.param");
    remove("test_c_api.bin");

    quoll_net_set_vulkan_device(net, 0);
    quoll_option_set_lightmode(quoll_net_get_option(net), 0);
    CHECK(quoll_option_get_lightmode(quoll_net_get_option(net)) == 0);
    {
        quoll_option_t opt = quoll_option_create();
        quoll_net_set_option(net, opt);
        CHECK(quoll_option_get_lightmode(quoll_net_get_option(net)) == 1);
        quoll_option_destroy(opt);
    }
    CHECK(quoll_net_register_custom_layer_by_typeindex(net, 0, adder_create, adder_destroy,
                                                       &alive) == 0);
    CHECK(quoll_net_load_param_memory(net, "7767517\n2 2\nInput in 0 1 x\nAbsVal add 1 1 x y\n") ==
          0);
    CHECK(alive == 1);
    quoll_net_destroy(net);
    CHECK(alive == 0);

    layer = quoll_layer_create();
    CHECK_FLAG(one_blob_only);
    CHECK_FLAG(support_inplace);
    CHECK_FLAG(support_packing);
    CHECK_FLAG(support_batch);
    CHECK_FLAG(support_bf16_storage);
    CHECK_FLAG(support_fp16_storage);
    CHECK_FLAG(support_any_packing);
    CHECK_FLAG(support_vulkan);
    CHECK_FLAG(support_vulkan_packing);
    CHECK_FLAG(support_vulkan_any_packing);
    CHECK(quoll_layer_get_name(layer)[0] == 0 && quoll_layer_get_type(layer)[0] == 0);
    CHECK(quoll_layer_get_bottom_count(layer) == 0 && quoll_layer_get_top_count(layer) == 0);
    CHECK(quoll_layer_get_bottom(layer, 0) == -1 && quoll_layer_get_top(layer, 0) == -1);
    quoll_layer_get_bottom_shape(layer, 0, &dims, &w, &h, &c);
    CHECK(dims == 0);
    quoll_layer_get_top_shape(layer, 0, &dims, &w, &h, &c);
    CHECK(dims == 0);
    quoll_layer_destroy(layer);
}

static void test_allocators(void) {
    quoll_allocator_t allocator = quoll_allocator_create();
    quoll_mat_t m = quoll_mat_create_1d(10, allocator);
    CHECK(m != NULL);
    quoll_mat_destroy(m);
    allocator->pthis = &g_blocks;
    allocator->fast_malloc = counting_malloc;
    allocator->fast_free = counting_free;
    m = quoll_mat_create_1d(10, allocator);
    CHECK(g_blocks == 1);
    quoll_mat_destroy(m);
    CHECK(g_blocks == 0);
    quoll_allocator_destroy(allocator);
}

/* ---------------------------------------------------------------- models */

static void test_models(void) {
    quoll_model_t model = quoll_model_create();
    quoll_net_t net = quoll_net_create();
    const char* const data[] = {"data"};
    const char* const fc_out[] = {"fc"};
    const char* const prob[] = {"prob"};
    const char* const sliced[] = {"a", "b"};
    const int parts[] = {1, -233};
    const float slope[] = {0.5f};
    quoll_mat_t weight = quoll_mat_create_1d(6, NULL), bias = quoll_mat_create_1d(2, NULL);
    quoll_mat_t in = quoll_mat_create_1d(3, NULL), out = NULL;
    int fc, slice;
    quoll_mat_fill_float(weight, 2.f);
    quoll_mat_fill_float(bias, -20.f);
    quoll_mat_fill_float(in, 1.f);
    CHECK(quoll_model_make_net(model, net) == QUOLL_BAD_STATE);
    CHECK(quoll_model_add_layer(model, "Input", "data", NULL, 0, data, 1) == 0);
    fc = quoll_model_add_layer(model, "InnerProduct", "fc", data, 1, fc_out, 1);
    CHECK(fc == 1);
    CHECK(quoll_model_set_int(model, fc, "num_output", 2) == 0);
    CHECK(quoll_model_set_int(model, fc, "bias_term", 1) == 0);
    CHECK(quoll_model_set_int(model, fc, "weight_data_size", 6) == 0);
    CHECK(quoll_model_set_int(model, fc, "no_such_param", 6) != 0);
    CHECK(strstr(quoll_last_error(), "no_such_param") != NULL);
    CHECK(quoll_model_set_int(model, 9, "num_output", 2) == QUOLL_ERROR);
    CHECK(quoll_model_set_int(model, fc, "activation_type", 2) == 0);
    CHECK(quoll_model_set_floats(model, fc, "activation_params", slope, 1) == 0);
    CHECK(quoll_model_finish(model) != 0);
    CHECK(strstr(quoll_last_error(), "weight_data") != NULL);
    CHECK(quoll_model_set_weight(model, fc, "weight_data", weight) == 0);
    CHECK(quoll_model_set_weight(model, fc, "bias_data", bias) == 0);
    slice = quoll_model_add_layer(model, "Slice", "slice", fc_out, 1, sliced, 2);
    CHECK(quoll_model_set_ints(model, slice, "slices", parts, 2) == 0);
    slice = quoll_model_add_layer(model, "Scale", "wrong", NULL, 0, NULL, 0);
    CHECK(quoll_model_set_string(model, slice, "scale_data_size", "text") != 0);
    quoll_model_destroy(model);

    /* Without the mistake. */
    model = quoll_model_create();
    quoll_model_add_layer(model, "Input", "data", NULL, 0, data, 1);
    fc = quoll_model_add_layer(model, "InnerProduct", "fc", data, 1, fc_out, 1);
    quoll_model_set_int(model, fc, "num_output", 2);
    quoll_model_set_int(model, fc, "bias_term", 1);
    quoll_model_set_int(model, fc, "weight_data_size", 6);
    quoll_model_set_weight(model, fc, "weight_data", weight);
    quoll_model_set_weight(model, fc, "bias_data", bias);
    slice = quoll_model_add_layer(model, "ReLU", "relu", fc_out, 1, prob, 1);
    CHECK(quoll_model_set_float(model, slice, "slope", 0.5f) == 0);
    CHECK(quoll_model_finish(model) == 0);
    CHECK(quoll_model_finish(model) == QUOLL_BAD_STATE);
    CHECK(quoll_model_set_int(model, fc, "num_output", 3) == QUOLL_BAD_STATE);
    CHECK(quoll_model_save(model, "test_c_api_model.param", "test_c_api_model.bin") == 0);
    for (slice = 0; slice < 2; slice++) {
        quoll_extractor_t ex;
        if (slice == 0) {
            CHECK(quoll_model_make_net(model, net) == 0);
        } else {
            CHECK(quoll_net_load_param(net, "test_c_api_model.param") == 0);
            CHECK(quoll_net_load_model(net, "test_c_api_model.bin") == 0);
        }
        ex = quoll_extractor_create(net);
        CHECK(quoll_extractor_input(ex, "data", in) == 0);
        CHECK(quoll_extractor_extract(ex, "prob", &out) == 0);
        CHECK(quoll_mat_get_w(out) == 2 && near_to(values(out)[0], -7.f));
        quoll_mat_destroy(out);
        /* Fused away: made all the same where the weights can be read once more. */
        if (slice == 0) {
            CHECK(quoll_extractor_extract(ex, "fc", &out) != 0);
            CHECK(strstr(quoll_last_error(), "keep_blob") != NULL);
        } else {
            CHECK(quoll_extractor_extract(ex, "fc", &out) == 0);
            CHECK(near_to(values(out)[0], -14.f));
            quoll_mat_destroy(out);
        }
        quoll_extractor_destroy(ex);
    }
    remove("test_c_api_model.param");
    remove("test_c_api_model.bin");
    quoll_model_destroy(model);
    quoll_net_destroy(net);
    quoll_mat_destroy(weight);
    quoll_mat_destroy(bias);
    quoll_mat_destroy(in);
}

int main(void) {
    test_errors();
    test_options();
    test_pipelinecache();
    test_mats();
    test_pixels();
    test_paramdict();
    test_built_in_layers();
    test_nets();
    test_allocators();
    test_models();
    if (g_failed) printf("%d checks failed\n", g_failed);
    return g_failed != 0;
}
