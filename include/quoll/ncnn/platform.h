/* ncnn's names for programs written for ncnn (docs/ncnn.md): this folder in the include path makes
 * #include "net.h" and namespace ncnn mean quoll. Headers here only name what quoll has. C programs
 * and those of C++98 get the macros. */
#ifndef NCNN_PLATFORM_H
#define NCNN_PLATFORM_H

#include "quoll/platform.h"

#define NCNN_STDIO QUOLL_STDIO
#define NCNN_STRING QUOLL_STRING
#define NCNN_THREADS QUOLL_THREADS
#define NCNN_PIXEL QUOLL_PIXEL
#define NCNN_PIXEL_ROTATE QUOLL_PIXEL_ROTATE
#define NCNN_PIXEL_AFFINE QUOLL_PIXEL_AFFINE
#define NCNN_PIXEL_DRAWING QUOLL_PIXEL_DRAWING
#define NCNN_C_API 1
#define NCNN_BATCH 1
#define NCNN_INT8 1
#define NCNN_BF16 1
#define NCNN_WEIGHT_QUANT 1
#define NCNN_RUNTIME_CPU 1
#define NCNN_PLATFORM_API 1
#define NCNN_BENCHMARK 0
#define NCNN_VULKAN QUOLL_VULKAN
/* What a program would have to be built on: stand-ins for Vulkan's headers and the standard
 * library. */
#define NCNN_SIMPLEVK 0
#define NCNN_SIMPLEOMP 0
#define NCNN_SIMPLESTL 0
#define NCNN_SIMPLEMATH 0
#define NCNN_WINXP 0
#define NCNN_SYSTEM_GLSLANG 1
#define NCNN_FORCE_INLINE 1
/* The classes and functions of simpleocv.h, in the library ncnn_simpleocv. */
#ifndef NCNN_SIMPLEOCV
#ifdef USE_NCNN_SIMPLEOCV
#define NCNN_SIMPLEOCV 1
#else
#define NCNN_SIMPLEOCV 0
#endif
#endif
/* For #if: what the program is compiled for. The library asks the processor when it runs. */
#define NCNN_AVX (__AVX__ + 0)
#define NCNN_FMA (__FMA__ + 0)
#define NCNN_F16C (__F16C__ + 0)
#define NCNN_XOP (__XOP__ + 0)
#define NCNN_AVX2 (__AVX2__ + 0)
#define NCNN_AVXVNNI (__AVXVNNI__ + 0)
#define NCNN_AVXVNNIINT8 (__AVXVNNIINT8__ + 0)
#define NCNN_AVXVNNIINT16 (__AVXVNNIINT16__ + 0)
#define NCNN_AVXNECONVERT (__AVXNECONVERT__ + 0)
#define NCNN_AVX512 (__AVX512F__ + 0)
#define NCNN_AVX512VNNI (__AVX512VNNI__ + 0)
#define NCNN_AVX512BF16 (__AVX512BF16__ + 0)
#define NCNN_AVX512FP16 (__AVX512FP16__ + 0)
#define NCNN_VFPV4 (__ARM_FEATURE_FMA + 0)
#define NCNN_ARM82 (__ARM_FEATURE_FP16_VECTOR_ARITHMETIC + 0)
#define NCNN_ARM82DOT (__ARM_FEATURE_DOTPROD + 0)
#define NCNN_ARM82FP16FML (__ARM_FEATURE_FP16_FML + 0)
#define NCNN_ARM84BF16 (__ARM_FEATURE_BF16_VECTOR_ARITHMETIC + 0)
#define NCNN_ARM84I8MM (__ARM_FEATURE_MATMUL_INT8 + 0)
#define NCNN_ARM86SVE (__ARM_FEATURE_SVE + 0)
#define NCNN_ARM86SVE2 (__ARM_FEATURE_SVE2 + 0)
#define NCNN_ARM86SVEBF16 (__ARM_FEATURE_SVE_BF16 + 0)
#define NCNN_ARM86SVEI8MM (__ARM_FEATURE_SVE_MATMUL_INT8 + 0)
#define NCNN_ARM86SVEF32MM (__ARM_FEATURE_SVE_MATMUL_FP32 + 0)
#define NCNN_MSA (__mips_msa + 0)
#define NCNN_MMI (__mips_loongson_mmi + 0)
#define NCNN_LSX (__loongarch_sx + 0)
#define NCNN_LASX (__loongarch_asx + 0)
#define NCNN_RVV (__riscv_vector + 0)
#define NCNN_ZFH (__riscv_zfh + 0)
#define NCNN_ZVFH (__riscv_zvfh + 0)
#define NCNN_XTHEADVECTOR (__riscv_xtheadvector + 0)

/* The release of ncnn whose names these are. */
#define NCNN_VERSION_STRING "1.0.20260722"
#define NCNN_VERSION_NUMBER 20260722

