// Requests to the service.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "json.hpp"
#include "sso/game.hpp"

namespace sso {

struct Answer {
    long status = 0;
    Json body;
    std::map<std::string, std::string> headers;  // names in lower case
};

enum class Broken { no, lost, cancelled, not_a_service };

struct Exchange {
    Broken broken = Broken::no;
    std::string error;
    Answer answer;
};

using Headers = std::vector<std::string>;  // "Name: value"

struct Request {
    std::string method = "POST";
    std::string url, body;
    std::string content_type = "application/json";
    Headers headers;
    long timeout_s = 0;  // 0: none
    const std::atomic<bool>* cancelled = nullptr;  // ends the request early
    // For a stream of events: gets each piece of it, and returns false to end it.
    std::function<bool(const char*, std::size_t)> on_piece;
    long max_silence_s = 0;  // of such a stream; 0: any
};

// Sends a request on a connection of its own. An answer that is no JSON has an empty body.
Exchange send(const Request& request);

// Keeps connections open between requests, for servers that ask often.
class Connections {
public:
    Connections() = default;
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    Exchange send(const Request& request);

private:
    std::mutex lock_;
    std::vector<void*> idle_;  // handles of libcurl
};

// Sends JSON to an endpoint for games, whose answers have a status. `cancelled` may be null.
Exchange post(const std::string& url, const std::string& body, const Headers& headers, long timeout_s,
              const std::atomic<bool>* cancelled);

std::string without_slash(std::string base_url);

// The failure that a broken exchange, or an answer with the status ERROR, means.
Failure failure_of(const Exchange& exchange);

bool is_outage(const Answer& answer);
bool is_event_stream(const Answer& answer);
// How long to wait before the next try: as long as the service asks for, between a second and a minute, or a second.
long retry_after_s(const Answer& answer);
// Returns false if it was cancelled.
bool wait(double seconds, const std::atomic<bool>& cancelled);

}  // namespace sso
