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

}  // namespace quoll

#endif
