// The library's own use of the log.
#ifndef QUOLL_LOG_PRIVATE_H
#define QUOLL_LOG_PRIVATE_H

namespace quoll {

// While one lives, nothing that its thread says is heard: for questions whose answer may be an
// error that is nobody's fault.
class LogMute {
public:
    LogMute();
    ~LogMute();

private:
    LogMute(const LogMute&);
    LogMute& operator=(const LogMute&);
};

// While one lives, the last error of its thread is kept, whatever the level from which on messages
// are said.
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
