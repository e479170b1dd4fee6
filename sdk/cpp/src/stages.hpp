// The WebSocket of a session, on a thread of its own. It is optional: without it no stages are shown.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace sso {

class Stages {
public:
    Stages(std::string url, std::function<void(const std::string&)> show);
    ~Stages();  // closes the WebSocket
    Stages(const Stages&) = delete;
    Stages& operator=(const Stages&) = delete;

private:
    void run();

    std::string url_;
    std::function<void(const std::string&)> show_;
    void* wake_;  // a multi handle of libcurl, whose wait can be ended from another thread
    std::atomic<bool> stopped_{false};
    std::thread thread_;
};

}  // namespace sso
