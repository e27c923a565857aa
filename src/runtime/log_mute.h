// The library's own use of the log.
#ifndef QUOLL_LOG_PRIVATE_H
#define QUOLL_LOG_PRIVATE_H

namespace quoll {

// While one exists, messages of its thread are suppressed: for questions to which an error is a
// normal answer.
class LogMute {
public:
    LogMute();
    ~LogMute();

private:
    LogMute(const LogMute&);
    LogMute& operator=(const LogMute&);
};

// While one exists, the last error of its thread is kept, whatever the log level.
class KeepErrors {
public:
    KeepErrors();
    ~KeepErrors();
    // The text, cut to what a buffer holds; "" at first.
    static char* last();

private:
    KeepErrors(const KeepErrors&);
    KeepErrors& operator=(const KeepErrors&);
};

}  // namespace quoll

#endif
