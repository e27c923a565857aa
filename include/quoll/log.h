// Messages of the library: levels, a user sink, and a compile-time floor.
//
// Every failing public function logs one line that says what, where, what was expected and what
// came, and returns a negative code:
//   QUOLL_LOGE("[Convolution %s] weight_data: need %d values, got %d", name, need, got);
#ifndef QUOLL_LOG_H
#define QUOLL_LOG_H

// Messages below this level (a number of LogLevel) are compiled out; their format is still checked.
#ifndef QUOLL_LOG_FLOOR
#define QUOLL_LOG_FLOOR 0
#endif

#if defined(__MINGW32__)
#define QUOLL_PRINTF_CHECK(fmt, first) __attribute__((format(gnu_printf, fmt, first)))
#elif defined(__GNUC__)
#define QUOLL_PRINTF_CHECK(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define QUOLL_PRINTF_CHECK(fmt, first)
#endif

namespace quoll {

enum LogLevel {
    kLogDebug = 0,
    kLogInfo = 1,
    kLogWarn = 2,
    kLogError = 3,
    kLogOff = 4,  // as a threshold: nothing is said
};

// Receives one complete message, without a trailing newline, at a level of kLogDebug..kLogError.
// Calls are serialised. A sink may call the library; what is logged meanwhile by the same thread
// goes to stderr.
typedef void (*LogSink)(LogLevel level, const char* message, void* user);

// Messages below `level` are dropped from now on. A value outside LogLevel is clamped to it. The
// initial level comes from the environment, QUOLL_LOG=debug|info|warn|error|off; default: warn.
void set_log_level(LogLevel level);
LogLevel get_log_level();

// "debug", "info", "warn", "error" or "off".
const char* log_level_name(LogLevel level);

// Sends messages to sink(level, message, user) instead of stderr; a null sink restores stderr. When
// this returns the previous sink is not running in another thread and will not be called again.
void set_log_sink(LogSink sink, void* user);

// True when a message of this level would be said now.
bool log_enabled(LogLevel level);

// Formats and delivers one message whatever the threshold: use the macros below. Messages have any
// length; past 1 MiB they are cut. errno is preserved.
void log_message(LogLevel level, const char* format, ...) QUOLL_PRINTF_CHECK(2, 3);

}  // namespace quoll

#define QUOLL_LOG_AT(level, ...)                                             \
    do {                                                                     \
        if (int(level) + 1 > QUOLL_LOG_FLOOR && ::quoll::log_enabled(level)) \
            ::quoll::log_message(level, __VA_ARGS__);                        \
    } while (0)

// printf-style: QUOLL_LOGE(format, ...).
#define QUOLL_LOGD(...) QUOLL_LOG_AT(::quoll::kLogDebug, __VA_ARGS__)
#define QUOLL_LOGI(...) QUOLL_LOG_AT(::quoll::kLogInfo, __VA_ARGS__)
#define QUOLL_LOGW(...) QUOLL_LOG_AT(::quoll::kLogWarn, __VA_ARGS__)
#define QUOLL_LOGE(...) QUOLL_LOG_AT(::quoll::kLogError, __VA_ARGS__)

#endif  // QUOLL_LOG_H
