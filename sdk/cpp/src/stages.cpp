#include "stages.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "http.hpp"
#include "keys.hpp"
#include "trust.hpp"

namespace sso {

namespace {
constexpr int wait_ms = 25'000;      // heartbeats come every five seconds
constexpr std::size_t max_frame = 65'536;
constexpr int lost = 0, refused = -1;  // instead of a close code

enum Opcode : unsigned char { text_frame = 1, close_frame = 8, ping_frame = 9, pong_frame = 10 };

// libcurl calls it about once a second while it opens a connection.
int on_progress(void* stopped, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return *static_cast<const std::atomic<bool>*>(stopped) ? 1 : 0;
}

// One connection, which libcurl opens, with TLS if the address has it.
class Socket {
public:
    Socket(CURLM* wake, const std::atomic<bool>& stopped) : wake_(wake), stopped_(stopped) {}

    // Follows the WebSocket until it ends. Returns the close code, `lost` or `refused`.
    int follow(const std::string& url, const std::function<void(const std::string&)>& show) {
        if (!connect(url)) return lost;
        std::string head;
        while (head.find("\r\n\r\n") == std::string::npos) {
            if (head.size() > 16'384 || !receive(head)) return lost;
        }
        if (head.compare(0, 12, "HTTP/1.1 101") != 0) return refused;
        buffer_ = head.substr(head.find("\r\n\r\n") + 4);
        unsigned char opcode = 0;
        std::string payload;
        while (read_frame(opcode, payload)) {
            if (opcode == text_frame) {
                const auto event = Json::parse(payload);
                if (event && (*event)["event"].text() == "stage" && !(*event)["stage"].text().empty()) {
                    show((*event)["stage"].text());
                }
            } else if (opcode == ping_frame) {
                send_frame(pong_frame, payload);
            } else if (opcode == close_frame) {
                send_frame(close_frame, payload);
                return payload.size() < 2 ? lost : byte(payload, 0) << 8 | byte(payload, 1);
            }
        }
        if (stopped_) send_frame(close_frame, std::string("\x03\xe8", 2));
        return lost;
    }

private:
    static int byte(const std::string& text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

    bool connect(const std::string& url) {
        curl_easy_setopt(curl_.get(), CURLOPT_URL, url.c_str());
        curl_easy_setopt(curl_.get(), CURLOPT_CONNECT_ONLY, 1L);
        curl_easy_setopt(curl_.get(), CURLOPT_CONNECTTIMEOUT, 10L);
        curl_easy_setopt(curl_.get(), CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl_.get(), CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(curl_.get(), CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(curl_.get(), CURLOPT_XFERINFODATA, &stopped_);
        curl_easy_setopt(curl_.get(), CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
        use_trusted_certificates(curl_.get());
        if (curl_easy_perform(curl_.get()) != CURLE_OK) return false;
        const auto host_at = url.find("://") + 3;
        const auto path_at = url.find('/', host_at);
        unsigned char key[16];
        if (path_at == std::string::npos || !random_bytes(key, sizeof key)) return false;
        return send("GET " + url.substr(path_at) + " HTTP/1.1\r\nHost: " + url.substr(host_at, path_at - host_at) +
                    "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
                    base64(key, sizeof key) + "\r\n\r\n");
    }

    bool send(const std::string& data) {
        for (std::size_t done = 0; done < data.size();) {
            std::size_t sent = 0;
            const CURLcode code = curl_easy_send(curl_.get(), data.data() + done, data.size() - done, &sent);
            if (code != CURLE_OK && (code != CURLE_AGAIN || !wait_for(CURL_WAIT_POLLOUT))) return false;
            done += sent;
        }
        return true;
    }

    void send_frame(unsigned char opcode, const std::string& payload) {  // of fewer than 126 bytes
        unsigned char mask[4];
        if (payload.size() > 125 || !random_bytes(mask, sizeof mask)) return;
        std::string frame{static_cast<char>(0x80 | opcode), static_cast<char>(0x80 | payload.size())};
        frame.append(reinterpret_cast<char*>(mask), sizeof mask);
        for (std::size_t at = 0; at < payload.size(); ++at) frame += static_cast<char>(payload[at] ^ mask[at % 4]);
        send(frame);
    }

    // Waits for the socket, without using the processor. Returns false at the end of the wait, or if it is stopped.
    bool wait_for(short events) {
        curl_socket_t handle = CURL_SOCKET_BAD;
        curl_easy_getinfo(curl_.get(), CURLINFO_ACTIVESOCKET, &handle);
        if (handle == CURL_SOCKET_BAD || stopped_) return false;
        curl_waitfd waited{handle, events, 0};
        curl_multi_poll(wake_, &waited, 1, wait_ms, nullptr);
        return waited.revents != 0 && !stopped_;
    }

    bool receive(std::string& target) {
        char data[4096];
        std::size_t size = 0;
        while (true) {
            const CURLcode code = curl_easy_recv(curl_.get(), data, sizeof data, &size);
            if (code == CURLE_OK && size > 0) break;
            if (code != CURLE_AGAIN || !wait_for(CURL_WAIT_POLLIN)) return false;
        }
        target.append(data, size);
        return true;
    }

    bool fill(std::size_t size) {
        while (buffer_.size() < size) {
            if (!receive(buffer_)) return false;
        }
        return true;
    }

    bool read_frame(unsigned char& opcode, std::string& payload) {
        if (!fill(2)) return false;
        opcode = static_cast<unsigned char>(byte(buffer_, 0) & 0x0F);
        std::size_t size = static_cast<std::size_t>(byte(buffer_, 1) & 0x7F), head = 2;
        if (size == 126) {
            if (!fill(4)) return false;
            size = static_cast<std::size_t>(byte(buffer_, 2) << 8 | byte(buffer_, 3));
            head = 4;
        } else if (size == 127) {
            return false;  // the service sends no such frames
        }
        if (size > max_frame || !fill(head + size)) return false;
        payload = buffer_.substr(head, size);
        buffer_.erase(0, head + size);
        return true;
    }

    CURLM* wake_;
    const std::atomic<bool>& stopped_;
    std::unique_ptr<CURL, void (*)(CURL*)> curl_{curl_easy_init(), curl_easy_cleanup};
    std::string buffer_;
};

bool is_final(int code) {
    return code == 1000 || code == 1008 || code == 1009 || code == 4403 || code == 4404 || code == refused;
}
}  // namespace

Stages::Stages(std::string url, std::function<void(const std::string&)> show)
    : url_(std::move(url)), show_(std::move(show)), wake_(curl_multi_init()), thread_([this] { run(); }) {}

Stages::~Stages() {
    stopped_ = true;
    curl_multi_wakeup(static_cast<CURLM*>(wake_));
    thread_.join();
    curl_multi_cleanup(static_cast<CURLM*>(wake_));
}

void Stages::run() {
    do {
        const int code = Socket(static_cast<CURLM*>(wake_), stopped_).follow(url_, show_);
        if (is_final(code)) return;
    } while (wait(1, stopped_));
}

}  // namespace sso
