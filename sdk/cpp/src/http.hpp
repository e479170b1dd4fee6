// Requests to the service.
#pragma once

#include <atomic>
#include <map>
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

// Sends JSON. `cancelled` ends the request early; it may be null.
Exchange post(const std::string& url, const std::string& body, const Headers& headers, long timeout_s,
              const std::atomic<bool>* cancelled);

// The failure that a broken exchange, or an answer with the status ERROR, means.
Failure failure_of(const Exchange& exchange);

bool is_outage(const Answer& answer);
// How long to wait before the next try: as long as the service asks for, or a second.
long retry_after_s(const Answer& answer);
// Returns false if it was cancelled.
bool wait(double seconds, const std::atomic<bool>& cancelled);

}  // namespace sso
