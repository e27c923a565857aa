// A batch gives what its items give one by one, bit for bit: layers that take batches by
// themselves, and through a Net, which runs the others once an item.
#include <string.h>

#include "../kernel/guarded.h"
#include "layer_test_private.h"
#include "quoll/datareader.h"
#include "quoll/net.h"
#include "runtime/cpu_features.h"

namespace quoll {

namespace {

const int kItems = 2;
typedef std::vector<Mat> Blobs;

void copy_item(const Mat& from, Mat to) {
    const size_t bytes = (size_t)from.w * from.h * from.d * from.elemsize;
    for (int q = 0; q < from.c && !from.empty(); q++)
        memcpy((char*)to.data + q * to.cstep * to.elemsize,
               (const char*)from.data + q * from.cstep * from.elemsize, bytes);
}

// items[i][k] is blob k of item i. Absent inputs stay so, those of `shared` are all item 0's.
Blobs stacked(const std::vector<Blobs>& items, bool shared) {
    Blobs all = items[0];
    for (size_t k = 0; k < all.size(); k++) {
        const Mat& first = items[0][k];
        if (first.empty() || (shared && k > 0)) continue;
        Shape shape = first.logical_shape();
        shape.n = kItems;
        all[k] = Mat(shape, first.elempack);
        for (int i = 0; i < kItems; i++) copy_item(items[i][k], all[k].batch(i));
    }
    return all;
}

// Item i of what was made of a batch, planar. An output that all items share may have n = 1.
Mat item_made(const Mat& made, int i) {
    Mat item = made;
    if (made.empty())
        item.n = 1;
    else if (made.n != 1)
        item = made.batch(i);
    return packed({item}, 1)[0];
}

// Does a batch hold what the items gave?
bool holds(const Blobs& got, const std::vector<Blobs>& want) {
    for (int i = 0; i < kItems; i++) {
        Blobs item;
        for (const Mat& m : got) item.push_back(item_made(m, i));
        if (!same_values(item, packed(want[(size_t)i], 1))) return false;
    }
    return true;
}

bool same_shapes_of(const std::vector<Blobs>& items) {
    for (const Blobs& item : items)
        if (logical_shapes(item) != logical_shapes(items[0])) return false;
    return true;
}

struct BatchCase {
    PreparedCase p;
    std::vector<Blobs> items;  // inputs of each
};

bool prepare_batch(const char* type, const LayerCase& c, size_t index, BatchCase* batch) {
    if (!prepare(type, c, index, &batch->p)) return false;
    batch->items = {batch->p.inputs};
    Random random(batch->p.seed + 1);
    while ((int)batch->items.size() < kItems) batch->items.push_back(random_inputs(c, random));
    return true;
}

std::vector<Blobs> each_to_storage(const std::vector<Blobs>& items, DType storage) {
    std::vector<Blobs> stored = items;
    for (Blobs& item : stored)
        for (Mat& m : item) m = to_storage(m, storage);
    return stored;
}

// The inputs of item i where those of `shared` are item 0's.
Blobs item_of(const std::vector<Blobs>& items, int i, bool shared) {
    Blobs item = items[i];
    for (size_t k = 1; shared && k < item.size(); k++) item[k] = items[0][k];
    return item;
}

// A layer that takes batches, on inputs of one storage type.
void check_layer_on_batch(const Layer& layer, const std::vector<Blobs>& items) {
    for (int pack : kPacks) {
        if (pack != 1 && !layer.support_packing) continue;
        for (int mode = 0; mode < 4; mode++) {
            const bool inplace = mode & 1, shared = mode & 2;
            if ((inplace && !runs_in_place(layer)) || (shared && items[0].size() < 2)) continue;
            if (inplace && shared) continue;
            SCOPED_TRACE("elempack " + std::to_string(pack) + (inplace ? ", in place" : "") +
                         (shared ? ", other inputs for all items" : ""));
            GuardedAllocator guarded(true);
            Option opt;
            opt.num_threads = 1;
            opt.blob_allocator = opt.workspace_allocator = &guarded;
            std::vector<Blobs> want(kItems);
            for (int i = 0; i < kItems; i++)
                ASSERT_EQ(0, run_status(layer, packed(item_of(items, i, shared), pack), &want[i],
                                        opt, inplace));
            const Blobs inputs = packed(stacked(items, shared), pack);
            Blobs got;
            ASSERT_EQ(0, run_status(layer, inputs, &got, opt, inplace));
            ASSERT_TRUE(holds(got, want));
            got.clear(), want.clear();
            ASSERT_EQ(0, guarded.damage()) << "written behind the end of a blob";
        }
    }
}

void check_direct(const char* type, const LayerCase& c, const BatchCase& batch) {
    for (DType storage : {DType::f32, DType::f16, DType::bf16}) {
        SCOPED_TRACE(std::string("the layer itself, blobs of ") + dtype_name(storage));
        const std::vector<Blobs> items = each_to_storage(batch.items, storage);
        for (const char* level : isa_levels()) {
            SCOPED_TRACE(std::string("ISA level ") + level);
            set_cpu_mask(level);
            for (const bool reference : forms_tested()) {
                if (reference && level != isa_levels().front()) continue;  // the same at all
                const LayerPtr layer = make_case_layer(type, c, batch.p, reference);
                if (!layer || !layer->support_batch) continue;
                if (storage == DType::f16 && !layer->support_fp16_storage) continue;
                if (storage == DType::bf16 && !layer->support_bf16_storage) continue;
                SCOPED_TRACE(reference ? "reference" : "fast");
                check_layer_on_batch(*layer, items);
            }
            set_cpu_mask(nullptr);
            if (testing::Test::HasFatalFailure()) return;
        }
    }
}

int run_net(const Net& net, const Blobs& inputs, int outputs, Blobs* got) {
    ExpectAsPlanned as_planned;
    Extractor ex = net.create_extractor();
    ex.set_layer_observer(&as_planned);
    ex.set_num_threads(1);
    for (size_t k = 0; k < inputs.size(); k++) {
        if (inputs[k].dims == 0) continue;  // an input that nobody gives
        QUOLL_RETURN_IF_ERROR(ex.input(("in" + std::to_string(k)).c_str(), inputs[k]));
    }
    got->resize((size_t)outputs);
    for (int i = 0; i < outputs; i++)
        QUOLL_RETURN_IF_ERROR(ex.extract(("out" + std::to_string(i)).c_str(), (*got)[(size_t)i]));
    return kOk;
}

void check_net(const char* type, const LayerCase& c, const BatchCase& batch, DType storage) {
    SCOPED_TRACE(std::string("in a Net, blobs of ") + dtype_name(storage));
    Net net;
    net.opt.use_fp16_storage = storage == DType::f16;
    net.opt.use_bf16_storage = storage == DType::bf16;
    const std::vector<unsigned> words = weight_words(batch.p);
    const unsigned char* mem = (const unsigned char*)words.data();
    ASSERT_EQ(kOk, net.load_param_mem(net_text(type, c).c_str()));
    ASSERT_EQ(kOk, net.load_model(DataReaderFromMemory(mem, words.size() * 4)));
    const std::vector<Blobs> items = each_to_storage(batch.items, storage);
    for (int pack : {1, 0}) {
        for (bool shared : {false, true}) {
            if (shared && items[0].size() < 2) continue;
            SCOPED_TRACE("elempack " + std::to_string(pack) + " (0: mixed)" +
                         (shared ? ", other inputs for all items" : ""));
            std::vector<Blobs> want(kItems);
            for (int i = 0; i < kItems; i++)
                ASSERT_EQ(kOk, run_net(net, packed(item_of(items, i, shared), pack), c.output_count,
                                       &want[i]));
            if (!same_shapes_of(want)) continue;  // no batch can hold them
            Blobs got;
            ASSERT_EQ(kOk,
                      run_net(net, packed(stacked(items, shared), pack), c.output_count, &got));
            ASSERT_TRUE(holds(got, want));
        }
    }
}

}  // namespace

void check_batch(const char* type, const std::vector<LayerCase>& cases) {
    const Silence silence;
    for (size_t i = 0; i < cases.size(); i++) {
        BatchCase batch;
        if (cases[i].inputs.empty() || cases[i].items_depend ||
            !prepare_batch(type, cases[i], i, &batch))
            continue;
        SCOPED_TRACE(batch.p.text);
        check_direct(type, cases[i], batch);
        for (DType storage : {DType::f32, DType::f16, DType::bf16})
            check_net(type, cases[i], batch, storage);
        if (testing::Test::HasFatalFailure()) return;
    }
}

}  // namespace quoll