#define NCNN_EXPORT
#define NCNN_NO_EXPORT
#if defined(__GNUC__)
#define NCNN_GNU_INLINE_ASM 1
#define NCNN_FORCEINLINE inline __attribute__((__always_inline__))
#define NCNN_DEPRECATED __attribute__((__deprecated__))
#else
#define NCNN_GNU_INLINE_ASM 0
#define NCNN_FORCEINLINE inline
#define NCNN_DEPRECATED
#endif
#define NCNN_DEPRECATED_EXPORT NCNN_EXPORT NCNN_DEPRECATED
#define NCNN_DEPRECATED_NO_EXPORT NCNN_NO_EXPORT NCNN_DEPRECATED

#include <stddef.h>
#include <stdio.h>
/* Where the system's log is, it is written to too: link `log`. */
#if defined(__ANDROID__)
#include <android/log.h>
#define QUOLL_NCNN_LOG(...) (void)__android_log_print(ANDROID_LOG_WARN, "ncnn", __VA_ARGS__)
#elif __cplusplus >= 201103L || __STDC_VERSION__ >= 199901L || defined(_MSC_VER)
#define QUOLL_NCNN_LOG(...) (void)0
#endif
#ifdef QUOLL_NCNN_LOG
#define NCNN_LOGE(...)                \
    do {                              \
        fprintf(stderr, __VA_ARGS__); \
        fprintf(stderr, "\n");        \
        QUOLL_NCNN_LOG(__VA_ARGS__);  \
    } while (0)
#endif

#if __cplusplus >= 201103L || (defined(__cplusplus) && defined(_MSC_VER))

// What programs for ncnn find included.
#include <fenv.h>
#include <math.h>
#if defined(_WIN32)
#include <windows.h>
#else
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <stack>
#include <string>
#include <thread>
#include <vector>

#include "quoll/datareader.h"

namespace quoll {}

namespace ncnn {

using namespace quoll;

class Mutex {
public:
    Mutex() {}
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    friend class ConditionVariable;
    std::mutex mutex_;
};

class MutexLockGuard {
public:
    explicit MutexLockGuard(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
    ~MutexLockGuard() { mutex_.unlock(); }

private:
    MutexLockGuard(const MutexLockGuard&);
    MutexLockGuard& operator=(const MutexLockGuard&);
    Mutex& mutex_;
};

// The mutex has to be locked by the one who waits.
class ConditionVariable {
public:
    ConditionVariable() {}
    void wait(Mutex& mutex) {
        std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
        condition_.wait(lock);
        lock.release();
    }
    void broadcast() { condition_.notify_all(); }
    void signal() { condition_.notify_one(); }

private:
    std::condition_variable condition_;
};

// Runs start(args) until join(), without which it goes on by itself.
class Thread {
public:
    Thread(void* (*start)(void*), void* args = 0) : thread_(start, args) {}
    ~Thread() {
        if (thread_.joinable()) thread_.detach();
    }
    void join() { thread_.join(); }

private:
    std::thread thread_;
};

// A pointer for each thread, null at first.
class ThreadLocalStorage {
public:
#if defined(_WIN32)
    ThreadLocalStorage() : key_(TlsAlloc()) {}
    ~ThreadLocalStorage() { TlsFree(key_); }
    void set(void* value) { TlsSetValue(key_, value); }
    void* get() { return TlsGetValue(key_); }

private:
    DWORD key_;
#else
    ThreadLocalStorage() { pthread_key_create(&key_, 0); }
    ~ThreadLocalStorage() { pthread_key_delete(key_); }
    void set(void* value) { pthread_setspecific(key_, value); }
    void* get() { return pthread_getspecific(key_); }

private:
    pthread_key_t key_;
#endif
};

#if QUOLL_STDIO
// A file in memory, read-only. open() returns 0, or -1 if the file cannot be mapped or is empty.
class MappedFile {
public:
    MappedFile() : data_(0), size_(0) {}
    int open(const char* path) {
        close();
        file_.reset(new DataReaderFromMmap(path));
        if (file_->ok()) size_ = file_->reference(file_->remaining(), &data_);
        if (size_ == 0) close();
        return size_ ? 0 : -1;
    }
    void close() {
        file_.reset();
        data_ = 0, size_ = 0;
    }
    const void* mapped_ptr() const { return data_; }
    size_t size() const { return size_; }

private:
    std::unique_ptr<DataReaderFromMmap> file_;
    const void* data_;
    size_t size_;
};
#endif

inline void swap_endianness_16(void* x) {
    unsigned char* const bytes = (unsigned char*)x;
    std::reverse(bytes, bytes + 2);
}
inline void swap_endianness_32(void* x) {
    unsigned char* const bytes = (unsigned char*)x;
    std::reverse(bytes, bytes + 4);
}

}  // namespace ncnn

#endif

#endif
