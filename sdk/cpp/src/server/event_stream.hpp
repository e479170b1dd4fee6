// Server-sent events, as they arrive in pieces.
#pragma once

#include <functional>
#include <string>
#include <utility>

namespace sso {

class EventStream {
public:
    // Gets the id and the data of each event. Returns false to end the stream.
    using Handle = std::function<bool(const std::string& id, const std::string& data)>;

    explicit EventStream(Handle handle) : handle_(std::move(handle)) {}

    // Returns false if the stream must end.
    bool add(const char* data, std::size_t size) {
        is_too_large_ = line_.size() + data_.size() + size > max_event;
        if (is_too_large_) return false;
        for (std::size_t at = 0; at < size; ++at) {
            if (data[at] != '\n') {
                line_ += data[at];
            } else if (!end_line()) {
                return false;
            }
        }
        return true;
    }

    bool is_too_large() const { return is_too_large_; }

private:
    static constexpr std::size_t max_event = 16 << 20;

    bool end_line() {
        std::string line;
        line.swap(line_);
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty()) {
            std::string data;
            data.swap(data_);
            return data.empty() || handle_(id_, data);
        }
        const auto colon = line.find(':');
        const std::string name = line.substr(0, colon);
        std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
        if (!value.empty() && value.front() == ' ') value.erase(0, 1);
        if (name == "id") id_ = value;
        else if (name == "data") data_ += (data_.empty() ? "" : "\n") + value;
        return true;
    }

    Handle handle_;
    std::string line_, id_, data_;
    bool is_too_large_ = false;
};

}  // namespace sso
